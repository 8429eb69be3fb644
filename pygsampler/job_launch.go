package pygsampler

import (
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// DeviceLaunch is a group of jobs on a device that were submitted together and whose results are
// read together.
type DeviceLaunch struct{ jobs []*DeviceJob }

// SubmitMany starts several batches, as one launch if the engine can: each is r with 8 words
// replaced by those at the address calls.
func SubmitMany(g *Graph, p *Sampler, r Request, calls, count int64) (*DeviceLaunch, error) {
	if _, err := g.Relation(); err != nil {
		return nil, err
	}
	list, err := r.each(calls, count)
	if err != nil {
		return nil, err
	}
	jobs, err := submitMany(g, p, list)
	if err != nil {
		return nil, err
	}
	return &DeviceLaunch{jobs}, nil
}

// Wait waits up to timeout milliseconds, without limit if negative, until all jobs have ended.
// failed is the index of the first job with an error, or their number.
func (l *DeviceLaunch) Wait(timeout int64) (failed int, finished bool) {
	begin := time.Now()
	limit := time.Duration(min(timeout, 1<<40)) * time.Millisecond
	failed = len(l.jobs)
	for i, j := range l.jobs {
		left := time.Duration(-1)
		if timeout >= 0 {
			left = max(0, limit-time.Since(begin))
		}
		if !j.settle(left) {
			return 0, false
		}
		if j.err != nil && i < failed {
			failed = i
		}
	}
	return failed, true
}

// Take writes the addresses of all memories, with their references, to an address of as many
// integers. All jobs must have ended without an error.
func (l *DeviceLaunch) Take(addresses int64) {
	out := memory.View[int64](addresses, int64(len(l.jobs)))
	for i, j := range l.jobs {
		out[i] = j.memory.Address()
	}
}

// TakeWords writes the words that describe each batch, count words, to the address words, and
// releases the batches' memories, which belong to another owner. A batch that did not fit has the
// sufficient number of bytes as its capacity, and no signature; a failed batch has zeros. All jobs
// must have ended.
func (l *DeviceLaunch) TakeWords(count, words int64) {
	out := memory.View[int64](words, count*int64(len(l.jobs)))
	for i, j := range l.jobs {
		w := out[int64(i)*count:][:count]
		clear(w)
		switch {
		case j.err != nil:
		case j.needed > 0:
			w[batch.WordCapacity] = int64(j.needed)
		default:
			takeWords(j.memory, w)
		}
	}
}

// Err returns the error of the job with an index, or nil. All jobs must have ended.
func (l *DeviceLaunch) Err(place int) error {
	if place < 0 || place >= len(l.jobs) {
		return nil
	}
	return l.jobs[place].err
}

// Cancel ends all jobs and drops their results.
func (l *DeviceLaunch) Cancel() {
	for _, j := range l.jobs {
		j.cancel()
	}
	for _, j := range l.jobs {
		j.Cancel()
	}
}

// TakeWords copies count words that describe a batch to an address, and releases the batch's
// memory, which belongs to another owner.
func TakeWords(mem, count, words int64) {
	takeWords(memory.FromAddress(mem), memory.View[int64](words, count))
}

func takeWords(m memory.Memory, words []int64) {
	copy(words, m.Header(int64(len(words))))
	m.Release()
}
