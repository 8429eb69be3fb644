/* A driver for tests. Built as libcuda.so.1 into a folder that LD_LIBRARY_PATH names, it answers
 * the questions about devices; what it answers is set by the environment:
 *
 *   FAKE_CUDA_DEVICES  how many devices there are (2)
 *   FAKE_CUDA_INIT     the result of cuInit (0)
 *   FAKE_CUDA_LOG      a file that gets one line when the library is loaded and one for each cuInit
 *
 * Linked with fake_work.c, and built with -DWORKING, it can also do the work of a driver.
 * Built with -DLACKING it has no cuDeviceGetName and no functions that explain errors.
 * cuMemcpyPeerAsync and cuLaunchKernel fail unless each argument arrives at its place, whole.
 *
 * Built with -DEMULATED it is the driver of tests/emulator. */

#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long word;

int number(const char *variable, int otherwise);
void note(const char *line);

static int initialised;

int number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

void note(const char *line)
{
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file == NULL)
        return;
    fputs(line, file);
    fclose(file);
}

__attribute__((constructor)) static void loaded(void)
{
    note("load\n");
}

int cuInit(unsigned int flags)
{
    note("cuInit\n");
    int result = flags ? 1 : number("FAKE_CUDA_INIT", 0);
    initialised = result == 0;
    return result;
}

int cuDriverGetVersion(int *version)
{
    *version = 12090;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = number("FAKE_CUDA_DEVICES", 2);
    return initialised ? 0 : 3;
}

/* Handles differ from indices, so that one cannot pass for the other. */
int cuDeviceGet(int *device, int index)
{
    *device = 40 + index;
    return !initialised ? 3 : index < 0 || index >= number("FAKE_CUDA_DEVICES", 2) ? 101 : 0;
}

#ifdef WORKING
int cuDeviceGetAttribute_of_work(int *value, int attribute);
#else
#define cuDeviceGetAttribute_of_work(value, attribute) 1
#endif

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
#ifdef EMULATED
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
#else
    *value = attribute == 75 ? 9 : attribute == 76 ? device - 40 : -1;
#endif
    return *value < 0 ? cuDeviceGetAttribute_of_work(value, attribute) : 0;
}

#ifndef WORKING

int cuMemcpyPeerAsync(word a, void *b, word c, void *d, size_t e, void *f)
{
    const word top = 1ULL << 63;
    return a == top + 1 && (word)b == top + 2 && c == top + 3 && (word)d == top + 4 &&
                   e == top + 5 && (word)f == top + 6
               ? 0
               : 1;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
    return (word)f == (1ULL << 63) + 1 && gx == 2 && gy == 3 && gz == 4 && bx == 5 && by == 6 &&
                   bz == 7 && shared == 0xffffffffu && (word)stream == (1ULL << 63) + 8 &&
                   *(word *)parameters[0] == 9 && extra == NULL
               ? 0
               : 1;
}
#endif

#ifndef LACKING
int cuDeviceGetName(char *name, int length, int device)
{
#ifdef EMULATED
    snprintf(name, (size_t)length, "Emulated GPU %d", device - 40);
#else
    snprintf(name, (size_t)length, "Fake GPU %d", device - 40);
#endif
    return 0;
}

static const struct error {
    int result;
    const char *name, *text;
} errors[] = {
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
#ifdef EMULATED
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "operation not supported on global/shared address space"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"},
#endif
};

static const struct error *find_error(int result)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result)
            return &errors[i];
    return NULL;
}

int cuGetErrorName(int result, const char **text)
{
    const struct error *e = find_error(result);
    *text = e ? e->name : NULL;
    return e ? 0 : 1;
}

int cuGetErrorString(int result, const char **text)
{
    const struct error *e = find_error(result);
    *text = e ? e->text : NULL;
    return e ? 0 : 1;
}
#endif
