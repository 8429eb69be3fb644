/* NVRTC as far as it is used here, found by dlopen: nothing of it is linked. */

#include <stddef.h>

typedef struct _nvrtcProgram *nvrtcProgram;
typedef int nvrtcResult;

/* One a line: the functions, with their parameter types as in nvrtc.h. */
#define NVRTC_FUNCTIONS(FUNCTION)                                                               \
    FUNCTION(nvrtcVersion, (int *, int *))                                                      \
    FUNCTION(nvrtcGetNumSupportedArchs, (int *))                                                \
    FUNCTION(nvrtcGetSupportedArchs, (int *))                                                   \
    FUNCTION(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int,              \
                                  const char *const *, const char *const *))                    \
    FUNCTION(nvrtcDestroyProgram, (nvrtcProgram *))                                             \
    FUNCTION(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                     \
    FUNCTION(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                                  \
    FUNCTION(nvrtcGetProgramLog, (nvrtcProgram, char *))                                        \
    FUNCTION(nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                       \
    FUNCTION(nvrtcGetCUBIN, (nvrtcProgram, char *))                                             \
    FUNCTION(nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                         \
    FUNCTION(nvrtcGetPTX, (nvrtcProgram, char *))

/* A library that was opened. It is never closed: NVRTC leaves destructors behind. */
struct rtc {
#define FUNCTION(name, parameters) nvrtcResult(*name) parameters;
    NVRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    const char *(*nvrtcGetErrorString)(nvrtcResult);
    char path[4096]; /* of its file, as the dynamic linker has it */
};

/* What a compilation gave. The pointers are malloc's and the caller's to free; NULL where there is
 * nothing. */
struct rtc_output {
    nvrtcResult result;
    const char *call; /* the function that gave a result other than 0 */
    char *image, *log;
    size_t image_bytes;
};

/* 1, or 0 with the reason in why. */
int rtc_open(const char *path, struct rtc *library, char *why, size_t why_bytes);
int rtc_version(const struct rtc *library, int *major, int *minor);
/* How many architectures there are; at most n of them stand in list. -1: it cannot say. */
int rtc_architectures(const struct rtc *library, int *list, int n);
const char *rtc_error(const struct rtc *library, nvrtcResult result);
void rtc_compile(const struct rtc *library, const char *source, const char *name, int num_headers,
                 char **headers, char **header_names, int num_options, char **options, int ptx,
                 struct rtc_output *output);
