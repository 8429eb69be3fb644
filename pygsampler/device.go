package pygsampler

import (
	"encoding/json"
	"fmt"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/kernels"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
)

// DeviceCount returns the number of CUDA devices, 0 without a driver.
func DeviceCount() (int64, error) {
	n, err := gpu.DeviceCount()
	return int64(n), err
}

// DeviceName returns the driver's name of device i.
func DeviceName(i int64) (string, error) {
	n, err := gpu.DeviceCount()
	if err != nil {
		return "", err
	}
	if i < 0 || i >= int64(n) {
		return "", Errorf(KindIndex, "device: expected an index in [0, %d), got %d", n, i)
	}
	return gpu.DeviceName(int(i))
}

// DriverVersion returns the CUDA version of the driver (12090 is 12.9), 0 without one.
func DriverVersion() (int64, error) {
	version, err := gpu.DriverVersion()
	return int64(version), err
}

// deviceReport describes a device and its kernels, for people and for bug reports.
type deviceReport struct {
	Name              string         `json:"name"`
	ComputeCapability string         `json:"compute_capability"`
	Multiprocessors   int            `json:"multiprocessors"`
	Memory            int64          `json:"memory_bytes"`
	Free              int64          `json:"free_bytes"` // of all processes; 0 where it could not be asked
	Cooperative       bool           `json:"cooperative_launch"`
	RegistersHost     bool           `json:"registers_host_memory"`
	Kernels           []kernelReport `json:"kernels"`
	Error             string         `json:"error"` // why nothing could be loaded; empty
}

// kernelReport is a file of kernels on a device.
type kernelReport struct {
	Name  string `json:"name"`
	Code  string `json:"code"` // "sm_90 machine code", or why there is none
	PTX   bool   `json:"ptx"`  // the driver compiled it
	Bytes int    `json:"bytes"`
	Log   string `json:"log"`   // what the driver's compiler had to say
	Error string `json:"error"` // why it does not load; empty where it does
}

// DeviceKernels loads every file of kernels onto device i, once and for nothing
// else, and says as JSON which image each got and how that went.
func DeviceKernels(i int64) (string, error) {
	if _, err := DeviceName(i); err != nil {
		return "", err
	}
	p, err := gpu.DeviceProperties(int(i))
	if err != nil {
		return "", err
	}
	r := deviceReport{
		Name: p.Name, ComputeCapability: fmt.Sprintf("%d.%d", p.Major, p.Minor), Multiprocessors: p.Multiprocessors, Memory: p.Memory,
		Cooperative: p.Cooperative, RegistersHost: p.RegistersHost, Kernels: []kernelReport{},
	}
	if context, err := gpu.Retain(int(i)); err != nil {
		r.Error = err.Error()
	} else {
		for _, name := range compiler.Names() {
			r.Kernels = append(r.Kernels, loadKernel(context, name))
		}
		r.Free, _, _ = context.MemoryInfo()
		if err := context.Close(); err != nil {
			r.Error = err.Error()
		}
	}
	text, err := json.Marshal(r)
	return string(text), err
}

func loadKernel(c *gpu.Context, name string) kernelReport {
	p := c.Properties()
	r := kernelReport{Name: name, Code: kernels.Describe(name, p.Major, p.Minor)}
	image, err := compiler.Default.Kernels(name, p.Major, p.Minor)
	if err == nil {
		r.Code, r.PTX, r.Bytes = image.String(), image.PTX(), len(image.Code)
		var m *gpu.Module
		if m, err = c.Load(image.Code); err == nil {
			r.Log = m.Log
			err = m.Close()
		}
	}
	if err != nil {
		_, r.Error = KindOf(err)
	}
	return r
}

// CompilerReport describes the compiler of kernels at run time and its cache.
type CompilerReport = compiler.Report

// CompilerSearch sets the candidates for NVRTC, the best first. They are opened at the first
// compilation.
func CompilerSearch(files []string) { compiler.Default.Search(files) }

// CompilerNotes returns remarks on compiled kernels for users, each only once.
func CompilerNotes() []string { return compiler.Default.Warnings() }

// CompilerSlow returns the long waits for the compiler, each only once.
func CompilerSlow() []string { return compiler.Default.Slow() }

// Compiler looks for NVRTC and describes it.
func Compiler() CompilerReport { return compiler.Default.Report() }
