/* Part of fake_work.c: modules, functions, launches. A function's name tells the sizes of its
 * parameters: mix_24 takes 24 bytes, two_8_4 takes 8 and 4. */

int cuModuleLoadDataEx(struct object **module, const char *image, unsigned n, int *options,
                       void **values)
{
    char *errors = NULL, *notes = NULL;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == 5)
            errors = values[i];
        if (options[i] == 3)
            notes = values[i];
        if ((options[i] == 4 || options[i] == 6) && (word)values[i] < 1024)
            return INVALID_VALUE;
    }
    if (depth == 0)
        return INVALID_CONTEXT;
    if (image[0] != 0x7f && strstr(image, "broken")) {
        strcpy(errors, "line 7: broken\n");
        return INVALID_PTX;
    }
#ifdef EMULATED
    struct Image *loaded = emulator_load(image);
    if (loaded == NULL)
        return INVALID_IMAGE;
    *module = make(MODULE);
    (*module)->image = loaded;
#else
    *module = make(MODULE);
#endif
    strcpy(notes, "a note\n");
    trace("cuModuleLoadDataEx %s %s", (*module)->name, image[0] == 0x7f ? "cubin" : image);
    return OK;
}

int cuModuleUnload(struct object *m)
{
    ON(m, MODULE, "cuModuleUnload %s", m->name)
#ifdef EMULATED
    emulator_unload(m->image);
#endif
    return end(m), OK;
}

/* Functions are not counted as alive: nobody gives them back. */
int cuModuleGetFunction(struct object **function, struct object *m, const char *name)
{
    ON(m, MODULE, "cuModuleGetFunction %s %s", m->name, name)
#ifdef EMULATED
    struct Kernel *kernel = emulator_find(m->image, name);
    if (kernel == NULL)
        return NOT_FOUND;
    *function = make(FUNCTION);
    (*function)->kernel = kernel;
    (*function)->shared = SHARED;
#else
    if (strchr(name, '_') == NULL)
        return NOT_FOUND;
    *function = make(FUNCTION);
#endif
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    return OK;
}

#ifndef EMULATED

/* The size of a parameter; 0 for one that is not there. */
static size_t parameter(struct object *f, size_t index)
{
    const char *p = f->name;
    for (size_t i = 0; p && i <= index; i++)
        p = strchr(p + 1, '_');
    return p ? strtoul(p + 1, NULL, 10) : 0;
}

#define attribute_of(f, attribute) (1000 + (attribute))
#define allow_shared(f, attribute, bytes) ((void)0)
#define occupancy(f, threads, shared) (2048 / (threads))

#endif

int cuFuncGetParamInfo(struct object *f, size_t index, size_t *offset, size_t *size)
{
    ON(f, FUNCTION, "cuFuncGetParamInfo %s %zu", f->name, index)
    *offset = 0;
    *size = parameter(f, index);
    return *size ? OK : INVALID_VALUE;
}

int cuFuncGetAttribute(int *value, int attribute, struct object *f)
{
    ON(f, FUNCTION, "cuFuncGetAttribute %s %d", f->name, attribute)
    return *value = attribute_of(f, attribute), OK;
}

int cuFuncSetAttribute(struct object *f, int attribute, int value)
{
    ON(f, FUNCTION, "cuFuncSetAttribute %s %d %d", f->name, attribute, value)
    if (value > 232448)
        return INVALID_VALUE;
    allow_shared(f, attribute, value);
    return OK;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct object *f, int threads,
                                                size_t shared)
{
    ON(f, FUNCTION, "cuOccupancy %s %d %zu", f->name, threads, shared)
    return threads > 1024 ? INVALID_VALUE : (*blocks = occupancy(f, threads, shared), OK);
}

#ifndef EMULATED

static int launch(const char *call, struct object *f, unsigned *d, struct object *s, void **p)
{
    if (wrong(f, FUNCTION))
        return wrong(f, FUNCTION);
    char bytes[256] = "";
    size_t n = parameter(f, 0);
    for (size_t i = 0; i < n; i++)
        sprintf(bytes + 2 * i, "%02x", ((unsigned char *)p[0])[i]);
    ON_STREAM(s, "%s %s %ux%ux%u %ux%ux%u %u %s %s", call, f->name, d[0], d[1], d[2], d[3], d[4],
              d[5], d[6], stream_name(s), bytes)
    if (d[0] == 0 || d[3] * d[4] * d[5] > 1024)
        return INVALID_VALUE;
    if ((word)s > 2)
        s->busy = 1;
    return OK;
}

#endif

int cuLaunchKernel(struct object *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned shared, struct object *s, void **p, void **x)
{
    unsigned d[] = {gx, gy, gz, bx, by, bz, shared};
    return x ? INVALID_VALUE : launch("cuLaunchKernel", f, d, s, p);
}

int cuLaunchCooperativeKernel(struct object *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, struct object *s, void **p)
{
    unsigned d[] = {gx, gy, gz, bx, by, bz, shared};
    return launch("cuLaunchCooperativeKernel", f, d, s, p);
}
