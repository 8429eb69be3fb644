package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// CompilerSearch takes the paths of candidates for NVRTC, the best first, as a list in JSON. They
// are opened at the first compilation.
func CompilerSearch(files string) (zero int64, err error) {
	defer finish(&err)
	var list []string
	if err := json.Unmarshal([]byte(files), &list); err != nil {
		return 0, core.Errorf(core.KindValue, "files: expected a list of paths in JSON: %v", err)
	}
	core.CompilerSearch(list)
	return 0, nil
}

// CompilerReport returns, as JSON, the NVRTC in use and the folder of the cache.
func CompilerReport() (report string, err error) {
	defer finish(&err)
	text, err := json.Marshal(core.Compiler())
	return string(text), err
}

// CompilerLog returns texts as a list in JSON, each to one caller only: with slow 0 the warnings
// about compiled kernels, with slow 1 the kernels that took more than a second to compile. The list
// is nearly always empty.
func CompilerLog(slow int64) (notes string, err error) {
	defer finish(&err)
	read := core.CompilerNotes
	if slow != 0 {
		read = core.CompilerSlow
	}
	list := read()
	if list == nil {
		return "[]", nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// Environment takes the variables that the engine reads, as an object in JSON, since Go sees only
// the environment that the process was started with.
func Environment(variables string) (zero int64, err error) {
	defer finish(&err)
	var given map[string]string
	if err := json.Unmarshal([]byte(variables), &given); err != nil {
		return 0, core.Errorf(core.KindValue, "variables: expected an object of texts in JSON: %v", err)
	}
	return 0, core.SetEnvironment(given)
}
