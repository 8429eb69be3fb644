//go:build !amd64 && !arm64

package prefetch

import "unsafe"

// Elsewhere nothing is asked for before it is read.

func fetch32by32(_, _ unsafe.Pointer, _ int) {}
func fetch32by64(_, _ unsafe.Pointer, _ int) {}
func fetch64by32(_, _ unsafe.Pointer, _ int) {}
func fetch64by64(_, _ unsafe.Pointer, _ int) {}
func ahead32by32(_, _ unsafe.Pointer, _ int) {}
func ahead32by64(_, _ unsafe.Pointer, _ int) {}
func ahead64by32(_, _ unsafe.Pointer, _ int) {}
func ahead64by64(_, _ unsafe.Pointer, _ int) {}
func fetchLines(unsafe.Pointer, int)         {}
