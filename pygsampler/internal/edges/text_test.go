package edges

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// scan is all edges of a source.
func scan(s Source) (src, dst []int64, err error) {
	err = s.Scan(&Meter{}, func(b *Batch) error {
		src, dst = append(src, b.Src...), append(dst, b.Dst...)
		return nil
	})
	return src, dst, err
}

func named(name string) Column { return Column{Name: name, Given: true} }
func nth(i int) Column         { return Column{Index: i, Given: true} }

func TestTextIsRead(t *testing.T) {
	for _, k := range []struct {
		format, content string
		src, dst        Column
		want            [][2]int64
	}{
		{"snap", "", Column{}, Column{}, nil},
		{"snap", "\n\n", Column{}, Column{}, nil},
		{"snap", "# Directed graph\n# FromNodeId\tToNodeId\n0\t1\n7\t0\n", Column{}, Column{}, [][2]int64{{0, 1}, {7, 0}}},
		{"snap", "1 2", Column{}, Column{}, [][2]int64{{1, 2}}},
		{"snap", "  1   2 \r\n\r\n% comment\n3\t \t4 5.5 text\r\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"snap", "1 2 3\n4 5 6\n", nth(2), nth(0), [][2]int64{{3, 1}, {6, 4}}},
		{"snap", "\xef\xbb\xbf1 2\n", Column{}, Column{}, [][2]int64{{1, 2}}},
		{"snap", "9223372036854775807 +7\n", Column{}, Column{}, [][2]int64{{1<<63 - 1, 7}}},
		{"csv", "1,2\n3,4", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"csv", "\xef\xbb\xbfsrc,dst\r\n1,2\r\n", Column{}, Column{}, [][2]int64{{1, 2}}},
		{"csv", "id,Source ID,target_id,w\n9,1,2,0.5\n9,3,4,\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"csv", "a,b,c\n1,2,3\n", named("c"), named("a"), [][2]int64{{3, 1}}},
		{"csv", "4,5,6\n1,2,3\n", nth(2), Column{}, [][2]int64{{6, 5}, {3, 2}}},
		{"csv", "id,src,to\n1,2,3\n", named("src"), Column{}, [][2]int64{{2, 3}}},
		{"csv", "id,src,to\n1,2,3\n", Column{}, nth(2), [][2]int64{{2, 3}}},
		{"csv", "7,8,9\n1,2,3\n", named("9"), named("7"), [][2]int64{{3, 1}}},
		{"csv", "1;2\n3;4\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"csv", "1|2\n", Column{}, Column{}, [][2]int64{{1, 2}}},
		{"csv", "\"1\", \"2\" \n 3 ,4\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"csv", "n,src,dst\n\"a\nb,\"\"c\"\"\",1,2\n\"\n\n\",3,4\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"csv", "1,2,5\" pipe\n3,4,\"x\n,5,6\"\n7,8,'\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}, {7, 8}}},
		{"csv", "# it's \"odd\n1,2\n#\"\n3,4\n", Column{}, Column{}, [][2]int64{{1, 2}, {3, 4}}},
		{"csv", "src,dst\n", Column{}, Column{}, nil},
		{"csv", ",src,dst\n0,1,2\n", Column{}, Column{}, [][2]int64{{1, 2}}},
		{"tsv", "from\tto\n1\t2\n", Column{}, Column{}, [][2]int64{{1, 2}}},
		{"tsv", "1\t\"2\"\r\n", Column{}, Column{}, [][2]int64{{1, 2}}},
	} {
		for _, pack := range []bool{false, true} {
			content := k.content
			if pack {
				content = packed(t, content)
			}
			s, err := Open(write(t, "edges."+k.format, content), k.format, k.src, k.dst)
			if err != nil {
				t.Errorf("%q: %v", k.content, err)
				continue
			}
			src, dst, err := scan(s)
			var got [][2]int64
			for i := range src {
				got = append(got, [2]int64{src[i], dst[i]})
			}
			if err != nil || !slices.Equal(got, k.want) {
				t.Errorf("%s %q: got %v, %v, want %v", k.format, k.content, got, err, k.want)
			}
		}
	}
}

func TestErrorsOfTextNameThePlace(t *testing.T) {
	for _, k := range []struct {
		format, content string
		src, dst        Column
		want            string
	}{
		{"csv", "src,dst\n1,2\n3,x\n", Column{}, Column{}, "edges:3: dst: expected an integer >= 0, got 'x'"},
		{"csv", "1,2\n-3,4\n", Column{}, Column{}, "edges:2: src: expected an integer >= 0, got '-3'"},
		{"csv", "1,2\n3,\n", Column{}, Column{}, "edges:2: dst: expected an integer >= 0, got ''"},
		{"csv", "1,2\n3\n", Column{}, Column{}, "edges:2: expected at least 2 columns, got 1"},
		{"csv", "1,2\n3.0,1\n", Column{}, Column{}, "edges:2: src: expected an integer >= 0, got '3.0'"},
		{"csv", "1,9223372036854775808\n", Column{}, Column{}, "edges:1: dst: expected an integer below 2^63, got '9223372036854775808'"},
		{"csv", "n,src,dst\n\"a\n\n\",1,2\nb,1,?\n", Column{}, Column{}, "edges:5: dst: expected an integer >= 0, got '?'"},
		{"csv", "n,src,dst\nx,1,2\n\"a,1,2\n", Column{}, Column{}, "edges:3: expected a closing quote, got the end of the file"},
		{"csv", "a,b\n1,2\n", named("c"), named("b"), `edges: src: expected a column "c", got columns a, b`},
		{"csv", "a,a\n1,2\n", named("a"), nth(1), `edges: src: expected one column "a", got two`},
		{"snap", "1 2\n", nth(0), nth(0), "edges: src, dst: expected two columns, got column 0 for both"},
		{"csv", "w,x\n1,2\n0.5,1\n", Column{}, Column{}, "edges:3: src (column 'w'): expected an integer >= 0, got '0.5'"},
		{"csv", ",0,1\n0,5,6\n", Column{}, Column{}, "edges:1: src: expected an integer >= 0, got ''"},
		{"csv", "1,2\n", nth(2), nth(0), "edges: src: expected at least 3 columns, got 2"},
		{"csv", "1,2\n3,\x80\xff" + strings.Repeat("y", 99) + "\n", Column{}, Column{}, "edges:2: dst: expected an integer >= 0, got '?yyyyy"},
		{"snap", "1,2\n", Column{}, Column{}, "edges: dst: expected at least 2 columns, got 1; format=\"csv\" reads fields between commas"},
		{"snap", "1, 2\n", Column{}, Column{}, "edges:1: src: expected an integer >= 0, got '1,'; format=\"csv\""},
		{"snap", "1 2\n\n# c\n3 4e5\n", Column{}, Column{}, "edges:4: dst: expected an integer >= 0, got '4e5'"},
		{"snap", "1 2\x00\n", Column{}, Column{}, "edges: expected text, got binary data"},
		{"snap", "\xff\xfe1\x00", Column{}, Column{}, "edges: expected text in UTF-8, got UTF-16"},
		{"nope", "1 2", Column{}, Column{}, `format: expected snap, csv, tsv, parquet, arrow or mtx, got "nope"`},
	} {
		s, err := Open(write(t, "edges", k.content), k.format, k.src, k.dst)
		if err == nil {
			_, _, err = scan(s)
		}
		if err == nil || !strings.HasPrefix(err.Error(), k.want) {
			t.Errorf("%q: got %v, want %s", k.content, err, k.want)
		}
	}
	whole := packed(t, strings.Repeat("1 2\n", 1000))
	for _, cut := range []int{5, 30, len(whole) - 3} {
		s, err := Open(write(t, "edges", whole[:cut]), "snap", Column{}, Column{})
		if err == nil {
			_, _, err = scan(s)
		}
		if err == nil || !strings.Contains(err.Error(), "edges: expected gzip data") {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

// Lines that lie across the blocks of the reader, of all lengths and with quotes, are
// read as in a small file, and errors behind them count lines right.
func TestBlocksDoNotShow(t *testing.T) {
	var b strings.Builder
	b.WriteString("src,dst,text\n")
	var want [][2]int64
	var begins []int
	lines := 1
	for i := int64(0); b.Len() < 3*blockSize; i++ {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&b, "%d,%d,\"%s\n\"\n", i, i+i/2, strings.Repeat("a,\"\"", int(i)%50))
			lines++
		case 1:
			fmt.Fprintf(&b, "# comment \"\n%d,%d\r\n", i, i+i/2)
			lines++
		default:
			fmt.Fprintf(&b, "%d,%d,%d\n", i, i+i/2, i%7)
		}
		lines++
		begins = append(begins, lines)
		if i%5 == 0 {
			begins[i]-- // of its two lines, the first
		}
		want = append(want, [2]int64{i, i + i/2})
	}
	s, err := Open(write(t, "edges", b.String()+"1,x\n"), "csv", Column{}, Column{})
	if err != nil {
		t.Fatal(err)
	}
	src, dst, err := scan(s)
	if wrong := fmt.Sprintf("edges:%d: dst: expected an integer >= 0, got 'x'", lines+1); err == nil || err.Error() != wrong {
		t.Errorf("got %v, want %s", err, wrong)
	}
	if len(src) != len(want) {
		t.Fatalf("%d edges, want %d", len(src), len(want))
	}
	for i, w := range want {
		if src[i] != w[0] || dst[i] != w[1] {
			t.Fatalf("edge %d: got %d, %d, want %v", i, src[i], dst[i], w)
		}
	}
	// The place of an edge far into the file.
	place := int64(len(want) - 1)
	for want[place][1]%3 != 0 || place%5 == 0 {
		place--
	}
	plan := Plan{NumNodes: place + place/2}
	if _, err := build(t, s, plan); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("edges:%d: expected ids below", begins[place])) {
		t.Errorf("got %v, want line %d", err, begins[place])
	}
	long, err := Open(write(t, "long", "1,2,\"\n"+strings.Repeat("x", mostRecord+blockSize)), "csv", Column{}, Column{})
	if err == nil {
		_, _, err = scan(long)
	}
	if err == nil || !strings.Contains(err.Error(), "expected") {
		t.Errorf("a line without end: %v", err)
	}
}

// A scan that ends early, by its consumer or the meter, leaves no goroutine.
func TestScanEnds(t *testing.T) {
	s, err := Open(write(t, "edges", strings.Repeat("1 2\n", 3<<20)), "snap", Column{}, Column{})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	enough := errors.New("enough")
	for range 5 {
		if err := s.Scan(&Meter{}, func(*Batch) error { return enough }); err != enough {
			t.Fatal(err)
		}
		var m Meter
		if err := s.Scan(&m, func(*Batch) error { m.Stop.Store(true); return nil }); err != ErrStopped {
			t.Fatal(err)
		}
	}
	// One that has said that it is done is counted for a moment more.
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestMatrixIsRead(t *testing.T) {
	const general = "%%MatrixMarket matrix coordinate real general\n% made by hand\n\n5 5 3\n1 2 0.5\n3 5 1e3\n2 1 -1\n"
	s, err := Open(write(t, "m.mtx", general), "mtx", Column{}, Column{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := build(t, s, Plan{NumNodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "general", got, reference([]int64{0, 2, 1}, []int64{1, 4, 0}, Plan{NumNodes: 5}))
	s, err = Open(write(t, "m.mtx", strings.Replace(general, "real general", "PATTERN Symmetric", 1)), "mtx", Column{}, Column{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err = build(t, s, Plan{NumNodes: -1}); err != nil {
		t.Fatal(err)
	}
	same(t, "symmetric", got, reference([]int64{0, 2, 1}, []int64{1, 4, 0}, Plan{NumNodes: 5, Undirected: true}))
	for content, want := range map[string]string{
		"1 2\n": "m.mtx:1: expected %%MatrixMarket matrix coordinate ..., got '1 2'",
		"%%MatrixMarket matrix array real general\n2 2\n1\n":              `m.mtx:1: expected a matrix of coordinates, got "array"`,
		"%%MatrixMarket matrix coordinate real general\n":                 "m.mtx: expected a line with rows",
		"%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 1\n":   "m.mtx:2: expected as many rows as columns, got 2 and 3, which are nodes of two kinds; HeteroGraph.from_scipy(",
		"%%MatrixMarket matrix coordinate real general\n2 2\n":            "m.mtx:2: expected rows, columns and entries, got '2 2'",
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n":   "m.mtx:3: row: expected an integer in [1, 2], got 0",
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n":   "m.mtx:3: column: expected an integer in [1, 2], got 3",
		"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n":   "m.mtx: expected 2 entries, as its line of sizes says, got 1",
		"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1\n1 2 ": "m.mtx: expected 1 entries, as its line of sizes says, got 2",
	} {
		s, err := Open(write(t, "m.mtx", content), "mtx", Column{}, Column{})
		if err == nil {
			_, _, err = scan(s)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
	}
}

func TestWhatIsNoFile(t *testing.T) {
	for _, format := range []string{"snap", "mtx", "parquet", "arrow"} {
		if _, err := Open(t.TempDir(), format, Column{}, Column{}); err == nil || !strings.Contains(err.Error(), "expected a regular file") {
			t.Errorf("%s: a folder: %v", format, err)
		}
		if _, err := Open("/nowhere/at/all", format, Column{}, Column{}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: nothing: %v", format, err)
		}
	}
}

// FuzzText holds the parser of chunks against itself: a text in one chunk, and cut
// behind any of its lines, gives the same edges or the same fault.
func FuzzText(f *testing.F) {
	for _, s := range []string{"1,2\n3,4\n", "\"1\n\",2,\"\"\n", "a\"b,1\n#\"\n", "1 2\r\n\t3  4", "+1,-2\n,\n", "\xef\xbb\xbf9,9"} {
		f.Add(s, uint8(3), uint8(0), uint8(1), uint16(4))
	}
	f.Fuzz(func(t *testing.T, text string, kind, u, v uint8, cut uint16) {
		p := fields{separator: []byte{0, ',', '\t', ';'}[kind%4], quotes: kind&4 != 0, comments: "#", columns: columns{src: int(u % 4), dst: int(v % 4)}}
		if p.separator == 0 {
			p.quotes = false
		}
		data := []byte(text)
		src, dst, lines, bad := p.parse(data, nil, nil, -1)
		if len(src) != len(dst) {
			t.Fatal("unequal")
		}
		for i, id := range src {
			if id < 0 || dst[i] < 0 {
				t.Fatalf("negative id of %q", text)
			}
		}
		// Without the fast way.
		plainSrc, plainDst, plainLines, plainBad := p.parse(data, nil, nil, 1<<30)
		if !slices.Equal(src, plainSrc) || !slices.Equal(dst, plainDst) || lines != plainLines || (bad == nil) != (plainBad == nil) {
			t.Fatalf("%q: %v %v %d %v, without the fast way %v %v %d %v", text, src, dst, lines, bad, plainSrc, plainDst, plainLines, plainBad)
		}
		end := p.lastBreak(data[:int(cut)%(len(data)+1)])
		s, d, n, first := p.parse(data[:end], nil, nil, -1)
		if first == nil {
			var more int64
			s, d, more, first = p.parse(data[end:], s, d, -1)
			n += more
		}
		if !slices.Equal(src, s) || !slices.Equal(dst, d) || n != lines || (bad == nil) != (first == nil) || bad != nil && *bad != *first {
			t.Fatalf("%q cut at %d: %v %v %d %v, in one %v %v %d %v", text, end, s, d, n, first, src, dst, lines, bad)
		}
	})
}

// FuzzFile opens anything as any format: an error or edges, never a panic.
func FuzzFile(f *testing.F) {
	f.Add("src,dst\n1,2\n", uint8(1))
	f.Add("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 1\n", uint8(3))
	f.Add("ARROW1\x00\x00", uint8(5))
	f.Add("PAR1PAR1", uint8(4))
	f.Fuzz(func(t *testing.T, content string, kind uint8) {
		formats := []string{"snap", "csv", "tsv", "mtx", "parquet", "arrow"}
		s, err := Open(write(t, "edges", content), formats[int(kind)%len(formats)], Column{}, Column{})
		if err == nil {
			_, err = build(t, s, Plan{NumNodes: -1, Numbering: Always})
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
	})
}
