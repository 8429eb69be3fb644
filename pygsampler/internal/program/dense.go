package program

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Tensor is an input of a program: a vector, or a matrix in C order.
type Tensor struct {
	Shape []int64
	Data  []float32
	// digest distinguishes contents: nodes of different inputs are different values.
	digest string
}

// Matrix returns the number of rows and columns; a vector is a matrix of one column.
func (t *Tensor) Matrix() (rows, columns int64) {
	if len(t.Shape) == 1 {
		return t.Shape[0], 1
	}
	return t.Shape[0], t.Shape[1]
}

// ShapeText returns the shape in Python's notation, without the parentheses.
func (t *Tensor) ShapeText() string {
	if len(t.Shape) == 1 {
		return fmt.Sprintf("%d,", t.Shape[0])
	}
	return fmt.Sprintf("%d, %d", t.Shape[0], t.Shape[1])
}

// denseType infers the type of an operator on dense rows.
func (p *Program) denseType(n *Node, in []Type) (t Type, err error) {
	switch n.Op {
	case Features:
		return Type{Kind: Dense}, nil
	case Take:
		if in[0].Along.Space == All || in[0].Along == in[1].Along {
			return Type{Kind: Dense, Along: in[1].Along}, nil
		}
		return t, fmt.Errorf("take: expected rows of all nodes, got some along a list")
	case Project:
		return Type{Kind: Dense, Along: in[0].Along}, nil
	case Item:
		if n.K < 0 {
			return t, fmt.Errorf("item: k: expected an integer >= 0, got %d", n.K)
		}
		return Type{Kind: Scalar}, nil
	case Entry:
		if n.K < 0 {
			return t, fmt.Errorf("entry: k: expected an integer >= 0, got %d", n.K)
		}
		return Type{Kind: Vector, Along: in[0].Along}, nil
	case Multiply:
		if n.Axis < 0 {
			return t, fmt.Errorf("multiply: axis: expected 0 (rows for each column) or 1 (for each row), got None")
		}
		if !p.fits(in[1].Along, in[0].Edges, 1-n.Axis) {
			return t, fmt.Errorf("@: expected dense rows along the matrix's %s, or of all nodes, got some along something else", []string{"rows", "columns"}[n.Axis])
		}
		return Type{Kind: Dense, Along: []func(int) Along{p.columns, p.rows}[n.Axis](in[0].Edges)}, nil
	}
	if !p.fits(in[1].Along, in[0].Edges, 1) {
		return t, fmt.Errorf("dot: expected rows along the matrix's rows, or of all nodes, as input 1, got some along something else")
	}
	if !p.fits(in[2].Along, in[0].Edges, 0) {
		return t, fmt.Errorf("dot: expected rows along the matrix's columns, or of all nodes, as input 2, got some along something else")
	}
	return Type{Kind: Matrix, Edges: in[0].Edges}, nil
}

// Dense reports whether a program computes with dense rows.
func (p *Program) Dense() bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Type.Kind == Dense })
}

// Reads reports whether the program has inputs.
func (p *Program) Reads() bool {
	for i := range p.Nodes {
		if op := p.Nodes[i].Op; op == Project || op == Item {
			return true
		}
	}
	return false
}

// Bind sets the inputs of the program: for each a name, its shape ("2,64") and its float32 numbers,
// in base64, little-endian.
func (p *Program) Bind(inputs []string) error {
	if len(inputs)%3 != 0 {
		return fmt.Errorf("inputs: expected a name, a shape and numbers of each, got %d texts", len(inputs))
	}
	known := map[string]*Tensor{}
	for k := 0; k < len(inputs); k += 3 {
		t, err := newTensor(inputs[k+1], inputs[k+2])
		if err != nil {
			return fmt.Errorf("inputs: %q: %w", inputs[k], err)
		}
		known[inputs[k]] = t
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op != Project && n.Op != Item {
			continue
		}
		t := known[n.Name]
		switch {
		case t == nil:
			return fmt.Errorf("%%%d: %s: expected an input %q, got none", i, n.Op, n.Name)
		case n.Op == Project && len(t.Shape) > 2:
			return fmt.Errorf("%%%d: @: expected an input of 1 or 2 dimensions, got %q of %d", i, n.Name, len(t.Shape))
		case n.Op == Item && len(t.Shape) != 1:
			return fmt.Errorf("%%%d: expected an input of 1 dimension to have elements, got %q of %d", i, n.Name, len(t.Shape))
		case n.Op == Item && n.K >= t.Shape[0]:
			return fmt.Errorf("%%%d: expected an element of %q from 0 to %d, got %d", i, n.Name, t.Shape[0]-1, n.K)
		}
		n.Tensor = t
	}
	return nil
}

func newTensor(shape, numbers string) (*Tensor, error) {
	t, count := &Tensor{}, int64(1)
	for _, text := range strings.Split(shape, ",") {
		extent, err := strconv.ParseInt(text, 10, 32)
		if err != nil || extent < 1 {
			return nil, fmt.Errorf("expected a shape of positive numbers, got %q", shape)
		}
		t.Shape = append(t.Shape, extent)
		if count *= extent; count > math.MaxInt32 {
			return nil, fmt.Errorf("expected fewer than 2**31 numbers, got shape %q", shape)
		}
	}
	bytes, err := base64.StdEncoding.DecodeString(numbers)
	if err != nil || int64(len(bytes)) != 4*count {
		return nil, fmt.Errorf("expected %d numbers in base64 for shape %q, got %d bytes", count, shape, len(bytes))
	}
	t.Data = make([]float32, count)
	for i := range t.Data {
		t.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	t.digest = fmt.Sprintf("%s %x", shape, sha256.Sum256(bytes))
	return t, nil
}
