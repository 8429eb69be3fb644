package request

// The words of a packed request: one call for a batch, which Python writes and the engine decodes. This file imports
// nothing: `go generate ./pygsampler/internal/constants` makes the package's request_layout.py of it.

// RequestSignature is the first word of every request: "PGSR" in the low half, the version in the high half.
const RequestSignature = 0x150475352

// Words of a request. All are int64; addresses and handles of 0 mean "none". Words beyond the end of a request count
// as 0.
const (
	WordSignature  = 0
	WordSize       = 1 // of the request, in words: one of the sizes below
	WordKind       = 2
	WordFlags      = 3
	WordGraph      = 4 // its handle
	WordSampler    = 5 // its handle
	WordSeeds      = 6
	WordNumSeeds   = 7
	WordSeedBits   = 8
	WordEpoch      = 9
	WordBatch      = 10
	WordExclude    = 11 // int64 ids of edges to sample around
	WordNumExclude = 12
	WordThreads    = 13 // at most so many; 0: as many as are idle
	WordResult     = 14 // written: the address of the memory, where it is complete
	WordJob        = 15 // written: the handle of the job, where the memory is not
)

// Words of a request for a device.
const (
	WordStream   = 16 // a CUstream: its work comes before the batch
	WordOut      = 17 // the caller's memory for the batch; 0: the engine allocates
	WordOutBytes = 18
	WordTimeout  = 19 // in milliseconds: how long a prompt request waits for the batch
)

// Words of a request with node types or times.
const (
	WordCounts    = 24 // a number of seeds for each node type, then of excluded edges for each relation
	WordSorted    = 25 // two words a relation: the memory of its times or 0, and whether these are nodes'
	WordSeedTimes = 26 // a time for each seed
	WordTimed     = 27 // of a partitioned graph: for each relation whether its edges have times
)

// Words of a request for a batch of a partitioned graph.
const (
	WordBounds           = 32 // the first node of each part and the number of nodes, for each relation
	WordNumBounds        = 33
	WordWalkRelations    = 34 // two words an edge type of a metapath: its relation, the nodes where it leads
	WordNumWalkRelations = 35
	WordRoots            = 36 // how many nodes walks may begin at
)

// Words of a request for rows of a partition; its seeds are the nodes whose rows they are.
const (
	WordRelation    = 40
	WordHop         = 41
	WordFirst       = 42 // the first node of the partition
	WordFirstEdge   = 43
	WordEdgeIDBits  = 44
	WordIDs         = 45 // of the partition's edges; 0: FirstEdge and the ids after it
	WordNumIDs      = 46
	WordIDsBits     = 47
	WordSubgraphIDs = 48 // an id for each node
	WordRowBounds   = 49 // an int64 for each node
)

// Sizes of requests: each contains the words of the sizes before it.
const (
	SizePlain     = 16
	SizeDevice    = 24
	SizeHetero    = 32
	SizePartition = 40
	SizeRows      = 56
)

// Kinds of requests.
const (
	KindSample = 0 // a batch
	KindRows   = 1 // rows of a partition
)

// Flags of a request.
const (
	FlagPrompt     = 1  // the caller waits: small batches run on its thread, device batches are awaited
	FlagEdgeLists  = 2  // the memory is the batch's edge lists
	FlagOwnStream  = 4  // the batch runs in a stream of the engine, concurrently with Stream
	FlagOnDevice   = 8  // the seeds are on the graph's device, and stay until the job has ended
	FlagKnown      = 16 // that they are is certain, so the driver is not asked
	FlagFloatTimes = 32 // the times of seeds are float64; Sorted says so of a whole graph
)
