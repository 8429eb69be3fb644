/* The driver functions that the extension links, one a line, with their parameter types.
 *
 * Every file that includes this defines DRIVER(name, parameters, arguments) first: the shim makes
 * functions of the lines, the Go package compares them with cuda.h. The parameters' names are made
 * here, so that no line can hand them on in another order than it takes them.
 *
 * Names are those of the driver's symbols: the second version of a function (64-bit sizes and
 * pointers) has a suffix which cuda.h hides behind a macro of the plain name. */

#ifndef DRIVER_0
#define DRIVER_0(f) DRIVER(f, (void), ())
#define DRIVER_1(f, A) DRIVER(f, (A a), (a))
#define DRIVER_2(f, A, B) DRIVER(f, (A a, B b), (a, b))
#define DRIVER_3(f, A, B, C) DRIVER(f, (A a, B b, C c), (a, b, c))
#define DRIVER_4(f, A, B, C, D) DRIVER(f, (A a, B b, C c, D d), (a, b, c, d))
#define DRIVER_5(f, A, B, C, D, E) DRIVER(f, (A a, B b, C c, D d, E e), (a, b, c, d, e))
#define DRIVER_6(fn, A, B, C, D, E, F) \
    DRIVER(fn, (A a, B b, C c, D d, E e, F f), (a, b, c, d, e, f))
#define DRIVER_10(fn, A, B, C, D, E, F, G, H, I, J)                            \
    DRIVER(fn, (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j),             \
           (a, b, c, d, e, f, g, h, i, j))
#define DRIVER_11(fn, A, B, C, D, E, F, G, H, I, J, K)                          \
    DRIVER(fn, (A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k),         \
           (a, b, c, d, e, f, g, h, i, j, k))
#endif

/* start, version, errors */
DRIVER_1(cuInit, unsigned int)
DRIVER_1(cuDriverGetVersion, int *)
DRIVER_2(cuGetErrorName, CUresult, const char **)
DRIVER_2(cuGetErrorString, CUresult, const char **)

/* devices */
DRIVER_1(cuDeviceGetCount, int *)
DRIVER_2(cuDeviceGet, CUdevice *, int)
DRIVER_3(cuDeviceGetName, char *, int, CUdevice)
DRIVER_3(cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice)
DRIVER_2(cuDeviceGetProperties, CUdevprop *, CUdevice)
DRIVER_3(cuDeviceComputeCapability, int *, int *, CUdevice)
DRIVER_2(cuDeviceTotalMem_v2, size_t *, CUdevice)
DRIVER_3(cuDeviceCanAccessPeer, int *, CUdevice, CUdevice)
DRIVER_2(cuDeviceGetUuid_v2, CUuuid *, CUdevice)

/* contexts */
DRIVER_3(cuCtxCreate_v2, CUcontext *, unsigned int, CUdevice)
DRIVER_1(cuCtxDestroy_v2, CUcontext)
DRIVER_2(cuCtxGetApiVersion, CUcontext, unsigned int *)
DRIVER_1(cuCtxGetCurrent, CUcontext *)
DRIVER_1(cuCtxSetCurrent, CUcontext)
DRIVER_1(cuCtxGetDevice, CUdevice *)
DRIVER_0(cuCtxSynchronize)
DRIVER_2(cuCtxEnablePeerAccess, CUcontext, unsigned int)
DRIVER_1(cuCtxDisablePeerAccess, CUcontext)
DRIVER_1(cuCtxPushCurrent_v2, CUcontext)
DRIVER_1(cuCtxPopCurrent_v2, CUcontext *)
DRIVER_2(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)
DRIVER_1(cuDevicePrimaryCtxRelease_v2, CUdevice)

/* streams and events */
DRIVER_2(cuStreamCreate, CUstream *, unsigned int)
DRIVER_1(cuStreamDestroy_v2, CUstream)
DRIVER_1(cuStreamQuery, CUstream)
DRIVER_1(cuStreamSynchronize, CUstream)
DRIVER_2(cuStreamGetCtx, CUstream, CUcontext *)
DRIVER_3(cuStreamWaitEvent, CUstream, CUevent, unsigned int)
DRIVER_2(cuEventCreate, CUevent *, unsigned int)
DRIVER_1(cuEventDestroy_v2, CUevent)
DRIVER_2(cuEventRecord, CUevent, CUstream)
DRIVER_1(cuEventQuery, CUevent)
DRIVER_1(cuEventSynchronize, CUevent)
DRIVER_3(cuEventElapsedTime, float *, CUevent, CUevent)

/* memory */
DRIVER_2(cuMemAlloc_v2, CUdeviceptr *, size_t)
DRIVER_1(cuMemFree_v2, CUdeviceptr)
DRIVER_2(cuMemAllocHost_v2, void **, size_t)
DRIVER_1(cuMemFreeHost, void *)
DRIVER_2(cuMemGetInfo_v2, size_t *, size_t *)
DRIVER_3(cuMemGetAddressRange_v2, CUdeviceptr *, size_t *, CUdeviceptr)
DRIVER_3(cuPointerGetAttribute, void *, CUpointer_attribute, CUdeviceptr)
DRIVER_2(cuMemPoolCreate, CUmemoryPool *, const CUmemPoolProps *)
DRIVER_1(cuMemPoolDestroy, CUmemoryPool)
DRIVER_3(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void *)
DRIVER_3(cuMemPoolGetAttribute, CUmemoryPool, CUmemPool_attribute, void *)
DRIVER_2(cuMemPoolTrimTo, CUmemoryPool, size_t)
DRIVER_4(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream)
DRIVER_2(cuMemFreeAsync, CUdeviceptr, CUstream)
DRIVER_3(cuMemHostAlloc, void **, size_t, unsigned int)
DRIVER_3(cuMemHostGetDevicePointer_v2, CUdeviceptr *, void *, unsigned int)
DRIVER_3(cuMemHostRegister_v2, void *, size_t, unsigned int)
DRIVER_1(cuMemHostUnregister, void *)

/* memory that several devices and processes map */
DRIVER_3(cuMemGetAllocationGranularity, size_t *, const CUmemAllocationProp *,
         CUmemAllocationGranularity_flags)
DRIVER_4(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
         unsigned long long)
DRIVER_1(cuMemRelease, CUmemGenericAllocationHandle)
DRIVER_5(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)
DRIVER_2(cuMemAddressFree, CUdeviceptr, size_t)
DRIVER_5(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)
DRIVER_2(cuMemUnmap, CUdeviceptr, size_t)
DRIVER_4(cuMemSetAccess, CUdeviceptr, size_t, const CUmemAccessDesc *, size_t)
DRIVER_4(cuMemExportToShareableHandle, void *, CUmemGenericAllocationHandle,
         CUmemAllocationHandleType, unsigned long long)
DRIVER_3(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *, void *,
         CUmemAllocationHandleType)

/* copies and fills */
DRIVER_3(cuMemcpy, CUdeviceptr, CUdeviceptr, size_t)
DRIVER_4(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, size_t, CUstream)
DRIVER_3(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, size_t)
DRIVER_4(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, size_t, CUstream)
DRIVER_3(cuMemcpyDtoH_v2, void *, CUdeviceptr, size_t)
DRIVER_4(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream)
DRIVER_3(cuMemcpyHtoD_v2, CUdeviceptr, const void *, size_t)
DRIVER_4(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream)
DRIVER_5(cuMemcpyPeer, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t)
DRIVER_6(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)
DRIVER_3(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)
DRIVER_4(cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream)
DRIVER_3(cuMemsetD32_v2, CUdeviceptr, unsigned int, size_t)
DRIVER_4(cuMemsetD32Async, CUdeviceptr, unsigned int, size_t, CUstream)

/* modules and launches */
DRIVER_2(cuModuleLoad, CUmodule *, const char *)
DRIVER_2(cuModuleLoadData, CUmodule *, const void *)
DRIVER_5(cuModuleLoadDataEx, CUmodule *, const void *, unsigned int, CUjit_option *, void **)
DRIVER_1(cuModuleUnload, CUmodule)
DRIVER_3(cuModuleGetFunction, CUfunction *, CUmodule, const char *)
DRIVER_3(cuFuncGetAttribute, int *, CUfunction_attribute, CUfunction)
DRIVER_3(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int)
DRIVER_4(cuFuncGetParamInfo, CUfunction, size_t, size_t *, size_t *)
DRIVER_4(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *, CUfunction, int, size_t)
DRIVER_11(cuLaunchKernel, CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
          unsigned int, unsigned int, unsigned int, CUstream, void **, void **)
DRIVER_10(cuLaunchCooperativeKernel, CUfunction, unsigned int, unsigned int, unsigned int,
          unsigned int, unsigned int, unsigned int, unsigned int, CUstream, void **)
