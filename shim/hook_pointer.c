/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about pointers, and memory that others get hold of: other
 * processes, network cards, textures, other GPUs.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr,
	CUdeviceptr p)
{
	CUresult r;

	if (init_active() && issue_pointer_attribute(data, attr, p, &r))
		return r;
	return REAL(cuPointerGetAttribute)(data, attr, p);
}

EXPORT CUresult cuPointerGetAttributes(unsigned int n,
	CUpointer_attribute *attrs, void **data, CUdeviceptr p)
{
	CUresult r;

	if (init_active() && issue_pointer_attributes(n, attrs, data, p, &r))
		return r;
	return REAL(cuPointerGetAttributes)(n, attrs, data, p);
}

EXPORT CUresult cuPointerSetAttribute(const void *value,
	CUpointer_attribute attr, CUdeviceptr p)
{
	CUresult r;

	if (init_active() && issue_sync_memops(value, attr, p, &r))
		return r;
	return REAL(cuPointerSetAttribute)(value, attr, p);
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr p)
{
	if (init_active() && issue_ipc_refused(p))
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuIpcGetMemHandle)(handle, p);
}

EXPORT CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr p,
	size_t size, CUmemRangeHandleType type, unsigned long long flags)
{
	CUresult r = init_active() ? issue_fix(p, size) : CUDA_SUCCESS;

	return r != CUDA_SUCCESS ? r : REAL(cuMemGetHandleForAddressRange)(
		handle, p, size, type, flags);
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	CUresult r = REAL(cuCtxEnablePeerAccess)(peer, flags);

	if (r == CUDA_SUCCESS && init_active())
		r = issue_peer_enabled(peer);
	return r;
}
