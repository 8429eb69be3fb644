/* The driver's functions as Go calls them, but those that mumax's package cu calls; README.md has
 * both, with reasons. cu's functions act on whatever context is current on the calling thread. Each
 * function here makes its context current for the length of the call and then restores the former
 * one, so that a caller may be on any thread and the current context never changes for others.
 *
 * Handles are integers here. Go may not hold 1 and 2, which name streams, in a pointer: moving a
 * goroutine's stack ends the process when it finds them there.
 *
 * A result of the switch of contexts is not the call's own; BY_ says whose it is. */

#ifndef GPU_CALLS_H
#define GPU_CALLS_H

#include <cuda.h>
#include <stdint.h>

typedef uintptr_t handle;

enum { BY_CURRENT = 1 << 16, BY_PUSH = 2 << 16, BY_POP = 3 << 16, RESULT = 0xffff };

/* Makes context current. *pushed gets whether there is something to pop. */
static inline int gpu_enter(handle context, int *pushed)
{
    CUcontext current = NULL;
    CUresult result = cuCtxGetCurrent(&current);
    *pushed = 0;
    if (result != CUDA_SUCCESS)
        return result | BY_CURRENT;
    if (current == (CUcontext)context)
        return 0;
    if ((result = cuCtxPushCurrent((CUcontext)context)) != CUDA_SUCCESS)
        return result | BY_PUSH;
    *pushed = 1;
    return 0;
}

/* Undoes gpu_enter and returns `result`, that of the work between the two. A pop that fails is
 * tried again where it has left the context in place: the work has been done, so there is nothing
 * that a caller could do about it. */
static inline int gpu_leave(handle context, int pushed, int result)
{
    if (!pushed)
        return result;
    CUcontext current = NULL;
    CUresult left = cuCtxPopCurrent(&current);
    if (left != CUDA_SUCCESS && cuCtxGetCurrent(&current) == CUDA_SUCCESS)
        left = current == (CUcontext)context ? cuCtxPopCurrent(&current) : CUDA_SUCCESS;
    return result == 0 && left != CUDA_SUCCESS ? left | BY_POP : result;
}

#define IN_CONTEXT(context, call)                          \
    int pushed, result;                                    \
    if ((result = gpu_enter(context, &pushed)))            \
        return result;                                     \
    result = call;                                         \
    return gpu_leave(context, pushed, result)

/* ---- contexts ---- */

static inline int gpu_retain(int device, handle *context)
{
    return cuDevicePrimaryCtxRetain((CUcontext *)context, device);
}

static inline int gpu_release(int device)
{
    return cuDevicePrimaryCtxRelease(device);
}

/* For C alone: leases of memory, which end without Go (internal/memory/device.c). */
static inline int gpu_synchronize(handle context)
{
    IN_CONTEXT(context, cuCtxSynchronize());
}

/* ---- streams and events ---- */

static inline int gpu_stream_create(handle context, handle *stream)
{
    IN_CONTEXT(context, cuStreamCreate((CUstream *)stream, CU_STREAM_NON_BLOCKING));
}

static inline int gpu_stream_context(handle context, handle stream, handle *owner)
{
    IN_CONTEXT(context, cuStreamGetCtx((CUstream)stream, (CUcontext *)owner));
}

static inline int gpu_stream_query(handle context, handle stream)
{
    IN_CONTEXT(context, cuStreamQuery((CUstream)stream));
}

static inline int gpu_stream_synchronize(handle context, handle stream)
{
    IN_CONTEXT(context, cuStreamSynchronize((CUstream)stream));
}

static inline int gpu_stream_wait(handle context, handle stream, handle event)
{
    IN_CONTEXT(context, cuStreamWaitEvent((CUstream)stream, (CUevent)event, 0));
}

static inline int gpu_event_create(handle context, unsigned flags, handle *event)
{
    IN_CONTEXT(context, cuEventCreate((CUevent *)event, flags));
}

static inline int gpu_event_destroy(handle context, handle event)
{
    IN_CONTEXT(context, cuEventDestroy((CUevent)event));
}

static inline int gpu_event_record(handle context, handle event, handle stream)
{
    IN_CONTEXT(context, cuEventRecord((CUevent)event, (CUstream)stream));
}

static inline int gpu_event_query(handle context, handle event)
{
    IN_CONTEXT(context, cuEventQuery((CUevent)event));
}

static inline int gpu_event_synchronize(handle context, handle event)
{
    IN_CONTEXT(context, cuEventSynchronize((CUevent)event));
}

static inline int gpu_event_elapsed(handle context, handle start, handle stop, float *ms)
{
    IN_CONTEXT(context, cuEventElapsedTime(ms, (CUevent)start, (CUevent)stop));
}

/* ---- device memory ---- */

static inline int gpu_pool_create(handle context, int device, handle *pool)
{
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    IN_CONTEXT(context, cuMemPoolCreate((CUmemoryPool *)pool, &properties));
}

static inline int gpu_pool_destroy(handle context, handle pool)
{
    IN_CONTEXT(context, cuMemPoolDestroy((CUmemoryPool)pool));
}

static inline int gpu_pool_keep(handle context, handle pool, uint64_t bytes)
{
    cuuint64_t value = bytes;
    IN_CONTEXT(context, cuMemPoolSetAttribute((CUmemoryPool)pool,
                                              CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
}

static inline int gpu_pool_reserved(handle context, handle pool, uint64_t *bytes)
{
    IN_CONTEXT(context, cuMemPoolGetAttribute((CUmemoryPool)pool,
                                              CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, bytes));
}

static inline int gpu_pool_trim(handle context, handle pool, uint64_t keep)
{
    IN_CONTEXT(context, cuMemPoolTrimTo((CUmemoryPool)pool, keep));
}

static inline int gpu_alloc(handle context, handle pool, handle stream, uint64_t bytes,
                            uint64_t *address)
{
    CUdeviceptr pointer = 0;
    IN_CONTEXT(context, cuMemAllocFromPoolAsync(&pointer, bytes, (CUmemoryPool)pool,
                                                (CUstream)stream);
               *address = pointer);
}

static inline int gpu_free(handle context, handle stream, uint64_t address)
{
    IN_CONTEXT(context, cuMemFreeAsync(address, (CUstream)stream));
}

/* ---- host memory ---- */

static inline int gpu_host_alloc(handle context, uint64_t bytes, void **pointer)
{
    IN_CONTEXT(context, cuMemHostAlloc(pointer, bytes,
                                       CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
}

static inline int gpu_host_address(handle context, handle pointer, uint64_t *address)
{
    CUdeviceptr mapped = 0;
    IN_CONTEXT(context, cuMemHostGetDevicePointer(&mapped, (void *)pointer, 0);
               *address = mapped);
}

static inline int gpu_register(handle context, handle pointer, uint64_t bytes, int read_only)
{
    unsigned flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    if (read_only)
        flags |= CU_MEMHOSTREGISTER_READ_ONLY;
    IN_CONTEXT(context, cuMemHostRegister((void *)pointer, bytes, flags));
}

static inline int gpu_unregister(handle context, handle pointer)
{
    IN_CONTEXT(context, cuMemHostUnregister((void *)pointer));
}

/* Any attribute that fits 8 bytes; the upper half of a shorter one stays 0. */
static inline int gpu_pointer_attribute(uint64_t address, int attribute, uint64_t *value)
{
    *value = 0;
    return cuPointerGetAttribute(value, (CUpointer_attribute)attribute, address);
}

/* ---- memory that several devices and processes map ---- */

/* Memory of a device that has no address yet; a shareable one can be exported as a file descriptor. */
static inline CUmemAllocationProp gpu_piece_of(int device, int shareable)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = shareable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                          : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    return properties;
}

static inline int gpu_granularity(handle context, int device, int shareable, uint64_t *bytes)
{
    size_t size = 0;
    CUmemAllocationProp properties = gpu_piece_of(device, shareable);
    IN_CONTEXT(context, cuMemGetAllocationGranularity(&size, &properties,
                                                      CU_MEM_ALLOC_GRANULARITY_MINIMUM);
               *bytes = size);
}

static inline int gpu_piece_create(handle context, int device, int shareable, uint64_t bytes,
                                   uint64_t *piece)
{
    CUmemGenericAllocationHandle made = 0;
    CUmemAllocationProp properties = gpu_piece_of(device, shareable);
    IN_CONTEXT(context, cuMemCreate(&made, bytes, &properties, 0); *piece = made);
}

static inline int gpu_piece_release(handle context, uint64_t piece)
{
    IN_CONTEXT(context, cuMemRelease(piece));
}

static inline int gpu_piece_export(handle context, uint64_t piece, int *descriptor)
{
    IN_CONTEXT(context, cuMemExportToShareableHandle(descriptor, piece,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
}

static inline int gpu_piece_import(handle context, int descriptor, uint64_t *piece)
{
    CUmemGenericAllocationHandle made = 0;
    IN_CONTEXT(context,
               cuMemImportFromShareableHandle(&made, (void *)(handle)descriptor,
                                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
               *piece = made);
}

static inline int gpu_reserve(handle context, uint64_t bytes, uint64_t *address)
{
    CUdeviceptr pointer = 0;
    IN_CONTEXT(context, cuMemAddressReserve(&pointer, bytes, 0, 0, 0); *address = pointer);
}

static inline int gpu_unreserve(handle context, uint64_t address, uint64_t bytes)
{
    IN_CONTEXT(context, cuMemAddressFree(address, bytes));
}

static inline int gpu_map(handle context, uint64_t address, uint64_t bytes, uint64_t piece)
{
    IN_CONTEXT(context, cuMemMap(address, bytes, 0, piece, 0));
}

static inline int gpu_unmap(handle context, uint64_t address, uint64_t bytes)
{
    IN_CONTEXT(context, cuMemUnmap(address, bytes));
}

static inline int gpu_access(handle context, uint64_t address, uint64_t bytes, int device)
{
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    IN_CONTEXT(context, cuMemSetAccess(address, bytes, &access, 1));
}

static inline int gpu_uuid(int device, unsigned char *bytes)
{
    return cuDeviceGetUuid_v2((CUuuid *)bytes, device);
}

/* ---- copies and fills ---- */

static inline int gpu_copy(handle context, handle stream, uint64_t to, uint64_t from,
                           uint64_t bytes)
{
    IN_CONTEXT(context, cuMemcpyAsync(to, from, bytes, (CUstream)stream));
}

static inline int gpu_upload(handle context, handle stream, uint64_t to, const void *from,
                             uint64_t bytes)
{
    IN_CONTEXT(context, cuMemcpyHtoDAsync(to, from, bytes, (CUstream)stream));
}

static inline int gpu_download(handle context, handle stream, void *to, uint64_t from,
                               uint64_t bytes)
{
    IN_CONTEXT(context, cuMemcpyDtoHAsync(to, from, bytes, (CUstream)stream));
}

static inline int gpu_fill8(handle context, handle stream, uint64_t to, uint8_t value,
                            uint64_t count)
{
    IN_CONTEXT(context, cuMemsetD8Async(to, value, count, (CUstream)stream));
}

static inline int gpu_fill32(handle context, handle stream, uint64_t to, uint32_t value,
                             uint64_t count)
{
    IN_CONTEXT(context, cuMemsetD32Async(to, value, count, (CUstream)stream));
}

/* ---- modules, functions, launches ---- */

static inline int gpu_load(handle context, const void *image, char *errors, char *notes,
                           unsigned size, handle *module)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {errors, (void *)(handle)size, notes, (void *)(handle)size};
    IN_CONTEXT(context, cuModuleLoadDataEx((CUmodule *)module, image, 4, options, values));
}

static inline int gpu_unload(handle context, handle module)
{
    IN_CONTEXT(context, cuModuleUnload((CUmodule)module));
}

static inline int gpu_function(handle context, handle module, const char *name, handle *function)
{
    IN_CONTEXT(context, cuModuleGetFunction((CUfunction *)function, (CUmodule)module, name));
}

static inline int gpu_function_set(handle context, handle function, int attribute, int value)
{
    IN_CONTEXT(context, cuFuncSetAttribute((CUfunction)function,
                                           (CUfunction_attribute)attribute, value));
}

static inline int gpu_parameter(handle context, handle function, int index, uint64_t *bytes)
{
    size_t offset, size = 0;
    IN_CONTEXT(context, cuFuncGetParamInfo((CUfunction)function, (size_t)index, &offset, &size);
               *bytes = size);
}

static inline int gpu_occupancy(handle context, handle function, int threads, uint64_t shared,
                                int *blocks)
{
    IN_CONTEXT(context, cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (CUfunction)function,
                                                                    threads, shared));
}

/* grid and block have three members each; 0 stands for 1. args is the kernel's one parameter. */
static inline int gpu_launch(handle context, handle function, handle stream, const uint32_t *grid,
                             const uint32_t *block, uint32_t shared, int cooperative, void *args)
{
    unsigned gx = grid[0], gy = grid[1] + !grid[1], gz = grid[2] + !grid[2];
    unsigned bx = block[0], by = block[1] + !block[1], bz = block[2] + !block[2];
    CUfunction f = (CUfunction)function;
    CUstream s = (CUstream)stream;
    void *parameters[] = {args};
    IN_CONTEXT(context,
               cooperative
                   ? cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, s, parameters)
                   : cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, parameters, NULL));
}

#endif
