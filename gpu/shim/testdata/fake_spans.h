/* Part of fake_work.c: memory that has no address until it is mapped.
 *
 * A piece is a file without a name, and a mapping of it is one of the file's, so that several mappings,
 * in several processes, are the same memory. A range that was reserved is a block of memory; the
 * device that the driver tells of an address in it is that of the piece there. */

enum { HANDLES = 1 << 12 };
static struct { int file, device; size_t bytes; } pieces[HANDLES];
/* What is mapped where. */
static struct mapping { char *start; size_t bytes; int device; } mappings[1 << 14];
static int mapping_count;

struct piece_properties {
    int kind, handles, where, device;
};

static size_t granularity(void)
{
    return (size_t)number("FAKE_CUDA_GRANULARITY", 2 << 20);
}

static int new_piece(word *handle, int file, int device, size_t bytes)
{
    pthread_mutex_lock(&mutex);
    int i = 1;
    while (i < HANDLES && pieces[i].bytes)
        i++;
    if (i < HANDLES) {
        pieces[i].file = file, pieces[i].device = device, pieces[i].bytes = bytes;
        live[PIECE]++;
    }
    pthread_mutex_unlock(&mutex);
    return i < HANDLES ? (*handle = (word)i + 5000, OK) : OUT_OF_MEMORY;
}

static int piece_of(word handle)
{
    return handle > 5000 && handle < 5000 + HANDLES && pieces[handle - 5000].bytes ? (int)handle - 5000 : 0;
}

/* The mapping that begins at an address. */
static struct mapping *mapping_at(char *p)
{
    for (int i = 0; i < mapping_count; i++)
        if (mappings[i].bytes && mappings[i].start == p)
            return &mappings[i];
    return NULL;
}

/* The device whose piece is at an address, -1 where none is. */
static int mapped_device(char *p)
{
    for (int i = 0; i < mapping_count; i++)
        if (mappings[i].bytes && mappings[i].start <= p && p < mappings[i].start + mappings[i].bytes)
            return mappings[i].device;
    return -1;
}

int cuDeviceGetUuid_v2(unsigned char *bytes, int device)
{
    memset(bytes, 0x10 + device - 40, 16);
    return device < 40 ? INVALID_DEVICE : OK;
}

int cuMemGetAllocationGranularity(size_t *bytes, const struct piece_properties *p, int option)
{
    return *bytes = granularity(), p->kind != 1 || p->where != 1 || option ? INVALID_VALUE : OK;
}

int cuMemCreate(word *handle, size_t bytes, const struct piece_properties *p, word flags)
{
    trace("cuMemCreate %zu device %d handles %d", bytes, p->device - 40, p->handles);
    if (p->kind != 1 || p->where != 1 || flags || bytes == 0 || bytes % granularity())
        return INVALID_VALUE;
    if (FAULT)
        return FAULT;
    int file = memfd_create("piece", MFD_CLOEXEC);
    pthread_mutex_lock(&mutex);
    int full = file < 0 || bytes > TOTAL || used > TOTAL - bytes || ftruncate(file, (off_t)bytes);
    used += full ? 0 : bytes;
    pthread_mutex_unlock(&mutex);
    if (full)
        return close(file), OUT_OF_MEMORY;
    /* Nobody may count on zeros. */
    char *there = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    memset(there, 0xA5, bytes < (8 << 20) ? bytes : 8 << 20);
    munmap(there, bytes);
    return new_piece(handle, file, p->device, bytes);
}

int cuMemRelease(word handle)
{
    int i = piece_of(handle);
    trace("cuMemRelease %zu", i ? pieces[i].bytes : 0);
    if (!i)
        return INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    used -= pieces[i].bytes;
    close(pieces[i].file);
    pieces[i].bytes = 0;
    live[PIECE]--;
    pthread_mutex_unlock(&mutex);
    return OK;
}

int cuMemExportToShareableHandle(int *descriptor, word handle, int kind, word flags)
{
    int i = piece_of(handle);
    trace("cuMemExportToShareableHandle");
    if (!i || kind != 1 || flags)
        return INVALID_VALUE;
    return *descriptor = dup(pieces[i].file), *descriptor < 0 ? INVALID_VALUE : OK;
}

int cuMemImportFromShareableHandle(word *handle, void *descriptor, int kind)
{
    trace("cuMemImportFromShareableHandle");
    int file = dup((int)(intptr_t)descriptor);
    off_t bytes = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    if (kind != 1 || bytes <= 0)
        return INVALID_VALUE;
    pthread_mutex_lock(&mutex);
    used += (size_t)bytes;
    pthread_mutex_unlock(&mutex);
    return new_piece(handle, file, 41, (size_t)bytes);
}

int cuMemAddressReserve(word *address, size_t bytes, size_t alignment, word at, word flags)
{
    trace("cuMemAddressReserve %zu", bytes);
    if (bytes == 0 || bytes % granularity() || alignment || at || flags || depth == 0)
        return INVALID_VALUE;
    char *start = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return OUT_OF_MEMORY;
    struct object *o = make(DEVICE);
    o->start = start;
    o->size = bytes;
    return *address = (word)start | ON_DEVICE, OK;
}

int cuMemAddressFree(word address, size_t bytes)
{
    char *start = (char *)(address & ~ON_DEVICE);
    struct object *o = holder(start, DEVICE, DEVICE);
    trace("cuMemAddressFree %zu", bytes);
    if (!o || o->start != start || o->size != bytes || mapped_device(start) >= 0)
        return INVALID_VALUE;
    end(o);
    munmap(start, bytes);
    return OK;
}

int cuMemMap(word address, size_t bytes, size_t offset, word handle, word flags)
{
    char *start = (char *)(address & ~ON_DEVICE);
    struct object *o = holder(start, DEVICE, DEVICE);
    int i = piece_of(handle);
    trace("cuMemMap %zu", bytes);
    if (!o || !i || offset || flags || bytes != pieces[i].bytes || start + bytes > o->start + o->size ||
        mapped_device(start) >= 0)
        return INVALID_VALUE;
    if (mmap(start, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, pieces[i].file, 0) != start)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&mutex);
    int m = 0;
    while (m < mapping_count && mappings[m].bytes)
        m++;
    if (m == sizeof mappings / sizeof *mappings)
        abort();
    mapping_count += m == mapping_count;
    mappings[m] = (struct mapping){start, bytes, pieces[i].device};
    pthread_mutex_unlock(&mutex);
    return OK;
}

int cuMemUnmap(word address, size_t bytes)
{
    struct mapping *m = mapping_at((char *)(address & ~ON_DEVICE));
    trace("cuMemUnmap %zu", bytes);
    if (!m || m->bytes != bytes)
        return INVALID_VALUE;
    mmap(m->start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    m->bytes = 0;
    return OK;
}

struct access {
    int where, device, flags;
};

int cuMemSetAccess(word address, size_t bytes, const struct access *a, size_t n)
{
    struct mapping *m = mapping_at((char *)(address & ~ON_DEVICE));
    trace("cuMemSetAccess %zu device %d", bytes, a->device - 40);
    if (!m || m->bytes != bytes || n != 1 || a->where != 1 || a->flags != 3)
        return INVALID_VALUE;
    if (a->device != m->device && !number("FAKE_CUDA_PEERS", 1))
        return INVALID_DEVICE;
    return mprotect(m->start, bytes, PROT_READ | PROT_WRITE) ? INVALID_VALUE : OK;
}
