/* An NVRTC whose machine code is a shared object that g++ made, for the driver of this folder.
 *
 * A program is written into a folder, and `build.py --image` makes its image there: so what compiles
 * the kernels of a build compiles those that are generated at run time. FAKE_NVRTC_LOG is a file that
 * gets a line for each compilation. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { OK = 0, OUT_OF_MEMORY = 1, INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION = 6, INTERNAL = 11 };
enum { MOST_HEADERS = 64, MOST_OPTIONS = 64 };

static const int architectures[] = {75, 80, 86, 89, 90};
#define NUMBER ((int)(sizeof architectures / sizeof *architectures))

struct text {
    char *bytes;
    size_t size;
};

struct program {
    char *name;
    int files;
    char *names[MOST_HEADERS + 1];
    struct text texts[MOST_HEADERS + 1], image, log;
};

int nvrtcVersion(int *major, int *minor)
{
    return *major = 12, *minor = 9, OK;
}

int nvrtcGetNumSupportedArchs(int *n)
{
    return *n = NUMBER, OK;
}

int nvrtcGetSupportedArchs(int *list)
{
    memcpy(list, architectures, sizeof architectures);
    return OK;
}

const char *nvrtcGetErrorString(int result)
{
    return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : result == INVALID_OPTION ?
           "NVRTC_ERROR_INVALID_OPTION" : "NVRTC_ERROR";
}

int nvrtcDestroyProgram(struct program **program)
{
    struct program *p = *program;
    for (int i = 0; i < p->files; i++) {
        free(p->names[i]);
        free(p->texts[i].bytes);
    }
    free(p->image.bytes);
    free(p->log.bytes);
    free(p);
    return *program = NULL, OK;
}

static void add(struct program *p, const char *name, const char *text)
{
    p->names[p->files] = strdup(name);
    p->texts[p->files++] = (struct text){strdup(text), strlen(text)};
}

int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int n,
                       const char *const *headers, const char *const *names)
{
    if (n > MOST_HEADERS || strchr(name, '/'))
        return INVALID_INPUT;
    *program = calloc(1, sizeof **program);
    add(*program, name, source);
    for (int i = 0; i < n; i++)
        add(*program, names[i], headers[i]);
    return OK;
}

/* Makes the folder in which a header's name says it lies, or removes it once it is empty. */
static void folder_of(const char *folder, const char *name, int make)
{
    const char *end = strchr(name, '/');
    char path[4096];
    if (end == NULL)
        return;
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)(end - name), name);
    if (make)
        mkdir(path, 0700);
    else
        rmdir(path);
}

static int put(const char *folder, const char *name, struct text text)
{
    char path[4096];
    folder_of(folder, name, 1);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return 0;
    size_t written = fwrite(text.bytes, 1, text.size, file);
    return fclose(file) == 0 && written == text.size;
}

/* Takes a file away, with its bytes, behind so many that are left free. */
static struct text get(const char *folder, const char *name, size_t before)
{
    char path[4096];
    struct text text = {NULL, 0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return text;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    text.bytes = calloc(1, before + (size_t)size + 1);
    text.size = before + fread(text.bytes + before, 1, (size_t)size, file);
    fclose(file);
    unlink(path);
    return text;
}

static int run(const char *folder, const char *name, int n, const char *const *options)
{
    char source[4096], log[4096];
    snprintf(source, sizeof source, "%s/%s", folder, name);
    snprintf(log, sizeof log, "%s/log", folder);
    char *command[8 + MOST_OPTIONS] = {PYTHON, "-I", BUILD, "--image", source};
    int words = 5, status = 1;
    for (int i = 0; i < n && i < MOST_OPTIONS; i++)
        if (strncmp(options[i], "-D", 2) == 0)
            command[words++] = (char *)options[i];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    int failed = posix_spawn(&child, PYTHON, &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    return !failed && waitpid(child, &status, 0) == child && status == 0;
}

int nvrtcCompileProgram(struct program *p, int n, const char *const *options)
{
    const char *path = getenv("FAKE_NVRTC_LOG"), *tmp = getenv("TMPDIR");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s %s\n", p->names[0], n ? options[0] : "");
        fclose(file);
    }
    if (n == 0 || strncmp(options[0], "--gpu-architecture=sm_", 22))
        return INVALID_OPTION;
    char folder[2048];
    snprintf(folder, sizeof folder, "%s/nvrtc-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(folder) == NULL)
        return INTERNAL;
    int well = 1;
    for (int i = 0; i < p->files; i++)
        well &= put(folder, p->names[i], p->texts[i]);
    well = well && run(folder, p->names[0], n, options);
    p->log = get(folder, "log", 0);
    p->image = get(folder, "image", 16);
    uint64_t bytes = p->image.size - 16;
    if (p->image.size > 16) {
        memcpy(p->image.bytes, "\x7f" "ELFpgs!", 8);
        memcpy(p->image.bytes + 8, &bytes, 8);
    }
    for (int i = 0; i < p->files; i++) {
        free(get(folder, p->names[i], 0).bytes);
        folder_of(folder, p->names[i], 0);
    }
    rmdir(folder);
    return well && p->image.size > 16 ? OK : COMPILATION;
}

int nvrtcGetProgramLogSize(struct program *p, size_t *size)
{
    return *size = p->log.size + 1, OK;
}

int nvrtcGetProgramLog(struct program *p, char *log)
{
    return memcpy(log, p->log.bytes ? p->log.bytes : "", p->log.size + 1), OK;
}

int nvrtcGetCUBINSize(struct program *p, size_t *size)
{
    return *size = p->image.size, OK;
}

int nvrtcGetCUBIN(struct program *p, char *image)
{
    return memcpy(image, p->image.bytes, p->image.size), OK;
}

int nvrtcGetPTXSize(struct program *p, size_t *size)
{
    (void)p;
    return *size = 0, INVALID_INPUT;
}

int nvrtcGetPTX(struct program *p, char *ptx)
{
    (void)p, (void)ptx;
    return INVALID_INPUT;
}
