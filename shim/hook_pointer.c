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

/* A texture holds its address for as long as it lives. */
EXPORT CUresult cuTexObjectCreate(CUtexObject *t, const CUDA_RESOURCE_DESC *d,
	const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUresult r = CUDA_SUCCESS;

	if (init_active() && d != NULL &&
	    d->resType == CU_RESOURCE_TYPE_LINEAR)
		r = issue_fix(d->res.linear.devPtr, d->res.linear.sizeInBytes);
	else if (init_active() && d != NULL &&
		 d->resType == CU_RESOURCE_TYPE_PITCH2D)
		r = issue_fix(d->res.pitch2D.devPtr, d->res.pitch2D.height *
			d->res.pitch2D.pitchInBytes);
	return r != CUDA_SUCCESS ? r : REAL(cuTexObjectCreate)(t, d, texture,
		view);
}

EXPORT CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref t,
	CUdeviceptr p, size_t size)
{
	CUresult r = init_active() ? issue_fix(p, size) : CUDA_SUCCESS;

	return r != CUDA_SUCCESS ? r : REAL(cuTexRefSetAddress_v2)(offset, t,
		p, size);
}

#define TEXTURE_2D(symbol) \
	EXPORT CUresult symbol(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, \
		CUdeviceptr p, size_t pitch) \
	{ \
		CUresult r = CUDA_SUCCESS; \
		\
		if (init_active() && d != NULL) \
			r = issue_fix(p, d->Height * pitch); \
		return r != CUDA_SUCCESS ? r : REAL(symbol)(t, d, p, pitch); \
	}

TEXTURE_2D(cuTexRefSetAddress2D_v2)
TEXTURE_2D(cuTexRefSetAddress2D_v3)
