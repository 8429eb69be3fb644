//go:build amd64 || arm64

package prefetch

import "unsafe"

//go:noescape
func fetch32by32(table, at unsafe.Pointer, n int)

//go:noescape
func fetch32by64(table, at unsafe.Pointer, n int)

//go:noescape
func fetch64by32(table, at unsafe.Pointer, n int)

//go:noescape
func fetch64by64(table, at unsafe.Pointer, n int)

//go:noescape
func ahead32by32(table, at unsafe.Pointer, n int)

//go:noescape
func ahead32by64(table, at unsafe.Pointer, n int)

//go:noescape
func ahead64by32(table, at unsafe.Pointer, n int)

//go:noescape
func ahead64by64(table, at unsafe.Pointer, n int)

//go:noescape
func fetchLines(from unsafe.Pointer, bytes int)
