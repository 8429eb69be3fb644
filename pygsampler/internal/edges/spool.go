package edges

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// spool is a source that keeps the edges in memory, so that another pass over them need not read
// the file again. Above its limit it keeps nothing.
type spool struct {
	Source
	limit int64 // bytes; 0 keeps nothing
	kept  int64
	parts []part
	full  bool // a scan came to its end and all of it is in memory
}

// part is a run of edges: ids of 32 bits if all fit, sources first.
type part struct {
	pages *memory.Pages
	n     int64
	wide  bool
}

func (s *spool) Scan(m *Meter, emit func(*Batch) error) error {
	if s.full {
		return s.replay(m, emit)
	}
	s.free()
	keeping := s.limit > 0
	err := s.Source.Scan(m, func(b *Batch) error {
		if keeping {
			if keeping = s.keep(b); !keeping {
				s.free()
			}
		}
		return emit(b)
	})
	s.full = err == nil && keeping
	return err
}

// keep copies the edges; it returns false if there is no room for them.
func (s *spool) keep(b *Batch) bool {
	n := int64(len(b.Src))
	wide := false
	for i, u := range b.Src {
		if u > math.MaxInt32 || b.Dst[i] > math.MaxInt32 {
			wide = true
			break
		}
	}
	size := 8 * n
	if wide {
		size *= 2
	}
	if s.kept += size + 4096; s.kept > s.limit {
		return false
	}
	p, err := memory.Map(size)
	if err != nil {
		return false
	}
	if wide {
		ids := memory.Slice[int64](p, 2*n)
		copy(ids, b.Src)
		copy(ids[n:], b.Dst)
	} else {
		ids := memory.Slice[int32](p, 2*n)
		for i, u := range b.Src {
			ids[i], ids[n+int64(i)] = int32(u), int32(b.Dst[i])
		}
	}
	s.parts = append(s.parts, part{p, n, wide})
	return true
}

func (s *spool) replay(m *Meter, emit func(*Batch) error) error {
	var src, dst []int64
	size := s.Source.Size()
	done := int64(0)
	for i, p := range s.parts {
		if m.Stop.Load() {
			return ErrStopped
		}
		b := &Batch{where: func(int) string { return "edge" }}
		if int64(cap(src)) < p.n {
			src, dst = make([]int64, p.n), make([]int64, p.n)
		}
		// Copies, since who takes them may change them.
		b.Src, b.Dst = src[:p.n], dst[:p.n]
		if p.wide {
			ids := memory.Slice[int64](p.pages, 2*p.n)
			copy(b.Src, ids)
			copy(b.Dst, ids[p.n:])
		} else {
			ids := memory.Slice[int32](p.pages, 2*p.n)
			for j := range b.Src {
				b.Src[j], b.Dst[j] = int64(ids[j]), int64(ids[p.n+int64(j)])
			}
		}
		if err := emit(b); err != nil {
			return err
		}
		now := size * int64(i+1) / int64(len(s.parts))
		m.Done.Add(now - done)
		done = now
	}
	m.Done.Add(size - done)
	return nil
}

func (s *spool) free() {
	for _, p := range s.parts {
		p.pages.Free()
	}
	s.parts, s.kept, s.full = nil, 0, false
}

// more announces another scan to the meter.
func (s *spool) more(m *Meter) { m.Total.Add(s.Source.Size()) }
