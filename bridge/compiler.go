package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// CompilerSearch takes the paths of files that may be NVRTC, the best first, as a list
// in JSON. They are looked at when something is to be compiled.
func CompilerSearch(files string) (zero int64, err error) {
	defer finish(&err)
	var list []string
	if err := json.Unmarshal([]byte(files), &list); err != nil {
		return 0, core.Errorf(core.KindValue, "files: expected a list of paths in JSON: %v", err)
	}
	core.CompilerSearch(list)
	return 0, nil
}

// CompilerReport is the NVRTC that there is and the folder of the cache, as JSON.
func CompilerReport() (report string, err error) {
	defer finish(&err)
	text, err := json.Marshal(core.Compiler())
	return string(text), err
}

// CompilerLog is a list of texts in JSON, each given to one caller: with slow 0 warnings about kernels that were
// compiled, with 1 the kernels that took more than a second to compile. Nearly always it is empty.
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

// Environment takes the variables that the engine heeds, as an object in JSON. Go knows the environment that
// the process began with alone.
func Environment(variables string) (zero int64, err error) {
	defer finish(&err)
	var given map[string]string
	if err := json.Unmarshal([]byte(variables), &given); err != nil {
		return 0, core.Errorf(core.KindValue, "variables: expected an object of texts in JSON: %v", err)
	}
	return 0, core.SetEnvironment(given)
}
