/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program can ask of a kernel, and set.  Called by the program; guarded
 * by the driver's lock.
 */
#include "test/softcuda/module.h"

#include "test/softcuda/call.h"
#include "test/softcuda/device.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/library.h"

CUresult function_find(CUfunction handle, struct context *ctx,
	struct function **out)
{
	struct kernel *k;

	*out = object_find(handle, OBJECT_FUNCTION);
	if (*out)
		return CUDA_SUCCESS;
	k = object_find(handle, OBJECT_KERNEL);
	return k ? library_function(k, ctx, out) : CUDA_ERROR_INVALID_HANDLE;
}

int function_shared_limit(void)
{
	return device_attribute(
		CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
}

static CUresult find(CUfunction handle, const void *out, struct function **f)
{
	*f = object_find(handle, OBJECT_FUNCTION);
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return *f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult param_info(CUfunction handle, size_t i, size_t *offset,
	size_t *size)
{
	struct function *f;
	CUresult r = find(handle, offset, &f);

	if (r)
		return r;
	if (i >= f->info.nr_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = f->info.params[i].offset;
	if (size)
		*size = f->info.params[i].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t i, size_t *offset,
	size_t *size)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = param_info(handle, i, offset, size);
	return call_end(&c);
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction handle)
{
	struct function *f;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = find(handle, out, &f);
		if (!c.result)
			*out = (CUmodule)f->module;
	}
	return call_end(&c);
}

CUresult cuFuncGetName(const char **out, CUfunction handle)
{
	struct function *f;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = find(handle, out, &f);
		if (!c.result)
			*out = f->info.name;
	}
	return call_end(&c);
}

/* Registers are those of the text; nothing allocates them. */
int function_registers(const struct function *f)
{
	uint32_t n = f->info.nr_regs;

	return n < 16 ? 16 : n > 255 ? 255 : (int)n;
}

CUresult function_attribute(const struct function *f, unsigned target,
	CUfunction_attribute attr, int *out)
{
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*out = (int)f->info.max_threads;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*out = (int)f->info.shared_size;
		break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*out = 0;
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*out = (int)f->info.local_size;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*out = function_registers(f);
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*out = (int)target;
		break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*out = (int)knobs.cc;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*out = f->max_dynamic_shared;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*out = f->carveout;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult get_attribute(int *out, CUfunction_attribute attr,
	CUfunction handle)
{
	struct function *f;
	CUresult r = find(handle, out, &f);

	return r ? r : function_attribute(f,
		ptx_module_target(f->module->text), attr, out);
}

CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attr,
	CUfunction handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_attribute(out, attr, handle);
	return call_end(&c);
}

static CUresult set_attribute(CUfunction handle, CUfunction_attribute attr,
	int value)
{
	struct function *f = object_find(handle, OBJECT_FUNCTION);
	int limit = function_shared_limit();

	if (!f)
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value > limit - (int)f->info.shared_size)
			return CUDA_ERROR_INVALID_VALUE;
		f->max_dynamic_shared = value;
		f->shared_is_set = true;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		f->carveout = value;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attr,
	int value)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = set_attribute(handle, attr, value);
	return call_end(&c);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	struct function *f;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = find(handle, &c, &f);
		if (!c.result && (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
			c.result = CUDA_ERROR_INVALID_VALUE;
		if (!c.result)
			f->cache_config = config;
	}
	return call_end(&c);
}

CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig config)
{
	struct function *f;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = find(handle, &c, &f);
		if (!c.result && (unsigned)config
		    > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

/* Everything is loaded with its module. */
CUresult cuFuncLoad(CUfunction handle)
{
	struct function *f;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = find(handle, &c, &f);
	return call_end(&c);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle)
{
	struct function *f;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = find(handle, state, &f);
		if (!c.result)
			*state = CU_FUNCTION_LOADING_STATE_LOADED;
	}
	return call_end(&c);
}
