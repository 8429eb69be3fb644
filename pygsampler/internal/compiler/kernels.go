package compiler

import (
	"fmt"
	"os"

	"github.com/pygsampler/pygsampler/kernels"
)

// fromSource reports whether PYGSAMPLER_KERNELS asks for kernels that are compiled at run time,
// instead of the images of the build.
func fromSource() (bool, error) {
	switch value := os.Getenv("PYGSAMPLER_KERNELS"); value {
	case "", "embedded":
		return false, nil
	case "compile":
		return true, nil
	default:
		return false, fmt.Errorf("pygsampler: PYGSAMPLER_KERNELS: expected embedded or compile, got %q", value)
	}
}

// Names returns the names of the kernel files with code, in order.
func Names() []string {
	if compile, _ := fromSource(); compile {
		return kernels.SourceNames()
	}
	return kernels.Names()
}

// Kernels returns the code of a kernel file for a device of the compute capability major.minor: the
// image of the build that fits best. It compiles the file if no image fits, and if
// PYGSAMPLER_KERNELS is compile.
func (c *Compiler) Kernels(name string, major, minor int) (Image, error) {
	compile, err := fromSource()
	if err != nil {
		return Image{}, err
	}
	if compile {
		p, err := program(name)
		if err != nil {
			return Image{}, err
		}
		return c.Compile(p, major, minor)
	}
	choice, err := kernels.Choose(name, major, minor)
	if err != nil {
		p, unknown := program(name)
		if unknown != nil {
			return Image{}, err
		}
		image, reason := c.compile(p, major, minor)
		if reason != nil {
			return Image{}, fmt.Errorf("%w; to compile one here: %w", err, reason)
		}
		return image, nil
	}
	code, err := choice.Image()
	if err != nil {
		return Image{}, err
	}
	return Image{Code: code, Architecture: choice.Architecture}, nil
}

// program is the source of the named file of kernels.
func program(name string) (Program, error) {
	file, _, err := kernels.Source(name)
	return Program{Name: name, Source: file.Text}, err
}
