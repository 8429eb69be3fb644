#define _GNU_SOURCE
#include "nvrtc.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

int rtc_open(const char *path, struct rtc *library, char *why, size_t why_bytes)
{
    /* RTLD_LOCAL: torch may have one of another version, under the same names. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *lacking = NULL;
    if (handle == NULL) {
        const char *reason = dlerror();
        snprintf(why, why_bytes, "%s", reason ? reason : "cannot be opened");
        return 0;
    }
#define FUNCTION(name, parameters)                                                  \
    library->name = (nvrtcResult(*) parameters)dlsym(handle, #name);                \
    if (library->name == NULL)                                                      \
        lacking = #name;
    NVRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    library->nvrtcGetErrorString = (const char *(*)(nvrtcResult))dlsym(handle, "nvrtcGetErrorString");
    if (lacking) {
        snprintf(why, why_bytes, "%s: no function %s", path, lacking);
        dlclose(handle);
        return 0;
    }
    struct link_map *map = NULL;
    int found = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0];
    snprintf(library->path, sizeof library->path, "%s", found ? map->l_name : path);
    return 1;
}

int rtc_version(const struct rtc *library, int *major, int *minor)
{
    return library->nvrtcVersion(major, minor);
}

int rtc_architectures(const struct rtc *library, int *list, int n)
{
    int count = 0;
    if (library->nvrtcGetNumSupportedArchs(&count) || count < 0)
        return -1;
    if (count > n)
        return count;
    return library->nvrtcGetSupportedArchs(list) ? -1 : count;
}

const char *rtc_error(const struct rtc *library, nvrtcResult result)
{
    const char *text = library->nvrtcGetErrorString ? library->nvrtcGetErrorString(result) : NULL;
    return text ? text : "an error without a name";
}

/* A C string, or bytes, of the size that one function tells and another one fills. */
static nvrtcResult take(nvrtcProgram program, nvrtcResult (*size)(nvrtcProgram, size_t *),
                        nvrtcResult (*fill)(nvrtcProgram, char *), char **text, size_t *bytes)
{
    enum { OUT_OF_MEMORY = 1 };
    nvrtcResult result = size(program, bytes);
    if (result || *bytes == 0)
        return result;
    *text = calloc(1, *bytes + 1);
    if (*text == NULL)
        return OUT_OF_MEMORY;
    return fill(program, *text);
}

void rtc_compile(const struct rtc *l, const char *source, const char *name, int num_headers,
                 char **headers, char **header_names, int num_options, char **options, int ptx,
                 struct rtc_output *out)
{
    nvrtcProgram program = NULL;
    size_t log_bytes = 0;
    out->call = "nvrtcCreateProgram";
    out->result = l->nvrtcCreateProgram(&program, source, name, num_headers,
                                        (const char *const *)headers,
                                        (const char *const *)header_names);
    if (out->result)
        return;
    out->call = "nvrtcCompileProgram";
    out->result = l->nvrtcCompileProgram(program, num_options, (const char *const *)options);
    /* The log explains a failure and never is one. */
    if (take(program, l->nvrtcGetProgramLogSize, l->nvrtcGetProgramLog, &out->log, &log_bytes)) {
        free(out->log);
        out->log = NULL;
    }
    if (out->result == 0) {
        out->call = ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN";
        out->result = take(program, ptx ? l->nvrtcGetPTXSize : l->nvrtcGetCUBINSize,
                           ptx ? l->nvrtcGetPTX : l->nvrtcGetCUBIN, &out->image, &out->image_bytes);
    }
    l->nvrtcDestroyProgram(&program);
}
