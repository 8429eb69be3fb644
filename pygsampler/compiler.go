package pygsampler

import "github.com/pygsampler/pygsampler/pygsampler/internal/compiler"

// CompilerReport is what kernels are compiled with at run time, and where they are kept.
type CompilerReport = compiler.Report

// CompilerSearch names the files that may be NVRTC, the best first. None is looked at
// before something is to be compiled.
func CompilerSearch(files []string) { compiler.Default.Search(files) }

// CompilerNotes are what users should know of what was compiled, each given once.
func CompilerNotes() []string { return compiler.Default.Notes() }

// CompilerSlow are the waits for the compiler that were long, each given once.
func CompilerSlow() []string { return compiler.Default.Slow() }

// Compiler looks for NVRTC.
func Compiler() CompilerReport { return compiler.Default.Report() }
