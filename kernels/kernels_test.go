package kernels

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// with runs a test over files of images that are not there; the content of an image is
// the name of its file and its index: "a.sm_80-86 1".
func with(t *testing.T, names ...string) {
	t.Helper()
	before := compiled
	t.Cleanup(func() { compiled = before })
	files := fstest.MapFS{".gitignore": {}, "sources": {}}
	for _, name := range names {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		for i := range strings.Count(name, "-") + 1 {
			image := fmt.Sprint(name, " ", i)
			binary.Write(w, binary.LittleEndian, uint64(len(image)))
			w.Write([]byte(image))
		}
		w.Close()
		files[name+".gz"] = &fstest.MapFile{Data: packed.Bytes()}
	}
	compiled = files
}

func TestChoose(t *testing.T) {
	type choice struct {
		major, minor int
		architecture string // empty for none
		image        string
	}
	x86 := []string{"a.sm_75", "a.sm_80-86", "a.sm_90", "a.sm_100", "a.sm_120", "a.compute_75", "a.compute_90", "b.sm_90"}
	arm := []string{"a.sm_80-86-87-89", "a.sm_100-101-103", "a.sm_120-121", "a.compute_75"}
	for _, c := range []struct {
		files []string
		want  []choice
	}{
		{x86, []choice{
			{7, 0, "", ""}, {7, 4, "", ""}, {7, 5, "sm_75", "a.sm_75 0"}, {7, 9, "sm_75", "a.sm_75 0"},
			{8, 0, "sm_80", "a.sm_80-86 0"}, {8, 5, "sm_80", "a.sm_80-86 0"},
			{8, 6, "sm_86", "a.sm_80-86 1"}, {8, 9, "sm_86", "a.sm_80-86 1"},
			{9, 0, "sm_90", "a.sm_90 0"}, {10, 0, "sm_100", "a.sm_100 0"}, {10, 3, "sm_100", "a.sm_100 0"},
			{12, 1, "sm_120", "a.sm_120 0"}, {13, 0, "compute_90", "a.compute_90 0"}, {99, 9, "compute_90", "a.compute_90 0"},
			// Orin and Thor run no code of another device.
			{8, 7, "compute_75", "a.compute_75 0"}, {10, 1, "compute_90", "a.compute_90 0"}, {11, 0, "compute_90", "a.compute_90 0"},
		}},
		{arm, []choice{
			{8, 0, "sm_80", "a.sm_80-86-87-89 0"}, {8, 7, "sm_87", "a.sm_80-86-87-89 2"},
			{8, 8, "sm_86", "a.sm_80-86-87-89 1"}, {8, 9, "sm_89", "a.sm_80-86-87-89 3"},
			{10, 0, "sm_100", "a.sm_100-101-103 0"}, {10, 1, "sm_101", "a.sm_100-101-103 1"},
			{10, 2, "sm_100", "a.sm_100-101-103 0"}, {10, 3, "sm_103", "a.sm_100-101-103 2"},
			{11, 0, "compute_75", "a.compute_75 0"}, {12, 1, "sm_121", "a.sm_120-121 1"},
		}},
	} {
		with(t, c.files...)
		for _, w := range c.want {
			got, err := Choose("a", w.major, w.minor)
			if got.Architecture != w.architecture || (err == nil) != (w.architecture != "") {
				t.Errorf("%d.%d of %v: expected %q, got %q, %v", w.major, w.minor, c.files, w.architecture, got.Architecture, err)
			}
			image, err := Image("a", w.major, w.minor)
			if w.image != "" && (err != nil || string(image) != w.image) {
				t.Errorf("%d.%d of %v: expected the image %s, got %q, %v", w.major, w.minor, c.files, w.image, image, err)
			}
		}
	}
}

// TestChooseIsThatOfTheScript has compile.py, which decides what a quickstart compiles, choose
// of every set of images for every device: it must be what the engine would take.
func TestChooseIsThatOfTheScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3 on PATH (apt-get install python3)")
	}
	script := `
import os, compile
os.environ["PYGSAMPLER_TARGET"] = "aarch64"
names = compile.architectures()[:-1]
print(*names)
for which in range(1 << len(names)):
    some = [name for i, name in enumerate(names) if which >> i & 1]
    print(*[compile.machine_code(some, device) or "-" for device in range(70, 130)])
`
	command := exec.Command(python, "-c", script)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	names := strings.Fields(lines[0])
	if len(names) != 11 || len(lines) != 1+1<<len(names) {
		t.Fatalf("expected a line for each set of 11 images, got %d for %v", len(lines)-1, names)
	}
	before := compiled
	t.Cleanup(func() { compiled = before })
	for which, line := range lines[1:] {
		files := fstest.MapFS{}
		for i, name := range names {
			if which>>i&1 == 1 {
				files["a."+name+".xz"] = &fstest.MapFile{}
			}
		}
		compiled = files
		for i, want := range strings.Fields(line) {
			device := 70 + i
			got, err := Choose("a", device/10, device%10)
			if err != nil {
				got.Architecture = "-"
			}
			if got.Architecture != want {
				t.Fatalf("device %d of %v: compile.py has %s, Choose %s", device, files, want, got.Architecture)
			}
		}
	}
}

func TestErrorsSayWhatThereIs(t *testing.T) {
	with(t, "a.sm_90", "a.compute_75")
	for _, c := range []struct {
		name         string
		major, minor int
		want         string
	}{
		{"a", 7, 0, "pygsampler: kernel a: expected a device for one of compute_75, sm_90, got one of compute capability 7.0"},
		{"b", 9, 0, "pygsampler: kernel b: expected an image in this build, got none; make kernels compiles them"},
	} {
		image, err := Image(c.name, c.major, c.minor)
		if err == nil || err.Error() != c.want || image != nil {
			t.Errorf("expected %q, got %q, %v", c.want, image, err)
		}
		if got := Describe(c.name, c.major, c.minor); got != c.want {
			t.Errorf("expected %q, got %q", c.want, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	with(t, "a.sm_90", "a.compute_75")
	if got := Describe("a", 9, 0); got != "sm_90 machine code" {
		t.Error(got)
	}
	if got := Describe("a", 8, 9); got != "PTX for compute_75, compiled by the driver" {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	with(t, "b.sm_90", "a.sm_90", "a.compute_75")
	if got := Names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	with(t)
	if got := Names(); len(got) != 0 {
		t.Error(got)
	}
}

// packedXZ is compile.py's compress of b"image" and b"another", each behind its length.
const packedXZ = "/Td6WFoAAAFpIt42AgAhAQAAAAA3J5fW4AAbABfYAAKAMQ0m0wmcygeTzTxaxeAlh7YtZLwAAABTiL+PAAEvHAnRmyaQQpkNAQAAAAABWVo="

func TestUnpack(t *testing.T) {
	packed, err := base64.StdEncoding.DecodeString(packedXZ)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"image", "another", ""} {
		got, err := unpack("a.sm_80-86.xz", packed, i)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%d: expected %q, got %q, %v", i, want, got, err)
		}
	}
	for _, name := range []string{"a.sm_90.xz", "a.sm_90.gz", "a.sm_90.cubin"} {
		if got, err := unpack(name, []byte("no archive"), 0); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: expected an error that names it, got %q, %v", name, got, err)
		}
	}
}

// TestDamaged has a file cut short at every place, and every bit of it changed: an error, or
// the image as it was, since some bits mean nothing, and an index stands behind the content.
func TestDamaged(t *testing.T) {
	small, _ := base64.StdEncoding.DecodeString(packedXZ)
	files := map[string][]byte{"a.sm_80-86.xz": small}
	with(t, "a.sm_80-86")
	files["a.sm_80-86.gz"], _ = fs.ReadFile(compiled, "a.sm_80-86.gz")
	for name, packed := range files {
		whole, err := unpack(name, packed, 1)
		if err != nil {
			t.Fatal(err)
		}
		for n := range packed {
			if got, err := unpack(name, packed[:n], 1); err == nil && !bytes.Equal(got, whole) || n < len(packed)/2 && err == nil {
				t.Errorf("%s: %d of %d bytes: got %q, %v", name, n, len(packed), got, err)
			}
			for bit := range 8 {
				damaged := bytes.Clone(packed)
				damaged[n] ^= 1 << bit
				if got, err := unpack(name, damaged, 1); err == nil && !bytes.Equal(got, whole) {
					t.Errorf("%s: bit %d of byte %d: got %q", name, bit, n, got)
				}
			}
		}
	}
}

// TestCompiled looks at what compile.py left: nothing in a fresh clone, else images
// of these very sources.
func TestCompiled(t *testing.T) {
	manifest, err := fs.ReadFile(compiled, "sources")
	if err != nil {
		t.Skip("no kernels were compiled; make kernels does that")
	}
	digests := map[string]string{}
	for line := range strings.Lines(string(manifest)) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		digests[name] = digest
		content, err := os.ReadFile(name)
		sum := sha256.Sum256(content)
		if err != nil || hex.EncodeToString(sum[:]) != digest {
			t.Errorf("%s is not what the images were made of (%v): make kernels", name, err)
		}
	}
	sources, _ := filepath.Glob("*/*.cu")
	for _, source := range sources {
		name := strings.TrimSuffix(path.Base(source), ".cu")
		if digests[source] == "" || !slices.Contains(Names(), name) {
			t.Errorf("%s has not been compiled: make kernels", source)
		}
	}
	for _, c := range choices() {
		image, err := c.Image()
		want := "\x7fELF"
		if c.PTX() {
			want = "//\n// Generated by NVIDIA NVVM Compiler"
		}
		if err != nil || !strings.HasPrefix(string(image), want) {
			t.Errorf("%s for %s: expected %q, got %.40q, %v", c.Name, c.Architecture, want, image, err)
		}
	}
}

// BenchmarkImage is the time of an image at the first use of a GPU.
func BenchmarkImage(b *testing.B) {
	for _, c := range choices() {
		if c.Name != "neighbor" {
			continue
		}
		b.Run(c.Architecture, func(b *testing.B) {
			for b.Loop() {
				image, err := c.Image()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(image)))
			}
		})
	}
}
