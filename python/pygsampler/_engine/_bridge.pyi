# The functions of the compiled engine (package bridge, compiled by gopy). Private: the package
# calls them through _engine.call, which maps errors and survives forks. Every integer is 64 bits
# wide, addresses too; an error is a RuntimeError whose text is "Kind: what happened".

def bridge_Symbol(name: str) -> int: ...
def bridge_EndKind(name: str) -> int: ...
def bridge_Destructors() -> int: ...
def bridge_ArrowExport(mem: int, data: int, length: int, bits: int) -> int: ...
def bridge_ArrowImport(schema: int, array: int) -> str: ...
def bridge_GraphNew(
    indptr: int,
    indptr_bits: int,
    num_rows: int,
    indices: int,
    id_bits: int,
    num_edges: int,
    edge_ids: int,
    edge_id_bits: int,
    num_nodes: int,
    alias: int,
    sums: int,
    whole: int,
) -> int: ...
def bridge_GraphMapped(
    indptr: int,
    indptr_bits: int,
    num_rows: int,
    indices: int,
    id_bits: int,
    num_edges: int,
    edge_ids: int,
    edge_id_bits: int,
    num_nodes: int,
    alias: int,
    sums: int,
    whole: int,
) -> int: ...
def bridge_GraphFileHeader(descriptor: int, path: str) -> str: ...
def bridge_GraphFileChecksum(before: int, address: int, bytes: int) -> int: ...
def bridge_GraphFileCreate(plan: str) -> int: ...
def bridge_GraphFileWrite(writer: int, section: int, at: int, address: int, bytes: int) -> int: ...
def bridge_GraphFileCommit(writer: int, timeout_ms: int) -> int: ...
def bridge_GraphFileAbort(writer: int) -> int: ...
def bridge_GraphClose(graph: int) -> int: ...
def bridge_GraphFromCOO(src: int, dst: int, bits: int, num_edges: int, num_nodes: int) -> int: ...
def bridge_TimesStart(
    graph: int, name: str, dtype: str, address: int, length: int, by_vertex: int
) -> int: ...
def bridge_TimedSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    threads: int,
    prompt: int,
    joined: int,
    sorted: int,
    seed_times: int,
    by_vertex: int,
) -> int: ...
def bridge_DeviceTimedSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    seeds_on_device: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    stream: int,
    own: int,
    sorted: int,
    seed_times: int,
    by_vertex: int,
) -> int: ...
def bridge_TypedNew(document: str) -> int: ...
def bridge_WalksByType(walks: int, nodes: int, edges: int, steps: int, roots: int) -> int: ...
def bridge_TypedJoin(graph: int, ids: int) -> int: ...
def bridge_TypedClose(graph: int) -> int: ...
def bridge_TypedSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    counts: int,
    sorted: int,
    seed_times: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    threads: int,
    prompt: int,
    joined: int,
) -> int: ...
def bridge_DeviceTypedSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    seeds_on_device: int,
    counts: int,
    sorted: int,
    seed_times: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    stream: int,
    own: int,
    timeout_m_s: int,
) -> int: ...
def bridge_TablesStart(
    graph: int, name: str, dtype: str, address: int, length: int, mask: int
) -> int: ...
def bridge_TransposeStart(
    graph: int, name: str, dtype: str, address: int, length: int, kinds: int, bare: int
) -> int: ...
def bridge_HopsSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    threads: int,
    prompt: int,
) -> int: ...
def bridge_InducedEdges(
    graph: int, vertices: int, trees: int, count: int, vertex_bits: int, tree_bits: int
) -> int: ...
def bridge_PageRankStart(
    graph: int,
    roots: int,
    count: int,
    bits: int,
    most: int,
    alpha: int,
    epsilon: int,
    threshold: int,
) -> int: ...
def bridge_DerivedPoll(job: int, timeout_ms: int) -> int: ...
def bridge_DerivedTake(job: int) -> int: ...
def bridge_DerivedCancel(job: int) -> int: ...
def bridge_GraphForm(
    indptr: int,
    indptr_bits: int,
    num_rows: int,
    indices: int,
    id_bits: int,
    num_edges: int,
    edge_ids: int,
    edge_id_bits: int,
    num_nodes: int,
    alias: int,
    sums: int,
    whole: int,
    kinds: int,
    back: int,
    data: str,
) -> int: ...
def bridge_GraphAscends(graph: int) -> int: ...
def bridge_GraphSameRows(graph: int, other: int) -> int: ...
def bridge_PartsSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    bounds: int,
    num_bounds: int,
    seed_times: int,
    floats: int,
) -> int: ...
def bridge_PartsTypedSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    counts: int,
    epoch: int,
    batch: int,
    bounds: int,
    num_bounds: int,
    timed: int,
    seed_times: int,
    floats: int,
) -> int: ...
def bridge_PartsAlongSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    epoch: int,
    batch: int,
    bounds: int,
    num_bounds: int,
    along: int,
    num_along: int,
    roots: int,
) -> int: ...
def bridge_PartsAsked(job: int, timeout_ms: int, address: int, room: int) -> int: ...
def bridge_PartsAnswer(job: int, answers: int, count: int) -> int: ...
def bridge_PartsFail(job: int, why: str) -> int: ...
def bridge_PartsRows(
    graph: int,
    sampler: int,
    vertices: int,
    num_vertices: int,
    id_bits: int,
    hop: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    first: int,
    first_edge: int,
    edge_id_bits: int,
    ids: int,
    num_ids: int,
    ids_bits: int,
    trees: int,
    bounds: int,
    sorted: int,
    by_vertex: int,
) -> int: ...
def bridge_PartsTypedRows(
    graph: int,
    sampler: int,
    relation: int,
    vertices: int,
    num_vertices: int,
    id_bits: int,
    hop: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    first: int,
    first_edge: int,
    edge_id_bits: int,
    ids: int,
    num_ids: int,
    trees: int,
    bounds: int,
    sorted: int,
) -> int: ...
def bridge_PlanRead(document: str) -> str: ...
def bridge_ProgramCalibrate() -> str: ...
def bridge_ProgramCalibrateDevice(device: int) -> str: ...
def bridge_ProgramExplain(graph: int, document: str, seeds: int) -> str: ...
def bridge_ProgramLines(document: str) -> str: ...
def bridge_ProgramPlaces(document: str) -> str: ...
def bridge_SamplerNew(document: str, seed: int) -> int: ...
def bridge_SamplerWithin(document: str, seed: int, share: int) -> int: ...
def bridge_SamplerClose(sampler: int) -> int: ...
def bridge_Submit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    threads: int,
) -> int: ...
def bridge_Sample(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    threads: int,
) -> int: ...
def bridge_Wait(job: int, timeout_ms: int) -> int: ...
def bridge_JobSpan(job: int, timeout_ms: int, address: int) -> int: ...
def bridge_Cancel(job: int) -> int: ...
def bridge_ExpandRows(indptr: int, num_rows: int, first: int, bits: int) -> int: ...
def bridge_JoinedHops(batch: int, ends: int) -> int: ...
def bridge_Gather(list: int, count: int, size: int, threads: int) -> int: ...
def bridge_GatherNow(list: int, count: int, size: int, threads: int) -> int: ...
def bridge_MemoryNew(size: int) -> int: ...
def bridge_SegmentReduce(list: int) -> int: ...
def bridge_SegmentDots(list: int, dots: int) -> int: ...
def bridge_SegmentTranspose(list: int, starts: int, rows: int, places: int) -> int: ...
def bridge_DeviceSegmentReduce(device: int, list: int, stream: int, bad: int) -> int: ...
def bridge_DeviceSegmentDots(device: int, list: int, dots: int, stream: int) -> int: ...
def bridge_DeviceSegmentTranspose(
    device: int,
    list: int,
    starts: int,
    rows: int,
    places: int,
    room: int,
    bytes: int,
    stream: int,
) -> int: ...
def bridge_SegmentAttend(list: int) -> int: ...
def bridge_DeviceSegmentAttend(device: int, list: int, stream: int) -> int: ...
def bridge_SegmentSoftmax(list: int) -> int: ...
def bridge_DeviceSegmentSoftmax(device: int, list: int, stream: int) -> int: ...
def bridge_Shuffle(array: int, length: int, bits: int, seed: int, epoch: int) -> int: ...
def bridge_SetThreads(count: int) -> int: ...
def bridge_Threads() -> int: ...
def bridge_MemoryStats() -> str: ...
def bridge_Trim() -> int: ...
def bridge_Shutdown() -> int: ...
def bridge_DeviceCount() -> int: ...
def bridge_DeviceName(device: int) -> str: ...
def bridge_DriverVersion() -> int: ...
def bridge_DeviceKernels(device: int) -> str: ...
def bridge_Environment(variables: str) -> int: ...
def bridge_CompilerSearch(files: str) -> int: ...
def bridge_CompilerReport() -> str: ...
def bridge_CompilerNotes() -> str: ...
def bridge_CompilerSlow() -> str: ...
def bridge_DeviceGraphNew(
    device: int,
    indptr: int,
    indptr_bits: int,
    num_rows: int,
    indices: int,
    id_bits: int,
    num_edges: int,
    edge_ids: int,
    edge_id_bits: int,
    num_nodes: int,
    alias: int,
    sums: int,
    trusted: int,
    host_graph: int,
) -> int: ...
def bridge_DeviceGraphForm(
    device: int,
    indptr: int,
    indptr_bits: int,
    num_rows: int,
    indices: int,
    id_bits: int,
    num_edges: int,
    edge_ids: int,
    edge_id_bits: int,
    num_nodes: int,
    alias: int,
    sums: int,
    trusted: int,
    host_graph: int,
    kinds: int,
    back: int,
) -> int: ...
def bridge_DeviceUpload(device: int, address: int, bytes: int, stream: int) -> int: ...
def bridge_DeviceDownload(device: int, address: int, bytes: int, stream: int) -> int: ...
def bridge_DeviceAlloc(device: int, bytes: int, stream: int) -> int: ...
def bridge_DeviceRegister(device: int, address: int, bytes: int) -> int: ...
def bridge_DeviceOrder(mem: int, stream: int) -> int: ...
def bridge_DeviceAfter(device: int, stream: int, other: int) -> int: ...
def bridge_DeviceExpand(device: int, count: int, list: int, stream: int) -> int: ...
def bridge_DeviceGather(device: int, count: int, list: int, stream: int) -> int: ...
def bridge_DeviceCachePut(device: int, list: int, places: int, stream: int) -> int: ...
def bridge_DeviceCacheAdmit(
    device: int, list: int, stamps: int, bids: int, now: int, stream: int
) -> int: ...
def bridge_DeviceTally(
    device: int, ids: int, count: int, bits: int, counts: int, rows: int, stream: int
) -> int: ...
def bridge_DeviceFilled(device: int, words: int, value: int, stream: int) -> int: ...
def bridge_DeviceDestinations(batch: int, stream: int) -> int: ...
def bridge_DeviceArrowExport(mem: int, data: int, length: int, bits: int) -> int: ...
def bridge_DeviceCapacity(graph: int, sampler: int, numSeeds: int) -> int: ...
def bridge_DeviceTogether(graph: int, sampler: int, numSeeds: int, most: int) -> int: ...
def bridge_DeviceSubmit(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    seeds_on_device: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    stream: int,
    own: int,
    out: int,
    out_bytes: int,
) -> int: ...
def bridge_DeviceSample(
    graph: int,
    sampler: int,
    seeds: int,
    num_seeds: int,
    seed_bits: int,
    seeds_on_device: int,
    epoch: int,
    batch: int,
    exclude: int,
    num_exclude: int,
    stream: int,
    out: int,
    out_bytes: int,
    timeout_ms: int,
) -> int: ...
def bridge_DeviceSubmitMany(
    graph: int, sampler: int, count: int, calls: int, stream: int, own: int
) -> int: ...
def bridge_DeviceWaitMany(launch: int, timeout_ms: int, addresses: int) -> int: ...
def bridge_DeviceWaitManyInto(launch: int, timeout_ms: int, count: int, words: int) -> int: ...
def bridge_DeviceFault(launch: int, place: int) -> int: ...
def bridge_DeviceCancelMany(launch: int) -> int: ...
def bridge_DeviceWaitInto(job: int, timeout_ms: int, count: int, words: int) -> int: ...
def bridge_DeviceWait(job: int, timeout_ms: int) -> int: ...
def bridge_DeviceCancel(job: int) -> int: ...
def bridge_DeviceStaticAloneNew(
    graph: int,
    sampler: int,
    sorted: int,
    byVertex: int,
    seedBits: int,
    grid: int,
    count: int,
    most: int,
) -> int: ...
def bridge_DeviceStaticBegin(
    handle: int,
    seeds: int,
    numSeeds: int,
    count: int,
    parts: int,
    epoch: int,
    first: int,
    stride: int,
    stream: int,
) -> int: ...
def bridge_DeviceStaticClose(handle: int) -> int: ...
def bridge_DeviceStaticEdgeBits(handle: int) -> int: ...
def bridge_DeviceStaticEdges(handle: int, bits: int, list: int, stream: int) -> int: ...
def bridge_DeviceStaticNew(
    graph: int, sampler: int, seeds: int, seedBits: int, grid: int, count: int, most: int
) -> int: ...
def bridge_DeviceStaticSample(handle: int, stream: int) -> int: ...
def bridge_DeviceStaticSpread(handle: int, count: int, list: int, stream: int) -> int: ...
def bridge_DeviceStaticTypedBegin(
    handle: int,
    seeds: int,
    times: int,
    numSeeds: int,
    count: int,
    parts: int,
    counts: int,
    exclude: int,
    starts: int,
    epoch: int,
    first: int,
    stride: int,
    stream: int,
) -> int: ...
def bridge_DeviceStaticTypedEdgeBits(handle: int, relation: int) -> int: ...
def bridge_DeviceStaticTypedNew(
    graph: int, sampler: int, sorted: int, seedBits: int, grid: int, count: int, most: int
) -> int: ...
def bridge_DeviceStaticTypedPlace(handle: int, count: int, list: int) -> int: ...
def bridge_DeviceStaticTypedSpread(handle: int, stream: int) -> int: ...
def bridge_DeviceStaticWait(handle: int, i: int, timeoutMS: int, count: int, words: int) -> int: ...
def bridge_DeviceStats(device: int) -> str: ...
def bridge_DeviceTrim(device: int) -> int: ...
def bridge_DegreesNew(graph: int, parallel: int) -> int: ...
def bridge_DegreesAdvance(count: int, edges: int) -> int: ...
def bridge_DegreesProfile(count: int) -> str: ...
def bridge_DegreesOut(count: int) -> int: ...
def bridge_DegreesClose(count: int) -> int: ...
def bridge_EdgesEnds(about: str) -> str: ...
def bridge_EdgesStart(plan: str) -> int: ...
def bridge_EdgesPoll(job: int, timeout_ms: int) -> str: ...
def bridge_EdgesTake(job: int) -> int: ...
def bridge_EdgesCancel(job: int) -> int: ...
def bridge_Negatives(list: int) -> int: ...
def bridge_DeviceNegatives(device: int, list: int, stream: int) -> int: ...
def bridge_NegativesStart(graph: int, power: int) -> int: ...
def bridge_PeersUnit(device: int, shared: int) -> int: ...
def bridge_PeersReach(device: int, peer: int) -> int: ...
def bridge_PeersUUID(device: int) -> str: ...
def bridge_PeersHeat(
    graph: int, degrees: int, row: int, per_unit: int, count: int, out: int
) -> int: ...
def bridge_PeersNew(device: int, place: int, pieces: int, count: int, shared: int) -> int: ...
def bridge_PeersLend(array: int, to: int) -> int: ...
def bridge_PeersExport(array: int, piece: int) -> int: ...
def bridge_PeersImport(array: int, piece: int, descriptor: int) -> int: ...
def bridge_PeersMap(array: int, address: int, bytes: int) -> int: ...
def bridge_PeersClose(array: int) -> int: ...
