package compiler

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/gpu/nvrtc"
	"github.com/pygsampler/pygsampler/kernels"
)

// pretended is an NVRTC whose image lists what it was given.
type pretended struct {
	version, identity string
	architectures     []int
	calls             int
	fails             error
}

func (p *pretended) Version() string      { return p.version }
func (p *pretended) Identity() string     { return p.identity }
func (p *pretended) Architectures() []int { return p.architectures }
func (p *pretended) Compile(program nvrtc.Program, architecture string) ([]byte, string, error) {
	p.calls++
	if p.fails != nil {
		return nil, "", p.fails
	}
	words := []string{architecture, program.Name, program.Source, strings.Join(program.Options, " ")}
	for _, h := range program.Headers {
		words = append(words, h.Name, h.Text)
	}
	return []byte(strings.Join(words, "|")), "a note", nil
}

// with is a compiler with a pretended NVRTC and a folder of its own.
func with(t *testing.T) (*Compiler, *pretended) {
	t.Helper()
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	p := &pretended{version: "12.4", identity: "this one", architectures: []int{75, 80, 90}}
	return &Compiler{found: p}, p
}

func TestCompile(t *testing.T) {
	c, p := with(t)
	program := Program{Name: "k", Source: "#include \"common/constants.cuh\"\nint x;"}
	constants := kernels.Headers(program.Source)
	want := "sm_90|k.cu|" + program.Source + "|-std=c++17|common/constants.cuh|" + constants[0].Text
	for _, cached := range []bool{false, true, true} {
		image, err := c.Compile(program, 9, 0)
		if err != nil || string(image.Code) != want || image.Cached != cached {
			t.Fatalf("expected %.60q, cached %v, got %+v, %v", want, cached, image, err)
		}
		if image.String() != "sm_90 machine code, from source by NVRTC 12.4" || image.PTX() {
			t.Error(image)
		}
	}
	if p.calls != 1 {
		t.Errorf("compiled %d times", p.calls)
	}
	// Another process, with all the same.
	again := &Compiler{found: &pretended{version: "12.4", identity: "this one", architectures: []int{75, 80, 90}, fails: errors.New("not asked")}}
	if image, err := again.Compile(program, 9, 0); err != nil || string(image.Code) != want {
		t.Errorf("got %+v, %v", image, err)
	}
	if notes := c.Warnings(); notes != nil {
		t.Error(notes)
	}
}

// TestWhatDecides changes one thing after the other: each is compiled anew.
func TestWhatDecides(t *testing.T) {
	c, p := with(t)
	for i, change := range []func() (Program, int){
		func() (Program, int) { return Program{Name: "k", Source: "a"}, 90 },
		func() (Program, int) { return Program{Name: "k", Source: "b"}, 90 },
		func() (Program, int) { return Program{Name: "l", Source: "b"}, 90 },
		func() (Program, int) { return Program{Name: "l", Source: "b"}, 80 },
		func() (Program, int) { return Program{Name: "l", Source: "b"}, 110 }, // PTX for 90
		func() (Program, int) { return Program{Name: "l", Source: "b", Options: []string{"-DX=1"}}, 110 },
		func() (Program, int) { return Program{Name: "l", Source: "b", Options: []string{"-DX=1", "-DY"}}, 110 },
		func() (Program, int) { p.identity = "another"; return Program{Name: "l", Source: "b"}, 110 },
		func() (Program, int) { return Program{Name: "l", Source: "#include \"common/philox.cuh\""}, 110 },
	} {
		program, capability := change()
		image, err := c.Compile(program, capability/10, capability%10)
		if err != nil || image.Cached || p.calls != i+1 {
			t.Errorf("%d: compiled %d times, %+v, %v", i, p.calls, image, err)
		}
		if image, err := c.Compile(program, capability/10, capability%10); err != nil || !image.Cached {
			t.Errorf("%d: %+v, %v", i, image, err)
		}
	}
}

func TestChoose(t *testing.T) {
	early := []int{75, 80, 86, 90}
	late := []int{75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121} // of NVRTC 12.9
	for _, c := range []struct {
		architectures []int
		major, minor  int
		want          string
	}{
		{early, 7, 0, ""}, {early, 7, 5, "sm_75"}, {early, 8, 0, "sm_80"}, {early, 8, 9, "sm_86"},
		{early, 9, 0, "sm_90"}, {early, 10, 0, "compute_90"}, {early, 12, 1, "compute_90"},
		// Machine code of Tegra runs on nothing else, nor anything else on Tegra.
		{early, 8, 7, "compute_86"}, {late, 8, 7, "sm_87"}, {late, 8, 8, "sm_86"}, {late, 8, 9, "sm_89"},
		{late, 10, 0, "sm_100"}, {late, 10, 1, "sm_101"}, {late, 10, 2, "sm_100"}, {late, 10, 3, "sm_103"},
		{late, 11, 0, "compute_103"}, {late, 12, 1, "sm_121"}, {late, 13, 0, "compute_121"},
	} {
		got, err := choose(c.architectures, c.major, c.minor)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%d.%d of %v: expected %q, got %q, %v", c.major, c.minor, c.architectures, c.want, got, err)
		}
	}
}

// TestBrokenFile has a file of the cache damaged: it is replaced, not loaded.
func TestBrokenFile(t *testing.T) {
	c, p := with(t)
	whole, err := c.Compile(Program{Name: "k", Source: "x"}, 9, 0)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(os.Getenv("PYGSAMPLER_CACHE"), "*"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	if err := os.Truncate(files[0], 60); err != nil {
		t.Fatal(err)
	}
	for i, cached := range []bool{false, true} {
		if got, err := c.Compile(Program{Name: "k", Source: "x"}, 9, 0); err != nil || string(got.Code) != string(whole.Code) || got.Cached != cached || p.calls != 2 {
			t.Errorf("%d: got %+v after %d calls, %v", i, got, p.calls, err)
		}
	}
	if notes := c.Warnings(); notes != nil {
		t.Error(notes)
	}
}

// TestNoRoom has no folder that can be written: the images are kept in memory, and one
// note says so.
func TestNoRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, why := range map[string]string{filepath.Join(file, "below"): file + "/below: not a directory", "": "HOME"} {
		c, p := with(t)
		t.Setenv("PYGSAMPLER_CACHE", folder)
		t.Setenv("XDG_CACHE_HOME", "")
		t.Setenv("HOME", "")
		for i, source := range []string{"a", "b", "a", "b"} {
			if image, err := c.Compile(Program{Name: "k", Source: source}, 9, 0); err != nil || image.Cached != (i > 1) || !strings.Contains(string(image.Code), "|"+source+"|") {
				t.Errorf("%q: %d: got %+v, %v", folder, i, image, err)
			}
		}
		notes := c.Warnings()
		if p.calls != 2 || len(notes) != 1 || !strings.Contains(notes[0], why) || !strings.Contains(notes[0], "PYGSAMPLER_CACHE") {
			t.Errorf("%q: compiled %d times, got %q", folder, p.calls, notes)
		}
		if again := c.Warnings(); again != nil {
			t.Errorf("%q: got %q twice", folder, again)
		}
	}
}

func TestWaitsAreTold(t *testing.T) {
	c, _ := with(t)
	compile := func() {
		if _, err := c.Compile(Program{Name: "k", Source: t.Name()}, 9, 0); err != nil {
			t.Fatal(err)
		}
	}
	if compile(); c.Slow() != nil {
		t.Error("told of what took no time")
	}
	slow = 0
	t.Cleanup(func() { slow = time.Second })
	if compile(); c.Slow() != nil {
		t.Error("told of what was kept")
	}
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	compile()
	if told := c.Slow(); len(told) != 1 || !strings.HasPrefix(told[0], "the kernel k.cu was compiled in 0.") {
		t.Errorf("got %q", told)
	}
	if again := c.Slow(); again != nil {
		t.Errorf("got %q twice", again)
	}
}

func TestErrors(t *testing.T) {
	c, p := with(t)
	p.fails = errors.New("line 7")
	for range 2 { // a failure is not kept
		if image, err := c.Compile(Program{Name: "k", Source: "x"}, 9, 0); err == nil || err.Error() != "pygsampler: kernel k: line 7" || image.Code != nil {
			t.Errorf("got %+v, %v", image, err)
		}
	}
	if _, err := c.Compile(Program{Name: "k", Source: "x"}, 7, 0); err == nil || err.Error() !=
		"pygsampler: kernel k: NVRTC 12.4: expected a device for one of [75 80 90], got one of compute capability 7.0" {
		t.Error(err)
	}
	if files, _ := os.ReadDir(os.Getenv("PYGSAMPLER_CACHE")); p.calls != 2 || len(files) != 0 {
		t.Errorf("compiled %d times, got %v", p.calls, files)
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("PYGSAMPLER_NVRTC", "/nowhere/libnvrtc.so.12")
	var c Compiler
	_, err := c.Compile(Program{Name: "neighbor", Source: "x"}, 9, 0)
	want := `pygsampler: kernel neighbor: expected NVRTC to compile it, found none that will do (PYGSAMPLER_NVRTC is /nowhere/libnvrtc.so.12); ` +
		`pip install nvidia-cuda-nvrtc-cu12 (nvidia-cuda-nvrtc-cu12) brings it, a torch for CUDA too`
	if err == nil || err.Error() != want {
		t.Errorf("expected %q, got %v", want, err)
	}
	var missing *nvrtc.NoLibraryError
	if r := c.Report(); !errors.As(err, &missing) || r.NVRTC != "" || !strings.Contains(want, r.Error) || r.Error == "" {
		t.Errorf("got %+v", r)
	}
}

func TestManyGoroutines(t *testing.T) {
	c, p := with(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if image, err := c.Compile(Program{Name: "k", Source: strings.Repeat("x", 1+i%2)}, 9, 0); err != nil || image.Code == nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if p.calls != 2 {
		t.Errorf("compiled %d times", p.calls)
	}
}

func TestKernels(t *testing.T) {
	c, p := with(t)
	names := kernels.SourceNames()
	t.Setenv("PYGSAMPLER_KERNELS", "compile")
	if got := Names(); !slices.Equal(got, names) {
		t.Errorf("expected %v, got %v", names, got)
	}
	for _, name := range names {
		source, headers, _ := kernels.Source(name)
		image, err := c.Kernels(name, 8, 6)
		if err != nil || !strings.HasPrefix(string(image.Code), "sm_80|"+name+".cu|"+source.Text+"|-std=c++17|") ||
			!strings.HasSuffix(string(image.Code), headers[len(headers)-1].Text) {
			t.Errorf("%s: got %.60q, %v", name, image.Code, err)
		}
	}
	if _, err := c.Kernels("none", 9, 0); err == nil || !strings.Contains(err.Error(), "kernel none: expected one of ") {
		t.Error(err)
	}
	t.Setenv("PYGSAMPLER_KERNELS", "yes")
	if _, err := c.Kernels("neighbor", 9, 0); err == nil || err.Error() != `pygsampler: PYGSAMPLER_KERNELS: expected embedded or compile, got "yes"` {
		t.Error(err)
	}

	// Without the setting nothing is compiled but where nothing of the build fits.
	p.calls = 0
	t.Setenv("PYGSAMPLER_KERNELS", "")
	if len(kernels.Names()) > 0 {
		image, err := c.Kernels("neighbor", 9, 0)
		if err != nil || p.calls != 0 || image.Compiler != "" || image.String() != kernels.Describe("neighbor", 9, 0) {
			t.Errorf("got %s after %d calls, %v", image, p.calls, err)
		}
	}
	p.architectures = []int{50, 70}
	if image, err := c.Kernels("validate", 7, 0); err != nil || image.Architecture != "sm_70" || p.calls != 1 {
		t.Errorf("got %s after %d calls, %v", image, p.calls, err)
	}
	if _, err := c.Kernels("neighbor", 3, 5); err == nil || !strings.HasPrefix(err.Error(), "pygsampler: kernel neighbor: expected ") ||
		!strings.HasSuffix(err.Error(), "; to compile one here: NVRTC 12.4: expected a device for one of [50 70], got one of compute capability 3.5") {
		t.Error(err)
	}
}

func TestOptionsOfTheBuild(t *testing.T) {
	script, err := os.ReadFile("../../../kernels/compile.py")
	want := `OPTIONS = ("` + strings.Join(options, `", "`) + `",)`
	if err != nil || !strings.Contains(string(script), want) {
		t.Errorf("kernels/compile.py: expected %s (%v)", want, err)
	}
}

// TestAsTheBuild compiles with the NVRTC of the build: the image is the embedded one,
// byte for byte.
func TestAsTheBuild(t *testing.T) {
	files, _ := filepath.Glob("../../../.venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
	choice, err := kernels.Choose("validate", 9, 0)
	if len(files) == 0 || err != nil || choice.PTX() {
		t.Skip("needs the build's NVRTC and kernels for sm_90: make kernels")
	}
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	t.Setenv("PYGSAMPLER_NVRTC", files[0])
	t.Setenv("PYGSAMPLER_KERNELS", "compile")
	var c Compiler
	image, err := c.Kernels("validate", 9, 0)
	if err != nil || image.Log != "" {
		t.Fatalf("got %q, %v", image.Log, err)
	}
	if want, err := choice.Image(); err != nil || string(image.Code) != string(want) {
		t.Errorf("expected %d bytes, got %d that differ (%v)", len(want), len(image.Code), err)
	}
	if r := c.Report(); r.NVRTC == "" || r.Version != "12.9" || r.Error != "" || r.Cache != os.Getenv("PYGSAMPLER_CACHE") {
		t.Errorf("got %+v", r)
	}
}
