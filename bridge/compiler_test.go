package bridge

import (
	"encoding/json"
	"path/filepath"
	"testing"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

func TestCompiler(t *testing.T) {
	t.Setenv("PYGSAMPLER_NVRTC", filepath.Join(t.TempDir(), "none"))
	t.Setenv("PYGSAMPLER_CACHE", "/somewhere")
	for _, files := range []string{"", "{}", "[1]", "/a"} {
		_, err := CompilerSearch(files)
		fails(t, err, "")
	}
	if _, err := CompilerSearch(`["/a", "/b"]`); err != nil {
		t.Fatal(err)
	}
	text, err := CompilerReport()
	if err != nil {
		t.Fatal(err)
	}
	var r core.CompilerReport
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.NVRTC != "" || r.Error == "" || r.Cache != "/somewhere" || r.Architectures == nil {
		t.Errorf("got %s, %v", text, err)
	}
	for slow := range int64(2) {
		if notes, err := CompilerLog(slow); notes != "[]" || err != nil {
			t.Errorf("got %s, %v", notes, err)
		}
	}
}
