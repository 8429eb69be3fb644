/* An NVRTC for tests: its image is a list of all that it was given. A source that begins with "error"
 * does not compile. Built with -DMAJOR=13 it is of CUDA 13, with -DLACKING it has no nvrtcGetCUBIN. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 12
#endif

struct program {
    char text[1 << 16];
    size_t size;
};

int nvrtcVersion(int *major, int *minor) { return *major = MAJOR, *minor = 4, 0; }
int nvrtcGetNumSupportedArchs(int *n) { return *n = 3, 0; }
int nvrtcGetSupportedArchs(int *list) { return list[0] = 90, list[1] = 75, list[2] = 80, 0; }
const char *nvrtcGetErrorString(int e) { return e == 6 ? "NVRTC_ERROR_COMPILATION" : NULL; }

static void add(struct program *p, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    p->size += (size_t)vsnprintf(p->text + p->size, sizeof p->text - p->size, format, values);
    va_end(values);
}

int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names)
{
    if (strcmp(name, "refused") == 0)
        return 3;
    *program = calloc(1, sizeof **program);
    add(*program, "%s=%s", name, source);
    for (int i = 0; i < n; i++)
        add(*program, "|%s=%s", names[i], headers[i]);
    return 0;
}

int nvrtcDestroyProgram(struct program **program) { return free(*program), *program = NULL, 0; }

int nvrtcCompileProgram(struct program *p, int n, const char *const *options)
{
    for (int i = 0; i < n; i++)
        add(p, "|%s", options[i]);
    return strstr(p->text, "=error") ? 6 : 0;
}

int nvrtcGetProgramLogSize(struct program *p, size_t *n) { return (void)p, *n = 8, 0; }
int nvrtcGetProgramLog(struct program *p, char *log) { return (void)p, memcpy(log, "line 7\n", 8), 0; }
int nvrtcGetCUBINSize(struct program *p, size_t *n) { return *n = strstr(p->text, "=empty") ? 0 : p->size, 0; }
int nvrtcGetPTXSize(struct program *p, size_t *n) { return *n = 4, (void)p, 0; }
int nvrtcGetPTX(struct program *p, char *ptx) { return (void)p, memcpy(ptx, "PTX", 4), 0; }
#ifndef LACKING
int nvrtcGetCUBIN(struct program *p, char *image) { return memcpy(image, p->text, p->size), 0; }
#endif
