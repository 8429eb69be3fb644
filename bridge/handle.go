// Package bridge is the flat surface that gopy compiles into the extension
// pygsampler._bridge: scalars, strings and addresses, no Go object. Every function
// recovers, and every error reads "Kind: text", Kind being the Python exception.
package bridge

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// onCPU is the device number of the CPU.
const onCPU = -1

// table gives Go objects numbers that Python keeps. Numbers are never reused, so
// a stale one is refused, not mistaken.
type table[T any] struct {
	sync.Mutex
	last  int64
	items map[int64]T
}

func (t *table[T]) add(item T) int64 {
	t.Lock()
	defer t.Unlock()
	if t.items == nil {
		t.items = make(map[int64]T)
	}
	t.last++
	t.items[t.last] = item
	return t.last
}

func (t *table[T]) get(handle int64) (T, bool) {
	t.Lock()
	defer t.Unlock()
	item, ok := t.items[handle]
	return item, ok
}

// take removes the item; of several callers one gets it.
func (t *table[T]) take(handle int64) (T, bool) {
	t.Lock()
	defer t.Unlock()
	item, ok := t.items[handle]
	delete(t.items, handle)
	return item, ok
}

// itemOf is the item of a handle if it is of the kind K.
func itemOf[K, T any](t *table[T], handle int64, what string) (K, error) {
	item, ok := t.get(handle)
	kind, is := any(item).(K)
	if !ok || !is {
		return kind, closed(what)
	}
	return kind, nil
}

var (
	graphs   table[*core.Graph]
	samplers table[*core.Sampler]
	jobs     table[canceller]
)

// canceller is a core.Job, or a launch of several.
type canceller interface{ Cancel() }

// ends lists the closing functions that destructors of Python objects call, by name.
var ends = []struct {
	name string
	end  func(handle int64) (int64, error)
}{
	{"GraphClose", dropGraph},
	{"SamplerClose", SamplerClose},
	{"Cancel", Cancel},
	{"DegreesClose", DegreesClose},
	{"GraphFileAbort", GraphFileAbort},
	{"EdgesCancel", EdgesCancel},
	{"DeriveCancel", DeriveCancel},
	{"StaticClose", StaticClose},
	{"SharedClose", SharedClose},
}

// EndKind returns the number by which a finalizer identifies a closing function of this package.
func EndKind(name string) (kind int64, err error) {
	defer finish(&err)
	for i, e := range ends {
		if e.name == name {
			return int64(i), nil
		}
	}
	return 0, core.Errorf(core.KindValue, "destructor: expected the end of a kind of handle, got %q", name)
}

// dropGraph closes a graph that went: its jobs went with it, as they refer to it, so
// they are cancelled rather than waited for.
func dropGraph(graph int64) (zero int64, err error) {
	defer finish(&err)
	if g, ok := graphs.take(graph); ok {
		g.Drop()
	}
	return 0, nil
}

// Destructors returns the number of running finalizers.
func Destructors() (n int64, err error) {
	defer finish(&err)
	return core.Destructors(), nil
}

func init() {
	functions := make([]func(int64), len(ends))
	for i, e := range ends {
		functions[i] = func(handle int64) { _, _ = e.end(handle) }
	}
	core.SetEnds(functions)
}

// finish turns what a function ends with, a panic included, into an error whose
// message Python can sort.
func finish(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
	if *err != nil {
		kind, text := core.KindOf(*err)
		// Names of files need not be UTF-8; Python's messages must be.
		*err = errors.New(string(kind) + ": " + strings.ToValidUTF8(text, "\ufffd"))
	}
}

func closed(what string) error {
	return core.Errorf(core.KindClosed, "%s: expected an open one, got a closed one", what)
}
