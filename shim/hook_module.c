/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: their functions' handles end with them.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuModuleUnload(CUmodule m)
{
	CUresult r = REAL(cuModuleUnload)(m);

	if (r == CUDA_SUCCESS && init_active())
		issue_module_unloaded();
	return r;
}

EXPORT CUresult cuLibraryUnload(CUlibrary l)
{
	CUresult r = REAL(cuLibraryUnload)(l);

	if (r == CUDA_SUCCESS && init_active())
		issue_module_unloaded();
	return r;
}
