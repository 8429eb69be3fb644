/* A driver for tests. Built as libcuda.so.1 into a folder that LD_LIBRARY_PATH names, it answers
 * the questions about devices; what it answers is set by the environment:
 *
 *   FAKE_CUDA_DEVICES  how many devices there are (2)
 *   FAKE_CUDA_INIT     the result of cuInit (0)
 *   FAKE_CUDA_LOG      a file that gets one line when the library is loaded and one for each cuInit
 *
 * Linked with fake_work.c, and built with -DWORKING, it can also do the work of a driver.
 * Built with -DLACKING it has no cuDeviceGetName and no functions that explain errors.
 * cuMemcpyPeerAsync and cuLaunchKernel fail unless each argument arrives at its place, whole. */

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
    *value = attribute == 75 ? 9 : attribute == 76 ? device - 40 : -1;
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
    snprintf(name, (size_t)length, "Fake GPU %d", device - 40);
    return 0;
}

int cuGetErrorName(int result, const char **text)
{
    *text = result == 999 ? "CUDA_ERROR_UNKNOWN" : NULL;
    return *text ? 0 : 1;
}

int cuGetErrorString(int result, const char **text)
{
    *text = result == 999 ? "unknown error" : NULL;
    return *text ? 0 : 1;
}
#endif
