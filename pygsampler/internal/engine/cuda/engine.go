// Package cuda is the CUDA engine: it launches the kernels, one Args struct each,
// and owns the device memory that they work in.
package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
)

// Engine is a device with the kernels loaded. Any number of goroutines may use it; each running
// batch has its own workspace.
type Engine struct {
	context *gpu.Context
	pool    *gpu.MemoryPool
	stream  gpu.Stream // in which batches are freed

	loading sync.Mutex
	modules map[string]*gpu.Module

	keeping sync.Mutex
	kept    map[string]*kept // the kernels of plans, by their names

	mu      sync.Mutex
	idle    []*Workspace
	made    int // workspaces, idle or not
	flights int
}

// keep is the amount of freed memory that the pool retains.
const keep = 1 << 30

var engines struct {
	sync.Mutex
	of map[int]*Engine
}

// Open returns the engine of a device, which it creates at the first call. After a failure the next
// call tries again.
func Open(device int) (*Engine, error) {
	engines.Lock()
	defer engines.Unlock()
	if e := engines.of[device]; e != nil {
		return e, nil
	}
	e, err := open(device)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	if engines.of == nil {
		engines.of = make(map[int]*Engine)
	}
	engines.of[device] = e
	return e, nil
}

// CloseAll releases the memory of all engines; no batch may be running.
func CloseAll() error {
	engines.Lock()
	defer engines.Unlock()
	var errs []error
	for device, e := range engines.of {
		if err := e.close(); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(engines.of, device)
	}
	return errors.Join(errs...)
}

func open(device int) (e *Engine, err error) {
	e = &Engine{modules: make(map[string]*gpu.Module), kept: make(map[string]*kept)}
	if e.context, err = gpu.Retain(device); err != nil {
		return e, err
	}
	if p := e.context.Properties(); !p.Cooperative {
		return e, fmt.Errorf("%s: expected a device with cooperative launches, got one without", p.Name)
	}
	if e.pool, err = e.context.NewPool(keep); err != nil {
		return e, err
	}
	e.stream, err = e.context.NewStream()
	return e, err
}

// module loads the named file of kernels at its first use.
func (e *Engine) module(file string) (*gpu.Module, error) {
	return e.loaded(file, func(major, minor int) (compiler.Image, error) {
		return compiler.Default.Kernels(file, major, minor)
	})
}

// loaded is the module of a name, of code that is asked for once.
func (e *Engine) loaded(name string, code func(major, minor int) (compiler.Image, error)) (*gpu.Module, error) {
	e.loading.Lock()
	defer e.loading.Unlock()
	if m := e.modules[name]; m != nil {
		return m, nil
	}
	p := e.context.Properties()
	image, err := code(p.Major, p.Minor)
	if err != nil {
		return nil, err
	}
	m, err := e.context.Load(image.Code)
	if err == nil {
		e.modules[name] = m
	}
	return m, err
}

// KernelOf returns a kernel of a file whose launches may use up to shared bytes of dynamic shared
// memory.
func KernelOf[Args any](e *Engine, file, name string, shared int) (k gpu.Kernel[Args], err error) {
	m, err := e.module(file)
	if err != nil {
		return k, err
	}
	if k, err = gpu.KernelOf[Args](m, name); err == nil && shared > 0 {
		err = k.AllowShared(shared)
	}
	return k, err
}

// Context returns the context of the device.
func (e *Engine) Context() *gpu.Context { return e.context }

// MemoryPool returns the pool of the engine's device memory.
func (e *Engine) MemoryPool() *gpu.MemoryPool { return e.pool }

// Stats are the amounts of device memory that the engine holds.
type Stats struct {
	Used       int64 `json:"used"`     // bytes: workspaces, batches, graphs that were copied
	Reserved   int64 `json:"reserved"` // bytes that the pool has of the device, used or not
	Workspaces int   `json:"workspaces"`
	Flights    int   `json:"flights"` // batches on their way
}

// Stats returns the counters.
func (e *Engine) Stats() (Stats, error) {
	reserved, err := e.pool.Reserved()
	e.mu.Lock()
	defer e.mu.Unlock()
	return Stats{e.pool.Used(), reserved, e.made, e.flights}, err
}

// Trim releases memory that no batch uses.
func (e *Engine) Trim() error {
	e.mu.Lock()
	idle := e.idle
	e.idle = nil
	e.made -= len(idle)
	e.mu.Unlock()
	var errs []error
	for _, w := range idle {
		errs = append(errs, w.close())
	}
	return errors.Join(append(errs, e.pool.Trim(0))...)
}

func (e *Engine) close() error {
	var errs []error
	if e.pool != nil {
		errs = append(errs, e.Trim(), e.pool.Close())
	}
	if e.stream.Context() != nil {
		errs = append(errs, e.stream.Close())
	}
	e.keeping.Lock()
	clear(e.kept)
	e.keeping.Unlock()
	for file, m := range e.modules {
		errs = append(errs, m.Close())
		delete(e.modules, file)
	}
	if e.context != nil {
		errs = append(errs, e.context.Close())
	}
	return errors.Join(errs...)
}
