// Package costs holds the costs of the CPU executor's operations: measured on this machine (package
// calibrate), or on another one. Optimization passes decide with them which values are stored, and
// explain estimates times.
package costs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
)

// Costs are nanoseconds of one core. A value is computed for the edges of a tile.
type Costs struct {
	Map    float64 `json:"map"`    // of an operation on a value
	Exp    float64 `json:"exp"`    // of exp, log, or a power that is neither whole nor 1/2
	Store  float64 `json:"store"`  // more, where a value is written and read rather than made where it is taken
	Column float64 `json:"column"` // of an edge's weight, and of adding it up along its column
	Row    float64 `json:"row"`    // of finding an edge's row, and of adding its weight up there
	Draw   float64 `json:"draw"`   // of an edge that is drawn uniformly
	Race   float64 `json:"race"`   // of a candidate of a draw by values
	Write  float64 `json:"write"`  // of an edge of a batch
	Random float64 `json:"random"` // of a uniform number of a vertex
	Gather float64 `json:"gather"` // of an edge's element of a vector of all vertices
	Wide   float64 `json:"wide"`   // of adding up an edge's weight where all vertices are rows
	Vertex float64 `json:"every"`  // of each of these, with edges or without, there and in a choice among them
	Look   float64 `json:"look"`   // of an edge that is looked at, whether its row is asked for
	Out    float64 `json:"out"`    // of an out-edge that is taken and put where it stands among its column's
	Turn   float64 `json:"turn"`   // of an edge, to find all out-edges of a graph
}

// Elsewhere holds the costs of another machine, a core of an AMD EPYC that others used too. To
// store a value took less than an operation there, since it stays in a cache; here it counts as
// four operations, so that the plans of machines without a measurement do not change.
var Elsewhere = Costs{Map: 0.6, Exp: 7, Store: 2.4, Column: 1.5, Row: 6, Draw: 2.8, Race: 47, Write: 10,
	Random: 6.5, Gather: 2, Wide: 4.5, Vertex: 4, Look: 1.1, Out: 22, Turn: 10}

// of is the costs of the CPU, or of a GPU, in a file of the folder of what was compiled.
type of[C any] struct {
	name    string
	numbers func(C) []float64
	sync.Mutex
	read bool
	here *C
}

var known = of[Costs]{name: "costs.json", numbers: func(c Costs) []float64 {
	return []float64{
		c.Map, c.Exp, c.Store, c.Column, c.Row, c.Draw, c.Race, c.Write, c.Random, c.Gather, c.Wide, c.Vertex, c.Look, c.Out, c.Turn,
	}
}}

// Measured returns the costs measured on this machine; if there are none, here is false and the costs
// are Elsewhere.
func Measured() (c Costs, here bool) { return known.orElse(Elsewhere) }

// Keep writes the costs to the file that Known reads, and returns its path.
func (c Costs) Keep() (path string, err error) { return known.keep(c) }

func (k *of[C]) orElse(elsewhere C) (c C, here bool) {
	k.Lock()
	defer k.Unlock()
	if !k.read {
		k.read = true
		if folder, err := compiler.Folder(); err == nil {
			// A file that is not one of ours is no reason to make no batches.
			k.here, _ = k.readFrom(filepath.Join(folder, k.name))
		}
	}
	if k.here == nil {
		return elsewhere, false
	}
	return *k.here, true
}

func (k *of[C]) readFrom(path string) (*C, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := new(C)
	if err = json.Unmarshal(text, c); err == nil {
		err = k.check(*c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// check refuses what no measurement gives.
func (k *of[C]) check(c C) error {
	for _, x := range k.numbers(c) {
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("costs: expected numbers above 0, got %v", c)
		}
	}
	return nil
}

func (k *of[C]) keep(c C) (path string, err error) {
	if err := k.check(c); err != nil {
		return "", err
	}
	folder, err := compiler.Folder()
	if err != nil {
		return "", fmt.Errorf("costs: expected a folder to keep them in: %w", err)
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, k.name)
	file, err := os.CreateTemp(folder, "new-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		if gone := os.Remove(file.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return "", err
	}
	k.Lock()
	defer k.Unlock()
	k.read, k.here = true, &c
	return path, nil
}

// Operations returns the number of operations that take as long as to store a value.
func (c Costs) Operations() int {
	return int(min(max(math.Round(c.Store/c.Map), 1), 16))
}
