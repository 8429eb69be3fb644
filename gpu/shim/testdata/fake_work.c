/* The working half of the driver for tests: contexts, streams, events, memory, modules, launches.
 *
 * It does what it is asked at once, in the host's memory, and is stricter than a driver: a handle
 * that is no longer alive, or of another context than the current one, is refused. Each call leaves
 * a line in FAKE_CUDA_LOG, in which objects have names, as in
 *
 *   cuEventRecord event1 stream2
 *
 * Device attribute 100000 + kind is how many objects of a kind are alive. FAKE_CUDA_POOLS=0 makes a
 * driver without memory pools, FAKE_CUDA_MAPS=0 one that maps no memory, FAKE_CUDA_DESCRIPTORS=0 one that
 * gives none to other processes, FAKE_CUDA_PEERS=0 one whose devices do not reach each other.
 * FAKE_CUDA_GRANULARITY is what sizes of mapped memory are multiples of (2 MiB).
 *
 * Built with -DEMULATED it is the driver of tests/emulator: addresses of device memory are the host's,
 * and launches run the kernels. There FAKE_CUDA_MEMORY is how many bytes the devices have together,
 * FAKE_CUDA_MULTIPROCESSORS how many multiprocessors each has (3), FAKE_CUDA_BLOCKS how many blocks of
 * a kernel one of them runs at a time (2). A kernel that fails makes all later calls fail. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long word;

int number(const char *variable, int otherwise);
void note(const char *line);

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_SUPPORTED = 801, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
       INVALID_PTX = 218, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
       PEER_ENABLED = 704, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };

enum kind { CONTEXT, STREAM, EVENT, POOL, DEVICE, PINNED, REGISTERED, MODULE, PIECE, FUNCTION, KINDS };

static const char *const names[] = {"context", "stream", "event", "pool", "memory",
                                    "pinned", "registered", "module", "piece", "function"};

/* An object keeps its place for ever, so that a dead one is known for what it is. */
struct object {
    enum kind kind;
    int alive, number, busy, flags;
    struct object *context;
    char *start; /* of memory */
    size_t size;
    char name[64];
#ifdef EMULATED
    struct object *next; /* of the dead ones, whose places are used again, the oldest first */
    struct Kernel *kernel;
    struct Image *image;
    int shared;
#endif
};

static struct object objects[1 << 16];
static int count, live[KINDS], made[KINDS];
static size_t used;
static struct object primary[] = {{.kind = CONTEXT, .number = 1}, {.kind = CONTEXT, .number = 2},
                                  {.kind = CONTEXT, .number = 3}, {.kind = CONTEXT, .number = 4}};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static __thread struct object *stack[64];
static __thread int depth;

#ifdef EMULATED
#define TOTAL device_bytes()
#define ON_DEVICE 0ULL
#define MAPPED 0ULL
#include "fake_emulated.h"
#else
#define TOTAL ((size_t)1 << 30)
#define ON_DEVICE (1ULL << 62) /* set in addresses of device memory */
#define MAPPED (1ULL << 61)    /* set in those of pinned host memory */
#define FAULT OK
#define obtain(bytes) malloc(bytes)
#define discard(start, bytes) free(start)
#define place() (&objects[count++])
#define bury(o) ((void)0)
#endif

static void trace(const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    int n = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    strcpy(line + (n < (int)sizeof line - 1 ? n : (int)sizeof line - 2), "\n");
    note(line);
}

static struct object *make(enum kind kind)
{
    pthread_mutex_lock(&mutex);
    struct object *o = place();
    o->kind = kind;
    o->alive = 1;
    o->number = ++made[kind];
    o->context = depth ? stack[depth - 1] : NULL;
    snprintf(o->name, sizeof o->name, "%s%d", names[kind], o->number);
    live[kind]++;
    pthread_mutex_unlock(&mutex);
    return o;
}

static void end(struct object *o)
{
    pthread_mutex_lock(&mutex);
    o->alive--; /* a context is as often alive as it is held */
    live[o->kind]--;
    bury(o);
    pthread_mutex_unlock(&mutex);
}

/* Why an object cannot be used here and now. */
static int wrong(struct object *o, enum kind kind)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    if (FAULT)
        return FAULT;
    if (o < objects || o >= objects + count || !o->alive || o->kind != kind)
        return INVALID_HANDLE;
    return o->context == stack[depth - 1] ? OK : INVALID_CONTEXT;
}

static int wrong_stream(struct object *s)
{
    return (word)s <= 2 ? (depth ? FAULT : INVALID_CONTEXT) : wrong(s, STREAM);
}

static const char *stream_name(struct object *s)
{
    return s == NULL ? "legacy0" : (word)s == 1 ? "legacy1" : (word)s == 2 ? "thread" : s->name;
}

/* The block of a kind that holds a byte. */
static struct object *holder(char *p, enum kind first, enum kind last)
{
    for (int i = 0; i < count; i++) {
        struct object *o = &objects[i];
        if (o->alive && o->kind >= first && o->kind <= last && o->start <= p &&
            p < o->start + o->size)
            return o;
    }
    return NULL;
}

static struct object *block(word address)
{
    char *p = (char *)(address & ~(ON_DEVICE | MAPPED));
#ifdef EMULATED
    /* First: memory of the device may lie in pages that were registered for what is beside it. */
    struct object *o = holder(p, DEVICE, DEVICE);
    return o ? o : holder(p, PINNED, REGISTERED);
#endif
    return address & ON_DEVICE ? holder(p, DEVICE, DEVICE)
           : address & MAPPED  ? holder(p, PINNED, REGISTERED)
                               : NULL;
}

int cuDeviceGetAttribute_of_work(int *value, int attribute)
{
#ifdef EMULATED
    if (attribute == 16)
        return *value = number("FAKE_CUDA_MULTIPROCESSORS", 3), OK;
#endif
    static const int known[][2] = {{16, 132}, {38, 60 << 20}, {8, 49152}, {97, 232448},
                                   {81, 233472}, {39, 2048}, {106, 32}, {95, 1}, {19, 1}, {99, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute)
            return *value = known[i][1], OK;
    if (attribute == 115)
        return *value = number("FAKE_CUDA_POOLS", 1), OK;
    if (attribute == 102)
        return *value = number("FAKE_CUDA_MAPS", 1), OK;
    if (attribute == 103)
        return *value = number("FAKE_CUDA_DESCRIPTORS", 1), OK;
    if (attribute >= 100000 && attribute < 100000 + KINDS)
        return *value = live[attribute - 100000], OK;
    return INVALID_VALUE; /* attribute 113 among them: a driver that is older than it */
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    return *bytes = TOTAL, device < 40;
}

int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    return *can = device != peer && number("FAKE_CUDA_PEERS", 1), OK;
}

/* ---- contexts ---- */

int cuDevicePrimaryCtxRetain(struct object **context, int device)
{
    struct object *c = &primary[device - 40];
    pthread_mutex_lock(&mutex);
    c->alive++;
    live[CONTEXT]++;
    *context = c;
    pthread_mutex_unlock(&mutex);
    trace("cuDevicePrimaryCtxRetain %d", device - 40);
    return OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    trace("cuDevicePrimaryCtxRelease %d", device - 40);
    if (!primary[device - 40].alive)
        return INVALID_CONTEXT;
    end(&primary[device - 40]);
    return OK;
}

int cuCtxGetCurrent(struct object **context)
{
    return *context = depth ? stack[depth - 1] : NULL, OK;
}

int cuCtxSetCurrent(struct object *context)
{
    depth -= depth > 0;
    if (context)
        stack[depth++] = context;
    return OK;
}

int cuCtxPushCurrent_v2(struct object *context)
{
    return stack[depth++] = context, OK;
}

int cuCtxPopCurrent_v2(struct object **context)
{
    return depth ? (*context = stack[--depth], OK) : INVALID_CONTEXT;
}

int cuCtxSynchronize(void)
{
    trace("cuCtxSynchronize");
    return depth ? FAULT : INVALID_CONTEXT;
}

int cuCtxEnablePeerAccess(struct object *peer, unsigned flags)
{
    trace("cuCtxEnablePeerAccess context%d", peer->number);
    struct object *c = depth ? stack[depth - 1] : NULL;
    return flags ? INVALID_VALUE : !c ? INVALID_CONTEXT : c->busy++ ? PEER_ENABLED : OK;
}

/* ---- streams and events: busy at the first question after each piece of work ---- */

static int done(struct object *o)
{
    return o->busy ? (o->busy = 0, NOT_READY) : OK;
}

int cuStreamCreate(struct object **stream, unsigned flags)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *stream = make(STREAM);
    trace("cuStreamCreate %s flags %u", (*stream)->name, flags);
    return OK;
}

#define ON_STREAM(s, ...)             \
    int refused = wrong_stream(s);    \
    if (refused)                      \
        return refused;               \
    trace(__VA_ARGS__);

#define ON(o, kind, ...)              \
    int refused = wrong(o, kind);     \
    if (refused)                      \
        return refused;               \
    trace(__VA_ARGS__);

int cuStreamDestroy_v2(struct object *s)
{
    ON(s, STREAM, "cuStreamDestroy %s", s->name)
    return end(s), OK;
}

int cuStreamGetCtx(struct object *s, struct object **context)
{
    if (s < objects || s >= objects + count || !s->alive || s->kind != STREAM)
        return INVALID_HANDLE;
    return *context = s->context, OK;
}

int cuStreamQuery(struct object *s)
{
    ON_STREAM(s, "cuStreamQuery %s", stream_name(s))
    return (word)s <= 2 ? OK : done(s);
}

int cuStreamSynchronize(struct object *s)
{
    ON_STREAM(s, "cuStreamSynchronize %s", stream_name(s))
    return OK;
}

int cuEventCreate(struct object **event, unsigned flags)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *event = make(EVENT);
    (*event)->flags = (int)flags;
    trace("cuEventCreate %s flags %u", (*event)->name, flags);
    return OK;
}

int cuEventDestroy_v2(struct object *e)
{
    ON(e, EVENT, "cuEventDestroy %s", e->name)
    return end(e), OK;
}

int cuEventRecord(struct object *e, struct object *s)
{
    if (wrong(e, EVENT))
        return wrong(e, EVENT);
    ON_STREAM(s, "cuEventRecord %s %s", e->name, stream_name(s))
    return e->busy = 1, OK;
}

int cuEventQuery(struct object *e)
{
    ON(e, EVENT, "cuEventQuery %s", e->name)
    return done(e);
}

int cuEventSynchronize(struct object *e)
{
    ON(e, EVENT, "cuEventSynchronize %s", e->name)
    return OK;
}

int cuEventElapsedTime(float *ms, struct object *start, struct object *stop)
{
    if (wrong(start, EVENT))
        return wrong(start, EVENT);
    ON(stop, EVENT, "cuEventElapsedTime %s %s", start->name, stop->name)
    return *ms = 1.5f, start->flags || stop->flags ? INVALID_HANDLE : OK;
}

int cuStreamWaitEvent(struct object *s, struct object *e, unsigned flags)
{
    if (wrong(e, EVENT))
        return wrong(e, EVENT);
    ON_STREAM(s, "cuStreamWaitEvent %s %s", stream_name(s), e->name)
    return flags ? INVALID_VALUE : OK;
}

#include "fake_memory.h"
#include "fake_spans.h"
#include "fake_modules.h"
