/* Part of fake_work.c: what is different in the driver of tests/emulator. */

enum { TOO_MANY_RESOURCES = 701, TOO_LARGE = 720, GARBAGE = 0xA5, FREED = 0x5A, SHARED = 48 << 10 };

/* tests/emulator/scheduler.h */
struct Kernel {
    const char *name;
    size_t argument;
    void (*call)(const void *);
    int most_threads, least_blocks;
    char *shared, *shared_end;
    struct Kernel *next;
};
struct Image;
struct Image *emulator_load(const char *code);
void emulator_unload(struct Image *image);
struct Kernel *emulator_find(const struct Image *image, const char *name);
int emulator_launch(struct Kernel *kernel, const unsigned grid[3], const unsigned block[3],
                    unsigned dynamic_shared, unsigned resident, const void *args);

/* What the first kernel that failed failed with. */
static int FAULT;

static struct object *oldest, *newest;
static int dead;

static size_t device_bytes(void)
{
    const char *text = getenv("FAKE_CUDA_MEMORY");
    return text ? strtoull(text, NULL, 10) : (size_t)16 << 30;
}

/* Nobody may count on zeros in new memory, nor on what was in memory that has been freed. Of large
 * blocks the middle is left as it is, which may never be touched. */
static void scribble(char *start, size_t bytes, int what)
{
    size_t most = (size_t)8 << 20;
    memset(start, what, bytes < most ? bytes : most);
    if (bytes > most)
        memset(start + bytes - 4096, what, 4096);
}

static void *obtain(size_t bytes)
{
    void *start;
    if (posix_memalign(&start, 512, bytes))
        abort();
    scribble(start, bytes, GARBAGE);
    return start;
}

static void discard(char *start, size_t bytes)
{
    scribble(start, bytes, FREED);
    free(start);
}

/* A place for an object. That of a dead one is left to it for a while, so that whoever still uses it
 * is refused. */
static struct object *place(void)
{
    struct object *o = oldest;
    if (dead < 1024) {
        if (count == sizeof objects / sizeof *objects)
            abort();
        return &objects[count++];
    }
    oldest = o->next;
    dead--;
    memset(o, 0, sizeof *o);
    return o;
}

static void bury(struct object *o)
{
    o->start = NULL;
    o->size = 0;
    if (o->alive || o->kind == CONTEXT)
        return;
    o->next = NULL;
    if (dead++)
        newest->next = o;
    else
        oldest = o;
    newest = o;
}

static size_t parameter(struct object *f, size_t index)
{
    return index ? 0 : f->kernel->argument;
}

/* Static shared memory is known of all kernels of a file together; one has 48 KiB at most. */
static size_t static_shared(struct object *f)
{
    size_t bytes = (size_t)(f->kernel->shared_end - f->kernel->shared);
    return bytes < 49152 ? bytes : 49152;
}

static int attribute_of(struct object *f, int attribute)
{
    switch (attribute) {
    case 0: return f->kernel->most_threads;
    case 1: return (int)static_shared(f);
    case 5: case 6: return 90;
    case 8: return f->shared;
    }
    return 0;
}

static void allow_shared(struct object *f, int attribute, int bytes)
{
    if (attribute == 8)
        f->shared = bytes;
}

static int occupancy(struct object *f, int threads, size_t shared)
{
    size_t bytes = shared + static_shared(f);
    return threads > f->kernel->most_threads || bytes > 232448 ? 0 : number("FAKE_CUDA_BLOCKS", 2);
}

static int wrong(struct object *o, enum kind kind);
static int wrong_stream(struct object *s);
static const char *stream_name(struct object *s);
static void trace(const char *format, ...);

static int launch(const char *call, struct object *f, unsigned *d, struct object *s, void **p)
{
    if (wrong(f, FUNCTION))
        return wrong(f, FUNCTION);
    if (wrong_stream(s))
        return wrong_stream(s);
    trace("%s %s %ux%ux%u %ux%ux%u %u %s", call, f->name, d[0], d[1], d[2], d[3], d[4], d[5], d[6],
          stream_name(s));
    word blocks = (word)d[0] * d[1] * d[2], threads = (word)d[3] * d[4] * d[5];
    if (blocks == 0 || threads == 0 || threads > 1024 || d[6] > (unsigned)f->shared)
        return INVALID_VALUE;
    unsigned resident = (unsigned)(occupancy(f, (int)threads, d[6]) * number("FAKE_CUDA_MULTIPROCESSORS", 3));
    if (resident == 0)
        return TOO_MANY_RESOURCES;
    if (strcmp(call, "cuLaunchCooperativeKernel") == 0 && blocks > resident)
        return TOO_LARGE;
    int result = emulator_launch(f->kernel, d, d + 3, d[6], resident, p[0]);
    if (result && !FAULT)
        FAULT = result;
    if ((word)s > 2)
        s->busy = 1;
    return OK; /* what went wrong is for those who wait */
}
