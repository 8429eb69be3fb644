/* A libcuda.a that holds no driver: each function opens the machine's own at the first call.
 *
 * The extension must load on machines without a GPU, so it may not name libcuda.so.1 as a library
 * that it needs. Linking this archive instead satisfies every reference to the driver.
 *
 * Invariants:
 *   - nothing happens before the first call; then the driver is opened once, whichever threads
 *     call, and never closed, since its own threads run on in it;
 *   - without a driver every function returns CUDA_ERROR_NO_DEVICE, and a function that this
 *     driver lacks returns CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: not CUDA_ERROR_NOT_FOUND,
 *     which the driver itself gives for a kernel that a module lacks;
 *   - while shim_fault watches, calls that reach the driver are counted, and those that it names
 *     fail in its place; otherwise that costs one load of a variable that nobody writes;
 *   - all symbols are hidden: a process that also loads the true driver, as every torch with CUDA
 *     does, must never find these under its names.
 *
 * No cuda.h here: the types below are all that the calling convention needs, and gpu/shim.go lets
 * the compiler compare functions.h with the true header at every build. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUpointer_attribute;
typedef int CUmemPool_attribute, CUjit_option;
typedef int CUmemAllocationGranularity_flags, CUmemAllocationHandleType;
typedef unsigned long long CUdeviceptr, CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUdevprop_st CUdevprop;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUmemPoolProps_st CUmemPoolProps;
typedef struct CUmemAllocationProp_st CUmemAllocationProp;
typedef struct CUmemAccessDesc_st CUmemAccessDesc;
typedef struct CUuuid_st CUuuid;

enum { SUCCESS = 0, NO_DEVICE = 100, SHARED_OBJECT_SYMBOL_NOT_FOUND = 302 };

/* A member stays NULL where the driver lacks the function. Written by load alone. */
static struct {
#define DRIVER(name, parameters, arguments) CUresult(*name) parameters;
#include "functions.h"
#undef DRIVER
} driver;

static CUresult loaded;
static char failure[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        snprintf(failure, sizeof failure, "%s", why ? why : "cannot open libcuda.so.1");
        loaded = NO_DEVICE;
        return;
    }
#define DRIVER(name, parameters, arguments) \
    driver.name = (CUresult(*) parameters)dlsym(library, #name);
#include "functions.h"
#undef DRIVER
}

/* The calls to count and to fail. Zeros: none. */
static struct {
    atomic_int watching, code, sticky;
    atomic_llong calls, first;
    const char *_Atomic name;
} fault;

/* The result that the next call has instead of the driver's; SUCCESS: the driver's own. */
static CUresult faulty(const char *name)
{
    if (!atomic_load_explicit(&fault.watching, memory_order_relaxed))
        return SUCCESS;
    long long call = atomic_fetch_add(&fault.calls, 1) + 1;
    long long first = atomic_load(&fault.first);
    int fails = first > 0 && (call == first || (call > first && atomic_load(&fault.sticky)));
    if (!fails)
        return SUCCESS;
    atomic_store(&fault.name, name);
    return atomic_load(&fault.code);
}

#pragma GCC visibility push(hidden)

/* Counts calls from here on, and lets the first-th of them fail with code, and all later ones too
 * if sticky. first 0 counts alone; first -1 ends it, and the count stays readable. */
void shim_fault(long long first, int code, int sticky)
{
    atomic_store(&fault.watching, 0);
    atomic_store(&fault.first, first);
    atomic_store(&fault.code, code);
    atomic_store(&fault.sticky, sticky);
    if (first < 0)
        return;
    atomic_store(&fault.calls, 0);
    atomic_store(&fault.name, "");
    atomic_store(&fault.watching, 1);
}

/* How many calls reached the driver, or failed in its place, since shim_fault began to count. */
long long shim_calls(void)
{
    return atomic_load(&fault.calls);
}

/* Why the driver could not be opened; empty when it was. Opens it when nobody has yet. */
const char *shim_failure(void)
{
    pthread_once(&once, load);
    return failure;
}

/* The function that shim_fault last let fail; empty when none. */
const char *shim_faulted(void)
{
    const char *name = atomic_load(&fault.name);
    return name ? name : "";
}

#define DRIVER(name, parameters, arguments)                                          \
    CUresult name parameters                                                         \
    {                                                                                \
        pthread_once(&once, load);                                                   \
        if (loaded != SUCCESS)                                                       \
            return loaded;                                                           \
        CUresult injected = faulty(#name);                                           \
        if (injected != SUCCESS)                                                     \
            return injected;                                                         \
        return driver.name ? driver.name arguments : SHARED_OBJECT_SYMBOL_NOT_FOUND; \
    }
#include "functions.h"

#pragma GCC visibility pop
