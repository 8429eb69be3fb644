// Package kernels holds the CUDA kernels: their sources, and what NVRTC compiled
// them to, one image for each architecture.
//
// `make kernels` compiles. An image that is missing is an error at the first use
// of a GPU, not of the build: the CPU engine needs none.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
)

//go:embed all:compiled
var compiled embed.FS

// Image is the machine code of the named file of kernels ("neighbor") for a device
// of the given compute capability. Machine code runs on its own minor version and
// on later ones of the same major version.
func Image(name string, major, minor int) ([]byte, error) {
	for m := minor; m >= 0; m-- {
		image, err := fs.ReadFile(compiled, path.Join("compiled", fmt.Sprintf("%s.sm_%d%d.cubin", name, major, m)))
		if err == nil {
			return image, nil
		}
	}
	return nil, fmt.Errorf("pygsampler: no kernel %s for compute capability %d.%d was compiled into this build", name, major, minor)
}
