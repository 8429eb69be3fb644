package source

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
)

var update = flag.Bool("update", false, "write the golden texts")

// programs are those whose texts are kept in testdata.
var programs = map[string]string{
	"ladies": `%0 = seeds
%1 = slice %0
%2 = const value=2
%3 = pow %1, %2
%4 = sum %3 axis=1
%5 = collective %1, %4 k=64 replace=false site=0
%6 = div %5, %4 axis=1
%7 = sum %6 axis=0
%8 = div %6, %7 axis=0
%9 = row %8
return blocks %8 "reached"=%9`,
	"labor": `%0 = seeds
%1 = slice %0
%2 = labor %1, %1 k=3
%3 = mul %1, %2 axis=0
%4 = largest %3 axis=1
%5 = spread %1, %4 axis=1
%6 = labor %1, %5 k=-1
return vectors "c"=%6`,
	"dependent": `%0 = seeds
%1 = slice %0
%2 = degree
%3 = level %1, %2
%4 = mul %1, %3 axis=0
%5 = count %1 axis=0
%6 = level %4, %5
%7 = dependent %1, %4 site=0
return blocks %7 "c"=%3 "d"=%6`,
	"subgraph": `%0 = seeds
%1 = slice %0
%2 = individual %1 k=3 replace=false site=0
%3 = row %2
%4 = union %0, %3
%5 = cross %4, %4
return subgraph %4, %5`,
	"many": `%0 = seeds
%1 = whole
%2 = sum %1 axis=1
%3 = cap %2 k=9
%4 = draw %3 k=9 replace=true site=0
%5 = draw %3 k=9 replace=false site=1
%6 = concat %4, %5
%7 = slice %6
%8 = largest %7 axis=1
%9 = largest %7 axis=0
%10 = div %7, %8 axis=1
%11 = exp %10
%12 = individual %7, %11 k=4 replace=false site=2
%13 = individual %7, %11 k=4 replace=true site=3
%14 = merge %12, %13
%15 = collective %14 k=5 replace=true site=4
%16 = times %15
%17 = random %15 site=5
%18 = mul %17, %16 axis=1
%19 = top_k %15, %18 k=3
%20 = mean %9
%21 = sub %19, %20
%22 = row %21
%23 = gather %2, %22
%24 = pick %22, %23
return blocks %21, %14 "picked"=%24 "mean"=%9`,
	"between": `%0 = seeds
%1 = unique %0
%2 = whole
%3 = column %2
%4 = cross %1, %3
return blocks %4`,
	"slices": `%0 = seeds
%1 = slice %0
%2 = individual %1 k=3 replace=false site=0
%3 = row %2
%4 = mul %2, %2
%5 = extract %4, %3
%6 = row %5
%7 = isin %6, %0
%8 = spread %5, %7 axis=1
%9 = filter %5, %8
%10 = whole
%11 = extract %10, %0
return blocks %11, %9`,
	"named": `%0 = seeds
%1 = unique %0
%2 = slice %1
%3 = data %2 name="\"; } while(1); /*"
%4 = vertices name="x\\\n#include \"y\""
%5 = add %3, %4 axis=1
%6 = const value=-0.1
%7 = le %5, %6
%8 = filter %2, %7
return blocks %8 "*/"=%4`,
}

func textOf(t *testing.T, name string) Text {
	t.Helper()
	p, err := program.Parse(programs[name], "w")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Generate(p)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The text of a program changes when somebody means it.
func TestGolden(t *testing.T) {
	for name := range programs {
		got := textOf(t, name).Source
		file := filepath.Join("testdata", name+".cu")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: go test -update writes it anew; got\n%s\n%v", name, got, err)
		}
	}
}

// Layouts are the CPU's but for A[R, S], of lists that are not the same, or where out-edges are asked for: of others the
// text is the same whatever they are.
func TestLayouts(t *testing.T) {
	for name, lines := range programs {
		p, err := program.Parse(lines, "w")
		if err != nil {
			t.Fatal(err)
		}
		for way, want := range map[program.Layout]string{program.Cheaper: "false)", program.Other: "true)"} {
			got, err := Generate(p.Marked(func(_ int, n *program.Node) { n.Layout = way }))
			if err != nil {
				t.Fatal(err)
			}
			chosen := name == "between" || name == "subgraph" && way == program.Other
			switch is := strings.Contains(got.Source, "if (!between(m, "); {
			case is != chosen || is != got.Between || got.ByRows != (is && way == program.Other):
				t.Errorf("%s, layout %d: got %+v", name, way, got)
			case is && !regexp.MustCompile(`between\(.*, `+regexp.QuoteMeta(want)).MatchString(got.Source):
				t.Errorf("%s, layout %d: expected %s in\n%s", name, way, want, got.Source)
			case !is && got.Source != textOf(t, name).Source:
				t.Errorf("%s, layout %d: got another text\n%s", name, way, got.Source)
			}
		}
	}
}

// Names are not in the text, whatever they are: it is the same for all.
func TestNamesAreNoCode(t *testing.T) {
	hostile := textOf(t, "named")
	if len(hostile.Arrays) != 3 || hostile.Arrays[0].Name != `"; } while(1); /*` || hostile.Arrays[0].Vertex || !hostile.Arrays[1].Vertex {
		t.Errorf("got arrays %+v", hostile.Arrays)
	}
	plain := programs["named"]
	for _, p := range strings.Fields(`name="\"; name="x\\`) {
		if !strings.Contains(plain, p) {
			t.Fatalf("expected %s in the program", p)
		}
	}
	plain = strings.NewReplacer(`"\"; } while(1); /*"`, `"a"`, `"x\\\n#include \"y\""`, `"b"`, `"*/"`, `"c"`).Replace(plain)
	p, err := program.Parse(plain, "w")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := Generate(p); err != nil || same.Source != hostile.Source {
		t.Errorf("expected one text for all names, got\n%s\nand\n%s", hostile.Source, same.Source)
	}
}

// Values that no result needs are not computed, also if they are the values of a matrix.
func TestUnneeded(t *testing.T) {
	p, err := program.Parse(`%0 = seeds
%1 = slice %0
%2 = sum %1 axis=1
%3 = div %1, %2 axis=1
%4 = row %3
return vectors "rows"=%4`, "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Generate(p)
	if err != nil || strings.Contains(text.Source, "sum_groups") || strings.Contains(text.Source, "op_div") {
		t.Errorf("expected no sum and no quotient, got %v\n%s", err, text.Source)
	}
}

// Constants have all their bits.
func TestConstants(t *testing.T) {
	for value, want := range map[string]string{
		"0.1": "0x1.999999999999ap-04", "-0": "-0x0p+00", "+Inf": "of_bits(0x7ff0000000000000ull)", "NaN": "of_bits(0x7ff8000000000001ull)", "5e-324": "0x1p-1074",
	} {
		p, err := program.Parse("%0 = seeds\n%1 = slice %0\n%2 = const value="+value+"\n%3 = add %1, %2\nreturn blocks %3", "")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := Generate(p); err != nil || !strings.Contains(text.Source, "x2 = "+want+";") {
			t.Errorf("%s: expected %s, got %v\n%s", value, want, err, text.Source)
		}
	}
}

// A chain of values that are each taken twice stays a text of its own length.
func TestShared(t *testing.T) {
	lines := []string{"%0 = seeds", "%1 = slice %0"}
	for i := range 100 {
		lines = append(lines, strings.ReplaceAll("%N = add %M, %M", "M", strconv.Itoa(i+1)))
		lines[len(lines)-1] = strings.ReplaceAll(lines[len(lines)-1], "%N", "%"+strconv.Itoa(i+2))
	}
	p, err := program.Parse(strings.Join(append(lines, "return blocks %101"), "\n"), "w")
	if err != nil {
		t.Fatal(err)
	}
	text, err := Generate(p)
	if stored := strings.Count(text.Source, "store(m,"); err != nil || stored < 20 || len(text.Source) > 200*len(lines) {
		t.Errorf("expected values to be stored now and then, got %d times in %d bytes, %v", stored, len(text.Source), err)
	}
}

// walked is a program of so many steps, each of which draws an edge of each vertex that the last one met.
func walked(steps int) string {
	var b strings.Builder
	b.WriteString("%0 = seeds\n")
	for i := 0; i < 3*steps; i += 3 {
		fmt.Fprintf(&b, "%%%d = slice %%%d\n%%%d = individual %%%d k=1 replace=false site=%d\n%%%d = row %%%d\n", i+1, i, i+2, i+1, i/3, i+3, i+2)
	}
	fmt.Fprintf(&b, "return vectors \"met\"=%%%d", 3*steps)
	return b.String()
}

// All declarations of a program fit the shared memory of a block, however long the program is.
func TestLongProgramsFitTheSharedMemory(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^  (__shared__ )?(Edges|Ranges|Draws|List|Nested|const u32\*|u32) [a-z]+[0-9]*;$`)
	for steps, own := range map[int]bool{1: false, 50: false, 256: true} {
		p, err := program.Parse(walked(steps), "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := Generate(p)
		if err != nil {
			t.Fatal(err)
		}
		there, beside := 0, 0
		for _, found := range declared.FindAllStringSubmatch(text.Source, -1) {
			if found[1] != "" {
				there += sizes[found[2]]
			} else {
				beside++
			}
		}
		// The seeds are none of the steps'.
		if there == 0 || there > mostShared || own != (beside > 1) || strings.Count(text.Source, "__shared__") > len(declared.FindAllString(text.Source, -1)) {
			t.Errorf("%d steps: got %d bytes in shared memory and %d variables beside them", steps, there, beside)
		}
	}
}

// long skips a test that takes its time in NVRTC, into which the race detector does not see.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs without the race detector")
	}
}

// The NVRTC of the build takes the texts, for ids of either width, and has nothing to say of them.
func TestCompiled(t *testing.T) {
	long(t)
	files, _ := filepath.Glob("../../../../.venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
	if len(files) == 0 {
		t.Skip("needs the build's NVRTC")
	}
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	t.Setenv("PYGSAMPLER_NVRTC", files[0])
	for name, bits := range map[string]int{"many": 32, "subgraph": 64, "labor": 32, "dependent": 64, "named": 32, "between": 32, "by rows": 64, "turning": 64} {
		var c compiler.Compiler
		text := Turning()
		if name == "by rows" {
			p, err := program.Parse(programs["subgraph"], "w")
			if err == nil {
				text, err = Generate(p.Marked(func(_ int, n *program.Node) { n.Layout = program.Other }))
			}
			if err != nil {
				t.Fatal(err)
			}
		} else if name != "turning" {
			text = textOf(t, name)
		}
		widths := Widths{ID: bits, Place: bits, Indptr: bits, OutEdge: bits}
		image, err := c.Compile(text.Program(widths, make([]Type, len(text.Arrays))), 7, 5)
		if err != nil || image.Log != "" {
			t.Errorf("%s: got %q, %v", name, image.Log, err)
		}
	}
}

// Programs with dense rows compile, whose widths are the widths of arrays and inputs.
func TestDenseCompiled(t *testing.T) {
	long(t)
	files, _ := filepath.Glob("../../../../.venv/lib/python3*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
	if len(files) == 0 {
		t.Skip("needs the build's NVRTC")
	}
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	t.Setenv("PYGSAMPLER_NVRTC", files[0])
	p, err := program.Parse("%0 = seeds\n%1 = slice %0\n%2 = features name=\"x\"\n%3 = project %2 name=\"W\"\n%4 = dot %1, %3, %3\n"+
		"%5 = multiply %4, %2 axis=0\n%6 = multiply %1, %5 axis=1\n%7 = entry %6 k=69\n%8 = whole\n%9 = multiply %8, %2 axis=0\n%10 = row %1\n%11 = slice %10\n"+
		"%12 = random %11 site=0\nreturn blocks ~%11, %4 \"a\"=%6 \"b\"=%7 \"c\"=%9 \"d\"[0]=%12", "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Nodes {
		if p.Nodes[i].Op == program.Project {
			p.Nodes[i].Tensor = &program.Tensor{Shape: []int64{70, 41}, Data: make([]float32, 70*41)}
		}
	}
	p = p.Marked(func(i int, n *program.Node) { n.Once = i == 9 })
	text, err := Generate(p)
	if err != nil || len(text.Once) != 1 || !strings.Contains(text.Source, "extra_edges(") {
		t.Fatalf("got %v, %v of\n%s", err, text.Once, text.Source)
	}
	made, err := NodeValues(p, text.Once)
	if err != nil || !strings.Contains(made.Source, "keep_rows<") {
		t.Fatalf("got %v of\n%s", err, made.Source)
	}
	for _, text := range []Text{text, made} {
		arrays := make([]Type, len(text.Arrays))
		for i := range arrays {
			arrays[i] = Type{csc.Float32, 70}
		}
		var c compiler.Compiler
		image, err := c.Compile(text.Program(Widths{ID: 32, Place: 32, Indptr: 64, OutEdge: 32}, arrays), 7, 5)
		if err != nil || image.Log != "" {
			t.Errorf("got %q, %v", image.Log, err)
		}
	}
}

func TestInputsAreBoundBeforeATextIsWritten(t *testing.T) {
	p, err := program.Parse("%0 = seeds\n%1 = slice %0\n%2 = features name=\"x\"\n%3 = project %2 name=\"W\"\n%4 = dot %1, %3, %3\nreturn blocks %4", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Generate(p); err == nil || err.Error() != "%3: project: expected an input \"W\", got none" {
		t.Errorf("got %v", err)
	}
}
