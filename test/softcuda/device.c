/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and devices: cuInit, names, sizes, attributes.  Called by the program;
 * guarded by the driver's lock.  A device answers like a data-centre GPU of
 * its compute capability, without what this driver does not model.
 */
#include "test/softcuda/device.h"

#include <stdio.h>
#include <string.h>

#include "test/softcuda/block.h"
#include "test/softcuda/call.h"
#include "test/softcuda/hostmem.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/report.h"
#include "test/softcuda/space.h"
#include "test/softcuda/stream.h"
#include "test/softcuda/trace.h"
#include "test/softcuda/vmm.h"

static bool started;

static CUresult start(unsigned flags)
{
	if (!knobs_need() || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!knobs.devices)
		return CUDA_ERROR_NO_DEVICE;
	if (!started) {
		started = true;
		trace_open();
		call_set_initialized();
	}
	return CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	struct call c;

	/* A child of a process that had called it cannot begin anew. */
	if (!call_begin(&c, __func__, CALL_ANY))
		c.result = call_is_forked() ? CUDA_ERROR_NOT_INITIALIZED
			: start(flags);
	return call_end(&c);
}

/* What the program left behind; contexts and memory end with the process. */
static void check_leaks(void)
{
	char text[256];
	unsigned handles = vmm_nr_handles(), host = hostmem_count();
	unsigned reserved = space_count(REGION_RESERVED);
	unsigned events = event_count();

	if (!handles && !host && !reserved && !events)
		return;
	snprintf(text, sizeof(text), "at exit: %u memory handles, %u address "
		"ranges, %u events, %u pinned ranges were never given back",
		handles, reserved, events, host);
	if (knobs.strict == 2)
		report_rule("leak", "%s", text);
	else
		report_note("%s", text);
}

__attribute__((destructor))
static void finish(void)
{
	if (!started || call_is_forked())
		return;
	call_lock();
	check_leaks();
	trace_close();
	report_write_stats();
	call_set_ended();
	call_unlock();
}

CUresult cuDriverGetVersion(int *version)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_ANY)) {
		knobs_need();
		if (version)
			*version = (int)knobs.version;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

bool device_valid(CUdevice dev)
{
	return dev >= 0 && dev < knobs.devices;
}

static CUresult check(const void *out, CUdevice dev)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return device_valid(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = check(out, ordinal);
		if (!c.result)
			*out = ordinal;
	}
	return call_end(&c);
}

CUresult cuDeviceGetCount(int *out)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		if (out)
			*out = (int)knobs.devices;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = len > 0 ? check(name, dev)
			: CUDA_ERROR_INVALID_VALUE;
		if (!c.result)
			snprintf(name, (size_t)len, "Soft GPU sm_%d",
				(int)knobs.cc);
	}
	return call_end(&c);
}

static CUresult get_uuid(CUuuid *out, CUdevice dev)
{
	CUresult r = check(out, dev);

	if (r)
		return r;
	memcpy(out->bytes, "softcuda-device", sizeof(out->bytes));
	out->bytes[15] = (char)dev;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *out, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_uuid(out, dev);
	return call_end(&c);
}

CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_uuid(out, dev);
	return call_end(&c);
}

CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = check(out, dev);
		if (!c.result)
			*out = knobs.memory;
	}
	return call_end(&c);
}

CUresult cuDeviceCanAccessPeer(int *out, CUdevice dev, CUdevice peer)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = check(out, dev);
		if (!c.result && !device_valid(peer))
			c.result = CUDA_ERROR_INVALID_DEVICE;
		if (!c.result)
			*out = dev != peer;
	}
	return call_end(&c);
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = minor ? check(major, dev) : CUDA_ERROR_INVALID_VALUE;
		if (!c.result) {
			*major = (int)knobs.cc / 10;
			*minor = (int)knobs.cc % 10;
		}
	}
	return call_end(&c);
}

static CUresult p2p_attribute(int *out, CUdevice_P2PAttribute attr,
	CUdevice from, CUdevice to)
{
	CUresult r = check(out, from);

	if (r)
		return r;
	if (!device_valid(to) || from == to)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attr < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK
	    || attr > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	*out = attr == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
		|| attr == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *out, CUdevice_P2PAttribute attr,
	CUdevice from, CUdevice to)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = p2p_attribute(out, attr, from, to);
	return call_end(&c);
}

static CUresult get_pci_id(char *id, int len, CUdevice dev)
{
	CUresult r = check(id, dev);

	if (r)
		return r;
	return snprintf(id, len > 0 ? (size_t)len : 0, "0000:%02X:00.0",
		dev + 1) < len ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_pci_id(id, len, dev);
	return call_end(&c);
}

/* "domain:bus:device.function", of which all but the bus is zero here. */
static CUresult find_pci_id(CUdevice *out, const char *id)
{
	unsigned domain = 0, bus, device, function = 0;

	if (!out || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
		domain = function = 0;
		if (sscanf(id, "%x:%x.%x", &bus, &device, &function) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (domain || device || function || !device_valid((int)bus - 1))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (int)bus - 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *id)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = find_pci_id(out, id);
	return call_end(&c);
}

/* ---- attributes ----------------------------------------------------------------- */

/* Values that depend on no knob; what is not listed is 0. */
static const int attributes[] = {
#define IS(name, value) [CU_DEVICE_ATTRIBUTE_##name] = value,
	IS(MAX_THREADS_PER_BLOCK, 1024)
	IS(MAX_BLOCK_DIM_X, 1024)
	IS(MAX_BLOCK_DIM_Y, 1024)
	IS(MAX_BLOCK_DIM_Z, 64)
	IS(MAX_GRID_DIM_X, 2147483647)
	IS(MAX_GRID_DIM_Y, 65535)
	IS(MAX_GRID_DIM_Z, 65535)
	IS(MAX_SHARED_MEMORY_PER_BLOCK, 49152)
	IS(TOTAL_CONSTANT_MEMORY, 65536)
	IS(WARP_SIZE, 32)
	IS(MAX_PITCH, 2147483647)
	IS(MAX_REGISTERS_PER_BLOCK, 65536)
	IS(CLOCK_RATE, 1755000)
	IS(TEXTURE_ALIGNMENT, 512)
	IS(GPU_OVERLAP, 1)
	IS(MULTIPROCESSOR_COUNT, 132)
	IS(CAN_MAP_HOST_MEMORY, 1)
	IS(MAXIMUM_TEXTURE1D_WIDTH, 131072)
	IS(MAXIMUM_TEXTURE2D_WIDTH, 131072)
	IS(MAXIMUM_TEXTURE2D_HEIGHT, 65536)
	IS(MAXIMUM_TEXTURE3D_WIDTH, 16384)
	IS(MAXIMUM_TEXTURE3D_HEIGHT, 16384)
	IS(MAXIMUM_TEXTURE3D_DEPTH, 16384)
	IS(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768)
	IS(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768)
	IS(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048)
	IS(SURFACE_ALIGNMENT, 512)
	IS(CONCURRENT_KERNELS, 1)
	IS(ECC_ENABLED, 1)
	IS(MEMORY_CLOCK_RATE, 2619000)
	IS(GLOBAL_MEMORY_BUS_WIDTH, 5120)
	IS(L2_CACHE_SIZE, 52428800)
	IS(MAX_THREADS_PER_MULTIPROCESSOR, 2048)
	IS(UNIFIED_ADDRESSING, 1)
	IS(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768)
	IS(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048)
	IS(MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768)
	IS(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768)
	IS(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192)
	IS(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192)
	IS(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768)
	IS(TEXTURE_PITCH_ALIGNMENT, 32)
	IS(MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768)
	IS(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768)
	IS(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046)
	IS(MAXIMUM_SURFACE1D_WIDTH, 32768)
	IS(MAXIMUM_SURFACE2D_WIDTH, 131072)
	IS(MAXIMUM_SURFACE2D_HEIGHT, 65536)
	IS(MAXIMUM_SURFACE3D_WIDTH, 16384)
	IS(MAXIMUM_SURFACE3D_HEIGHT, 16384)
	IS(MAXIMUM_SURFACE3D_DEPTH, 16384)
	IS(MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768)
	IS(MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048)
	IS(MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768)
	IS(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768)
	IS(MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048)
	IS(MAXIMUM_SURFACECUBEMAP_WIDTH, 32768)
	IS(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768)
	IS(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046)
	IS(MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268435456)
	IS(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072)
	IS(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000)
	IS(MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120)
	IS(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768)
	IS(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768)
	IS(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768)
	IS(STREAM_PRIORITIES_SUPPORTED, 1)
	IS(GLOBAL_L1_CACHE_SUPPORTED, 1)
	IS(LOCAL_L1_CACHE_SUPPORTED, 1)
	IS(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472)
	IS(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)
	IS(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2)
	IS(COMPUTE_PREEMPTION_SUPPORTED, 1)
	IS(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)
	IS(COOPERATIVE_LAUNCH, 1)
	IS(MEMORY_POOLS_SUPPORTED, 1)
	IS(MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
	IS(CAN_USE_STREAM_MEM_OPS_V1, 1)
	IS(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1)
	IS(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1)
	IS(CAN_USE_64_BIT_STREAM_MEM_OPS, 1)
	IS(CAN_USE_STREAM_WAIT_VALUE_NOR, 1)
	IS(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448)
	IS(HOST_REGISTER_SUPPORTED, 1)
	IS(MAX_BLOCKS_PER_MULTIPROCESSOR, 32)
	IS(MAX_PERSISTING_L2_CACHE_SIZE, 32768000)
	IS(MAX_ACCESS_POLICY_WINDOW_SIZE, 134213632)
	IS(RESERVED_SHARED_MEMORY_PER_BLOCK, 1024)
	IS(READ_ONLY_HOST_REGISTER_SUPPORTED, 1)
	IS(MEM_SYNC_DOMAIN_COUNT, 1)
	IS(HOST_NUMA_ID, 0)
	IS(NUMA_ID, -1)
	IS(GPU_DIRECT_RDMA_SUPPORTED, 1)
	IS(DMA_BUF_SUPPORTED, 1)
	IS(GPU_PCI_DEVICE_ID, 0x233010de)
	[CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED] = 0,
#undef IS
};

int device_attribute(CUdevice_attribute attr, CUdevice dev)
{
	switch (attr) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return (int)knobs.cc / 10;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return (int)knobs.cc % 10;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		return dev + 1;
	case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
		return dev;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		return 2 * (int)knobs.copy_engines;
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
		return (int)knobs.vmm;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		return (int)(knobs.vmm && knobs.host_vmm);
	case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
		return knobs.cc >= 100 ? CU_MEM_DECOMPRESS_ALGORITHM_LZ4 : 0;
	case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH:
		return knobs.cc >= 100 ? 4 << 20 : 0;
	default:
		return attributes[attr];
	}
}

CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attr, CUdevice dev)
{
	const unsigned nr = sizeof(attributes) / sizeof(attributes[0]);
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = (unsigned)attr - 1 < nr - 1 ? check(out, dev)
			: CUDA_ERROR_INVALID_VALUE;
		if (!c.result)
			*out = device_attribute(attr, dev);
	}
	return call_end(&c);
}
