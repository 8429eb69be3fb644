package cuda

import (
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// inputs are the tensors of a program in a workspace: copied when a batch comes that has others.
type inputs struct {
	buffer
	held []*program.Tensor
}

// fill copies what is not there. The workspace is its own batch's, and the copy is in the batch's stream.
func (n *inputs) fill(f *Flight, tensors []*program.Tensor) ([]gpu.Address, error) {
	found, bytes := make([]gpu.Address, len(tensors)), uint64(0)
	for i, t := range tensors {
		found[i] = gpu.Address(bytes)
		bytes += (4*uint64(len(t.Data)) + 63) &^ 63
	}
	if bytes == 0 {
		return nil, nil
	}
	before := n.Address
	if err := n.fit(f.space, bytes, f.stream); err != nil {
		return nil, err
	}
	if n.Address != before {
		n.held = nil
	}
	for i, t := range tensors {
		found[i] += n.Address
		if i < len(n.held) && n.held[i] == t {
			continue
		}
		n.held = n.held[:min(i, len(n.held))]
		if err := f.stream.Upload(found[i], unsafe.Pointer(unsafe.SliceData(t.Data)), 4*uint64(len(t.Data))); err != nil {
			return nil, err
		}
		n.held = append(n.held, t)
	}
	return found, nil
}

// tensors are the inputs that a kernel reads, in the order of its arrays.
func (p *Programs) tensors() (found []*program.Tensor) {
	for _, a := range p.text.Arrays {
		if a.Input != nil {
			found = append(found, a.Input)
		}
	}
	return found
}

// widths returns an error for rows that cannot be combined: the lengths of the graph's rows are
// known only here.
func (p *Programs) widths(g *Graph) error {
	if p.wants == nil {
		return nil
	}
	nodes, wants := p.program.Nodes, p.wants
	widths := make([]int64, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if wants[i] == 0 {
			continue
		}
		switch n.Op {
		case program.Features:
			length := g.named.vertices[n.Name].length
			if g.Nodes > 0 {
				if length%g.Nodes != 0 {
					return fmt.Errorf("%w: features: expected a row for each of %d nodes in '%s', got %d values", request.ErrValue, g.Nodes, n.Name, length)
				}
				widths[i] = length / g.Nodes
			}
		case program.Take:
			widths[i] = widths[n.In[0]]
		case program.Project:
			d, h := n.Tensor.Matrix()
			if got := widths[n.In[0]]; got != d && g.Nodes > 0 {
				return fmt.Errorf("%w: @: expected rows of %d numbers for '%s' of shape (%s), got %d", request.ErrValue, d, n.Name, n.Tensor.ShapeText(), got)
			}
			widths[i] = h
		case program.Multiply:
			widths[i] = widths[n.In[1]]
		case program.Entry:
			if got := widths[n.In[0]]; n.K >= got && g.Nodes > 0 {
				return fmt.Errorf("%w: [:, %d]: expected rows of more numbers, got %d", request.ErrValue, n.K, got)
			}
		case program.Dot:
			if wants[i]&program.WantValues == 0 || g.Nodes == 0 {
				continue
			}
			if p, q := widths[n.In[1]], widths[n.In[2]]; p != q {
				return fmt.Errorf("%w: dot: expected rows of one length, got %d and %d numbers", request.ErrValue, p, q)
			}
		}
	}
	return nil
}
