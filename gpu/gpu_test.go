package gpu

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: expected %+v, got %+v", what, want, got)
	}
}

func outOfRange(count int, name, text string) (errs []*Error) {
	for _, i := range []int{-1, count, 1 << 32} {
		errs = append(errs, &Error{Call: "cuDeviceGet", Code: 101, Name: name, Text: fmt.Sprintf(text, count, i)})
	}
	return errs
}

const outOfRangeText = "expected 0 <= device < %d, got %d"

func TestWithoutDriver(t *testing.T) {
	got, log := inProcess(t, "passing", noDriver(t))
	a := got[0]
	equal(t, "notes", log, "")
	equal(t, "available", a.Available, false)
	equal(t, "count", a.Count, 0)
	equal(t, "count's error", a.CountErr, (*Error)(nil))
	equal(t, "version", a.Version, 0)
	equal(t, "names", a.Names, []string(nil))
	for _, err := range append(a.OutErrs, a.NameErr) {
		if err == nil || err.Call != "cuInit" || err.Code != 100 || err.Name != "CUDA_ERROR_NO_DEVICE" {
			t.Fatalf("name: expected CUDA_ERROR_NO_DEVICE (100) of cuInit, got %v", err)
		}
		if !strings.Contains(err.Text, "libcuda.so.1") {
			t.Errorf("text: expected the dynamic linker's reason, got %q", err.Text)
		}
	}
	for _, err := range []*Error{a.PeerErr, a.LaunchErr, a.AllocErr} {
		if err == nil || err.Code != 100 {
			t.Errorf("any other call: expected code 100, got %v", err)
		}
	}
}

func TestFakeDriver(t *testing.T) {
	got, log := inProcess(t, "passing", fakeDriver(t))
	a := got[0]
	equal(t, "notes before the first call", a.Before, "")
	equal(t, "notes", log, "load\ncuInit\n")
	equal(t, "available", a.Available, true)
	equal(t, "count", a.Count, 2)
	equal(t, "version", a.Version, 12090)
	equal(t, "names", a.Names, []string{"Fake GPU 0", "Fake GPU 1"})
	equal(t, "compute capability", a.Compute, [][2]int{{9, 0}, {9, 1}})
	equal(t, "names out of range", a.OutErrs, outOfRange(2, "CUDA_ERROR_INVALID_DEVICE", outOfRangeText))
	equal(t, "6 arguments", a.PeerErr, (*Error)(nil))
	equal(t, "11 arguments", a.LaunchErr, (*Error)(nil))
	equal(t, "a function that is lacking", a.AllocErr.Code, 302)
}

func TestNoDevice(t *testing.T) {
	folder := fakeDriver(t)
	for _, setting := range []string{"FAKE_CUDA_INIT=100", "FAKE_CUDA_INIT=34", "FAKE_CUDA_DEVICES=0"} {
		got, _ := inProcess(t, "ask", folder, setting)
		a := got[0]
		equal(t, setting+": available", a.Available, false)
		equal(t, setting+": count", a.Count, 0)
		equal(t, setting+": count's error", a.CountErr, (*Error)(nil))
		equal(t, setting+": version", a.Version, 12090)
		if a.NameErr == nil {
			t.Errorf("%s: expected an error for device 0, got none", setting)
		}
	}
}

func TestBrokenDriver(t *testing.T) {
	got, log := inProcess(t, "ask", fakeDriver(t), "FAKE_CUDA_INIT=999")
	a := got[0]
	want := &Error{Call: "cuInit", Code: 999, Name: "CUDA_ERROR_UNKNOWN", Text: "unknown error"}
	equal(t, "available", a.Available, false)
	equal(t, "count's error", a.CountErr, want)
	equal(t, "name's error", a.NameErr, want)
	equal(t, "as text", a.CountErr.Error(), "gpu: cuInit: CUDA_ERROR_UNKNOWN (999): unknown error")
	if strings.Count(log, "load\n") != 1 || strings.Count(log, "cuInit\n") < 2 {
		t.Errorf("expected one load and a cuInit for each question, got %q", log)
	}

	got, _ = inProcess(t, "ask", fakeDriver(t), "FAKE_CUDA_INIT=3") // as in a forked process
	wantText(t, got[0].CountErr, "CUDA_ERROR_NOT_INITIALIZED (3)", "forked from one that has used CUDA")

	got, _ = inProcess(t, "ask", fakeDriver(t, "-DLACKING"), "FAKE_CUDA_INIT=803")
	equal(t, "a code nobody explains", got[0].CountErr, &Error{Call: "cuInit", Code: 803, Name: "Unknown CUresult: 803"})
	equal(t, "as text", got[0].CountErr.Error(), "gpu: cuInit: Unknown CUresult: 803 (803)")
}

func TestLackingDriver(t *testing.T) {
	got, _ := inProcess(t, "ask", fakeDriver(t, "-DLACKING"))
	a := got[0]
	equal(t, "available", a.Available, true)
	equal(t, "count", a.Count, 2)
	equal(t, "names", a.Names, []string(nil))
	equal(t, "name's error", a.NameErr, &Error{
		Call: "cuDeviceGetName", Code: 302, Name: "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
		Text: "the installed driver lacks this function",
	})
	equal(t, "names out of range", a.OutErrs, outOfRange(2, "CUDA_ERROR_INVALID_DEVICE", outOfRangeText))
}

// TestCrowd lets 16 goroutines ask for the first time at once.
func TestCrowd(t *testing.T) {
	got, log := inProcess(t, "crowd", fakeDriver(t))
	equal(t, "notes", log, "load\ncuInit\n")
	equal(t, "processes", len(got), 16)
	for _, a := range got {
		equal(t, "available", a.Available, true)
		equal(t, "names", a.Names, []string{"Fake GPU 0", "Fake GPU 1"})
		equal(t, "names out of range", a.OutErrs, outOfRange(2, "CUDA_ERROR_INVALID_DEVICE", outOfRangeText))
	}
	got, _ = inProcess(t, "crowd", noDriver(t))
	for _, a := range got {
		equal(t, "available", a.Available, false)
		equal(t, "count's error", a.CountErr, (*Error)(nil))
	}
}

// TestForeignPanic: only mumax's results become errors.
func TestForeignPanic(t *testing.T) {
	defer func() { equal(t, "panic", recover(), any("broken")) }()
	err := try("cuInit", func() { panic("broken") })
	t.Fatalf("expected the panic to go on, got %v", err)
}

// TestShimHides compiles the shim as carelessly as possible: no flag of the build
// may be needed to keep its functions out of the reach of other libraries.
func TestShimHides(t *testing.T) {
	object := filepath.Join(t.TempDir(), "shim.o")
	if out, err := exec.Command(compiler(), "-c", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", object, "shim/libcuda.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			continue
		}
		functions++
		if elf.ST_VISIBILITY(s.Other) != elf.STV_HIDDEN {
			t.Errorf("%s: expected it hidden", s.Name)
		}
	}
	header, err := os.ReadFile("shim/functions.h")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(string(header), "\nDRIVER_")
	equal(t, "functions (those of functions.h and four of the shim's own)", functions, lines+4)
}

// TestDevice asks the machine's true driver.
func TestDevice(t *testing.T) {
	needDevice(t)
	count, err := DeviceCount()
	if !Available() || err != nil {
		t.Fatalf("expected an available device, got %d devices, %v", count, err)
	}
	if version, err := DriverVersion(); err != nil || version < 11000 {
		t.Errorf("version: expected at least 11000, got %d, %v", version, err)
	}
	for i := range count {
		name, err := DeviceName(i)
		if err != nil || name == "" {
			t.Errorf("name of device %d: got %q, %v", i, name, err)
		}
		major, minor, err := ComputeCapability(i)
		if err != nil || major < 3 {
			t.Errorf("compute capability of device %d: got %d.%d, %v", i, major, minor, err)
		}
		t.Logf("device %d: %s, sm_%d%d", i, name, major, minor)
	}
	_, err = DeviceName(count)
	want := outOfRange(count, "CUDA_ERROR_INVALID_DEVICE", outOfRangeText)[1]
	equal(t, "a device too many", asError(err), want)
}
