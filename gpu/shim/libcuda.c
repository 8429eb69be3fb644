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
 *   - all symbols are hidden: a process that also loads the true driver, as every torch with CUDA
 *     does, must never find these under its names.
 *
 * No cuda.h here: the types below are all that the calling convention needs, and gpu/shim.go lets
 * the compiler compare functions.h with the true header at every build. */

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUpointer_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUdevprop_st CUdevprop;

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

#pragma GCC visibility push(hidden)

/* Why the driver could not be opened; empty when it was. Opens it when nobody has yet. */
const char *shim_failure(void)
{
    pthread_once(&once, load);
    return failure;
}

#define DRIVER(name, parameters, arguments)                                          \
    CUresult name parameters                                                         \
    {                                                                                \
        pthread_once(&once, load);                                                   \
        if (loaded != SUCCESS)                                                       \
            return loaded;                                                           \
        return driver.name ? driver.name arguments : SHARED_OBJECT_SYMBOL_NOT_FOUND; \
    }
#include "functions.h"

#pragma GCC visibility pop
