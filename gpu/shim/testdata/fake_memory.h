/* Part of fake_work.c: device memory, pinned memory, copies and fills. */

static int mapped_device(char *p);

static int allocate(enum kind kind, word *address, word tag, size_t bytes)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    if (bytes == 0)
        return INVALID_VALUE;
    if (FAULT)
        return FAULT;
    pthread_mutex_lock(&mutex);
    int full = bytes > TOTAL || used > TOTAL - bytes;
    used += full ? 0 : bytes;
    pthread_mutex_unlock(&mutex);
    if (full)
        return OUT_OF_MEMORY;
    struct object *o = make(kind);
    o->size = bytes;
    o->start = obtain(bytes);
    *address = (word)o->start | tag;
    return OK;
}

static int release(struct object *o, char *p)
{
    if (o == NULL || o->start != p)
        return INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    used -= o->size;
    pthread_mutex_unlock(&mutex);
    discard(o->start, o->size);
    end(o);
    return OK;
}

int cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    *unused = TOTAL - used;
    *total = TOTAL;
    return depth ? OK : INVALID_CONTEXT;
}

int cuMemAlloc_v2(word *address, size_t bytes)
{
    trace("cuMemAlloc %zu", bytes);
    return allocate(DEVICE, address, ON_DEVICE, bytes);
}

int cuMemFree_v2(word address)
{
    trace("cuMemFree %s", block(address) ? block(address)->name : "nothing");
    return depth ? release(block(address), (char *)(address ^ ON_DEVICE)) : INVALID_CONTEXT;
}

/* The part of CUmemPoolProps that is of interest here. */
struct pool_properties {
    int kind, handles, where, device;
};

int cuMemPoolCreate(struct object **pool, const struct pool_properties *properties)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    if (properties->kind != 1 || properties->handles || properties->where != 1)
        return INVALID_VALUE;
    *pool = make(POOL);
    trace("cuMemPoolCreate %s device %d", (*pool)->name, properties->device - 40);
    return OK;
}

int cuMemPoolDestroy(struct object *pool)
{
    ON(pool, POOL, "cuMemPoolDestroy %s", pool->name)
    return end(pool), OK;
}

int cuMemPoolSetAttribute(struct object *pool, int attribute, void *value)
{
    ON(pool, POOL, "cuMemPoolSetAttribute %s %d %llu", pool->name, attribute, *(word *)value)
    return OK;
}

int cuMemPoolGetAttribute(struct object *pool, int attribute, void *value)
{
    ON(pool, POOL, "cuMemPoolGetAttribute %s %d", pool->name, attribute)
    return *(word *)value = used, OK;
}

int cuMemPoolTrimTo(struct object *pool, size_t bytes)
{
    ON(pool, POOL, "cuMemPoolTrimTo %s %zu", pool->name, bytes)
    return OK;
}

int cuMemAllocFromPoolAsync(word *address, size_t bytes, struct object *pool, struct object *s)
{
    if (wrong(pool, POOL))
        return wrong(pool, POOL);
    ON_STREAM(s, "cuMemAllocFromPoolAsync %zu %s %s", bytes, pool->name, stream_name(s))
    return allocate(DEVICE, address, ON_DEVICE, bytes);
}

int cuMemFreeAsync(word address, struct object *s)
{
    struct object *o = block(address);
    ON_STREAM(s, "cuMemFreeAsync %s %s", o ? o->name : "nothing", stream_name(s))
    return release(o, (char *)(address ^ ON_DEVICE));
}

/* ---- host memory ---- */

int cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    trace("cuMemHostAlloc %zu flags %u", bytes, flags);
    return allocate(PINNED, (word *)pointer, 0, bytes);
}

int cuMemFreeHost(void *pointer)
{
    struct object *o = holder(pointer, PINNED, PINNED);
    trace("cuMemFreeHost %s", o ? o->name : "nothing");
    return depth ? release(o, pointer) : INVALID_CONTEXT;
}

int cuMemHostGetDevicePointer_v2(word *address, void *pointer, unsigned flags)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *address = (word)pointer | MAPPED;
    return flags || !holder(pointer, PINNED, REGISTERED) ? INVALID_VALUE : OK;
}

int cuMemHostRegister_v2(char *start, size_t bytes, unsigned flags)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    if ((word)start % 4096 || bytes % 4096 || bytes == 0)
        return INVALID_VALUE;
    if (bytes > TOTAL)
        return OUT_OF_MEMORY;
    for (size_t i = 0; i < bytes; i += 1024)
        if (holder(start + i, PINNED, REGISTERED))
            return ALREADY_REGISTERED;
    struct object *o = make(REGISTERED);
    o->start = start;
    o->size = bytes;
    trace("cuMemHostRegister %s %zu pages flags %u", o->name, bytes / 4096, flags);
    return OK;
}

int cuMemHostUnregister(char *start)
{
    struct object *o = holder(start, REGISTERED, REGISTERED);
    if (depth == 0 || o == NULL || o->start != start)
        return depth ? NOT_REGISTERED : INVALID_CONTEXT;
    trace("cuMemHostUnregister %s", o->name);
    return end(o), OK;
}

int cuPointerGetAttribute(void *value, int attribute, word address)
{
    struct object *o = block(address);
    if (o == NULL)
        return INVALID_VALUE;
    switch (attribute) {
    case 2: return *(unsigned *)value = o->kind == DEVICE ? 2 : 1, OK;
    case 9: {
        int device = mapped_device((char *)(address & ~(ON_DEVICE | MAPPED)));
        return *(int *)value = device < 0 ? o->context->number - 1 : device - 40, OK;
    }
    case 11: return *(word *)value = (word)o->start | (o->kind == DEVICE ? ON_DEVICE : MAPPED), OK;
    case 12: return *(size_t *)value = o->size, OK;
    }
    return INVALID_VALUE;
}

/* ---- copies and fills ---- */

/* Where an address lies in this process, if all its bytes are in one block. */
static char *there(word address, size_t bytes)
{
    struct object *o = block(address);
    char *p = (char *)(address & ~(ON_DEVICE | MAPPED));
    return o && p + bytes <= o->start + o->size ? p : NULL;
}

static int copy(char *to, const char *from, size_t bytes)
{
    return to && from ? (memcpy(to, from, bytes), OK) : INVALID_VALUE;
}

int cuMemcpyAsync(word to, word from, size_t bytes, struct object *s)
{
    ON_STREAM(s, "cuMemcpyAsync %zu %s", bytes, stream_name(s))
    return copy(there(to, bytes), there(from, bytes), bytes);
}

int cuMemcpyHtoDAsync_v2(word to, const char *from, size_t bytes, struct object *s)
{
    ON_STREAM(s, "cuMemcpyHtoDAsync %zu %s", bytes, stream_name(s))
    return copy(there(to, bytes), from, bytes);
}

int cuMemcpyDtoHAsync_v2(char *to, word from, size_t bytes, struct object *s)
{
    ON_STREAM(s, "cuMemcpyDtoHAsync %zu %s", bytes, stream_name(s))
    return copy(to, there(from, bytes), bytes);
}

int cuMemsetD8Async(word to, unsigned char value, size_t n, struct object *s)
{
    ON_STREAM(s, "cuMemsetD8Async %u %zu %s", value, n, stream_name(s))
    return there(to, n) ? (memset(there(to, n), value, n), OK) : INVALID_VALUE;
}

int cuMemsetD32Async(word to, unsigned value, size_t n, struct object *s)
{
    ON_STREAM(s, "cuMemsetD32Async %u %zu %s", value, n, stream_name(s))
    unsigned *p = (unsigned *)there(to, 4 * n);
    for (size_t i = 0; p && i < n; i++)
        p[i] = value;
    return p ? OK : INVALID_VALUE;
}
