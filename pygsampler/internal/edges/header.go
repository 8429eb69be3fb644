package edges

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Names that columns of sources and of targets commonly have, in small letters
// without blanks, "_" and "-".
var (
	sourceNames = []string{"src", "source", "sourceid", "srcid", "from", "fromid", "fromnode", "fromnodeid", "head", "u", "start", "startid", "node1", "id1"}
	targetNames = []string{"dst", "target", "targetid", "dstid", "dest", "destination", "to", "toid", "tonode", "tonodeid", "tail", "v", "end", "endid", "node2", "id2"}
)

func plainName(name string) string {
	return strings.NewReplacer(" ", "", "_", "", "-", "", ":", "").Replace(strings.ToLower(name))
}

// detect finds the separator, the header and the two columns at the beginning of a
// text.
func (t *text) detect(head []byte, format string, src, dst Column) error {
	f := &t.fields
	switch format {
	case "csv":
		f.separator, f.quotes, f.comments = ',', true, "#"
	case "tsv":
		f.separator, f.quotes, f.comments = '\t', true, "#"
	default:
		// "%" begins a comment in the files of KONECT, which are alike otherwise.
		f.comments = "#%"
	}
	at := 0
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		at = 3
	}
	t.skip = int64(at)
	first, start := f.firstLine(head, at)
	if first == nil {
		if int64(len(head)) < blockSize {
			return t.choose(nil, src, dst)
		}
		return located(t.path, "expected a line of edges in the first %d bytes, got none", blockSize)
	}
	if format == "csv" && bytes.IndexByte(first, ',') < 0 {
		for _, c := range []byte{';', '\t', '|'} {
			if bytes.IndexByte(first, c) >= 0 {
				f.separator = c
				break
			}
		}
	}
	var names []string
	for rest := first; rest != nil; {
		var field []byte
		field, rest = f.next(rest)
		names = append(names, string(unquote(field)))
	}
	header := src.Name != "" || dst.Name != "" || t.isHeader(names, src, dst)
	if !header {
		return t.choose(make([]string, len(names)), src, dst)
	}
	end := start + f.record(head[start:])
	t.skip, t.skipped = int64(end), numberLines(head[:end])
	return t.choose(names, src, dst)
}

func unquote(field []byte) []byte {
	if len(field) >= 2 && field[0] == '"' && field[len(field)-1] == '"' {
		return bytes.TrimSpace(field[1 : len(field)-1])
	}
	return field
}

// firstLine is the first line that is neither blank nor a comment, and where it is;
// nil where there is none.
func (f *fields) firstLine(head []byte, at int) (line []byte, start int) {
	for at < len(head) {
		n := f.record(head[at:])
		if n == 0 {
			return nil, at
		}
		line := bytes.TrimRight(head[at:at+n], "\r\n")
		if !f.empty(line) && !f.isComment(line) {
			return line, at
		}
		at += n
	}
	return nil, at
}

// isHeader says whether the first line names columns: there are usual names, or none
// of the fields where the ends of an edge would be is a number.
func (t *text) isHeader(names []string, src, dst Column) bool {
	if usual(names, sourceNames) >= 0 && usual(names, targetNames) >= 0 {
		return true
	}
	u, v := 0, 1
	if src.Given {
		u = src.Index
	}
	if dst.Given {
		v = dst.Index
	}
	for _, i := range []int{u, v} {
		if i >= len(names) || names[i] == "" || strings.ContainsRune("+-.0123456789", rune(names[i][0])) {
			return false
		}
	}
	return true
}

// choose sets the columns; names is nil for an empty text, else has a name, or "",
// for each column.
func (t *text) choose(names []string, src, dst Column) error {
	u, v, err := pick(t.path, names, src, dst)
	if err != nil {
		return err
	}
	t.fields.src, t.fields.dst = u, v
	t.fields.srcName, t.fields.dstName = "src", "dst"
	return nil
}

// pick is the columns of sources and targets: those that are asked for, else those
// with usual names, else the first two.
func pick(path string, names []string, src, dst Column) (u, v int, err error) {
	u, v = 0, 1
	a, b := usual(names, sourceNames), usual(names, targetNames)
	switch {
	case src.Given && b >= 0:
		v = b
	case dst.Given && a >= 0:
		u = a
	case a >= 0 && b >= 0:
		return a, b, nil
	}
	for _, side := range []struct {
		what   string
		column Column
		place  *int
	}{{"src", src, &u}, {"dst", dst, &v}} {
		c := side.column
		switch {
		case !c.Given:
		case c.Name == "":
			*side.place = c.Index
		default:
			i := slices.Index(names, c.Name)
			if i < 0 && names != nil {
				return 0, 0, located(path, "%s: expected a column %q, got columns %s", side.what, c.Name, listed(names))
			}
			if i >= 0 && slices.Index(names[i+1:], c.Name) >= 0 {
				return 0, 0, located(path, "%s: expected one column %q, got two", side.what, c.Name)
			}
			*side.place = max(i, 0)
		}
		if names != nil && *side.place >= len(names) {
			return 0, 0, located(path, "%s: expected at least %d columns, got %d", side.what, *side.place+1, len(names))
		}
	}
	if names != nil && u == v {
		return 0, 0, located(path, "src, dst: expected two columns, got column %d for both", u)
	}
	return u, v, nil
}

// usual is the only column with one of the names; -1 where there is none, or more.
func usual(names, known []string) int {
	found := -1
	for i, name := range names {
		if slices.Contains(known, plainName(name)) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var all []string
	for i, name := range names {
		if i == 20 {
			all = append(all, "...")
			break
		}
		if name == "" {
			name = fmt.Sprint(i)
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}
