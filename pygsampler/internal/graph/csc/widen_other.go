//go:build !amd64

package csc

import "unsafe"

func widen32(to *float64, from *float32, n int) {
	widenRange(unsafe.Slice(to, n), unsafe.Slice(from, n))
}
