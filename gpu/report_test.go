package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// A process has one driver for life, so each case runs in a process of its own:
// this test program once more, which asks everything and prints the answers.

// answers is what one process learned from its driver.
type answers struct {
	Before    string // what the driver noted before the first call
	Available bool
	Count     int
	CountErr  *Error
	Version   int
	Names     []string
	Compute   [][2]int
	NameErr   *Error // of the last device, or of device 0 where there is none
	OutErrs   []*Error
	PeerErr   *Error
	LaunchErr *Error
	AllocErr  *Error
}

// asError keeps the type honest: an error of any other type ends the process.
func asError(err error) *Error {
	var e *Error
	if err != nil && !errors.As(err, &e) {
		panic(fmt.Sprintf("expected an *Error, got %T: %v", err, err))
	}
	return e
}

func ask() (a answers) {
	log, _ := os.ReadFile(os.Getenv("FAKE_CUDA_LOG"))
	a.Before = string(log)
	var err error
	a.Available = Available()
	a.Count, err = DeviceCount()
	a.CountErr = asError(err)
	if a.Version, err = DriverVersion(); err != nil {
		panic(err)
	}
	for i := range max(a.Count, 1) {
		name, err := DeviceName(i)
		if a.NameErr = asError(err); err == nil {
			a.Names = append(a.Names, name)
		}
		if major, minor, err := ComputeCapability(i); err == nil {
			a.Compute = append(a.Compute, [2]int{major, minor})
		}
	}
	for _, i := range []int{-1, a.Count, 1 << 32} {
		_, err := DeviceName(i)
		a.OutErrs = append(a.OutErrs, asError(err))
	}
	return a
}

// askPassing calls the functions with the most arguments, and one that the fake
// driver lacks. It touches no device, so it is for fake drivers alone.
func askPassing(a *answers) {
	const top = 1 << 63
	a.PeerErr = asError(try("cuMemcpyPeerAsync", func() {
		dst, src := uint64(top+1), uint64(top+3)
		dstCtx, srcCtx, size, stream := uint64(top+2), uint64(top+4), uint64(top+5), uint64(top+6)
		cu.MemcpyPeerAsync(cu.DevicePtr(dst), cu.Context(dstCtx), cu.DevicePtr(src), cu.Context(srcCtx), int64(size), cu.Stream(stream))
	}))
	parameter := uint64(9)
	a.LaunchErr = asError(try("cuLaunchKernel", func() {
		f, stream := uint64(top+1), uint64(top+8)
		cu.LaunchKernel(cu.Function(f), 2, 3, 4, 5, 6, 7, 0xffffffff, cu.Stream(stream), []unsafe.Pointer{unsafe.Pointer(&parameter)})
	}))
	a.AllocErr = asError(try("cuMemAlloc", func() { cu.MemAlloc(1) }))
}

func TestMain(m *testing.M) {
	role := os.Getenv("GPU_TEST_ROLE")
	if role == "" || role == "work" {
		os.Exit(m.Run())
	}
	if role == "crowd" {
		// All start at once, so that opening and initialising the driver is raced for.
		var crowd sync.WaitGroup
		gate := make(chan struct{})
		got := make([]answers, 16)
		for i := range got {
			crowd.Go(func() {
				<-gate
				got[i] = ask()
			})
		}
		close(gate)
		crowd.Wait()
		if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
			panic(err)
		}
		return
	}
	a := ask()
	if role == "passing" {
		askPassing(&a)
	}
	if err := json.NewEncoder(os.Stdout).Encode([]answers{a}); err != nil {
		panic(err)
	}
}

// fakeDriver builds the fake libcuda.so.1 and returns its folder.
func fakeDriver(t *testing.T, flags ...string) string {
	t.Helper()
	folder := t.TempDir()
	args := append(flags, "-shared", "-fPIC", "-Wall", "-Werror", "-pthread", "-o", filepath.Join(folder, "libcuda.so.1"), "shim/testdata/fake_libcuda.c")
	if slices.Contains(flags, "-DWORKING") {
		args = append(args, "shim/testdata/fake_work.c")
	}
	if out, err := exec.Command(compiler(), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler(), err, out)
	}
	return folder
}

// noDriver is a folder in which the search for a driver ends, also on a machine
// that has one: the dynamic linker does not look past a file that is no library.
func noDriver(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "libcuda.so.1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func compiler() string {
	if cc := strings.Fields(os.Getenv("CC")); len(cc) > 0 {
		return cc[0]
	}
	return "cc"
}

// inProcess asks in a fresh process whose driver is the one in folder, and
// returns the answers of each goroutine and what the driver noted.
func inProcess(t *testing.T, role, folder string, settings ...string) (got []answers, log string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	notes := filepath.Join(t.TempDir(), "log")
	command := exec.Command(program)
	command.Env = slices.Concat(os.Environ(), settings, []string{
		"GPU_TEST_ROLE=" + role, "LD_LIBRARY_PATH=" + folder, "FAKE_CUDA_LOG=" + notes,
		"GORACE=atexit_sleep_ms=0", // all goroutines have been waited for
	})
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("the process with driver %s: %v", folder, err)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	text, _ := os.ReadFile(notes)
	return got, string(text)
}
