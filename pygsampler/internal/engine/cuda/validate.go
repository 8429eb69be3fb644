package cuda

import (
	"errors"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// validateArgs mirrors ValidateArgs in kernels/graph/validate.cu.
type validateArgs struct {
	Indptr, Indices, Lowest, Ended, Report gpu.Address
	Rows, Edges, Nodes                     uint64
	IndptrBits, IDBits                     uint32
}

// Validate checks a CSC as csc.Graph.Validate does, with the same errors, by one
// kernel that reads all of it. The arrays must be complete: no stream is waited for.
func (e *Engine) Validate(a Arrays) (err error) {
	if err := csc.CheckSizes(a.Rows, a.Nodes, a.Kinds, a.IDBits); err != nil {
		return err
	}
	words, err := e.findOffenders(a)
	if err != nil {
		return err
	}
	if err := csc.CheckEnds(words[validateFirst], words[validateLast], a.Rows, a.Edges); err != nil {
		return err
	}
	if i := words[validateDecreaseAt]; i >= 0 {
		return csc.Decrease(i, words[validateDecreaseBefore], words[validateDecreaseGot])
	}
	if i := words[validateOutsideAt]; i >= 0 {
		return csc.Outside(i, a.Nodes, words[validateOutsideGot])
	}
	return nil
}

// findOffenders is the kernel's report.
func (e *Engine) findOffenders(a Arrays) (words [validateWords]int64, err error) {
	kernel, err := KernelOf[validateArgs](e, "validate", "validate", 0)
	if err != nil {
		return words, err
	}
	stream, err := e.context.NewStream()
	if err != nil {
		return words, err
	}
	defer func() { err = errors.Join(err, twice(stream.Close)) }()
	report, err := e.context.AllocPinned(uint64(unsafe.Sizeof(words)))
	if err != nil {
		return words, err
	}
	defer func() { err = errors.Join(err, twice(report.Close)) }()
	// The two lowest offenders, and how many blocks have ended.
	found, err := e.pool.Alloc(stream, 24)
	if err != nil {
		return words, err
	}
	defer func() { err = errors.Join(err, twice(func() error { return found.Free(stream) })) }()
	args := validateArgs{
		Indptr: a.Indptr, Indices: a.Indices, Lowest: found.Address, Ended: found.Address + 16, Report: report.Address,
		Rows: uint64(a.Rows), Edges: uint64(a.Edges), Nodes: uint64(a.Nodes),
		IndptrBits: uint32(a.IndptrBits), IDBits: uint32(a.IDBits),
	}
	// The grid has as many threads as can run at a time; the elements of a thread are 16 bytes.
	bytes := max(a.Rows+1, a.Edges) * 8
	blocks := min(bytes/(16*validateThreads)+1, 4*int64(e.context.Properties().Multiprocessors))
	// It is never launched after a failed fill, since the kernel reads at addresses that it finds
	// there.
	if err = errors.Join(stream.Fill32(found.Address, ^uint32(0), 4), stream.Fill32(found.Address+16, 0, 2)); err == nil {
		err = kernel.Launch(stream, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{validateThreads}}, &args)
	}
	err = errors.Join(err, stream.Synchronize())
	return *(*[validateWords]int64)(report.Pointer), err
}

// twice calls giveBack again if the first call has failed.
func twice(giveBack func() error) error {
	if giveBack() == nil {
		return nil
	}
	return giveBack()
}
