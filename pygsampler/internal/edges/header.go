package edges

import (
	"bytes"
	"slices"
	"strings"
)

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
	if format == "snap" && strings.ContainsAny(strings.Join(names[:min(len(names), 2)], " "), ",;|") {
		t.rejected = `; format="csv" reads fields between commas`
	}
	header := src.Name != "" || dst.Name != "" || t.isHeader(names, src, dst)
	if !header {
		return t.hinted(t.choose(make([]string, len(names)), src, dst))
	}
	end := start + f.record(head[start:])
	t.skip, t.skipped = int64(end), numberLines(head[:end])
	return t.hinted(t.choose(names, src, dst))
}

func (t *text) hinted(err error) error {
	if err != nil && t.rejected != "" {
		return valueError("%v%s", err, t.rejected)
	}
	return err
}

func unquote(field []byte) []byte {
	if len(field) >= 2 && field[0] == '"' && field[len(field)-1] == '"' {
		return bytes.TrimSpace(field[1 : len(field)-1])
	}
	return field
}

// firstLine returns the first line that is neither blank nor a comment, and its position; nil if
// there is none.
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

// isHeader reports whether the first line names columns: if there are usual names, or if none of
// the fields at the ends of an edge is a number. A field without a name is the index that pandas
// writes, if all other fields are names.
func (t *text) isHeader(names []string, src, dst Column) bool {
	if _, _, ok, several := usualPair(names); ok || several {
		return true
	}
	u, v := 0, 1
	if src.Given {
		u = src.Index
	}
	if dst.Given {
		v = dst.Index
	}
	if u >= len(names) || v >= len(names) {
		return false
	}
	if names[u] != "" && names[v] != "" {
		return !numeric(names[u]) && !numeric(names[v])
	}
	return len(candidates(names)) > 0 && !slices.ContainsFunc(names, numeric)
}

// numeric reports whether a field begins like a number, which no name of a column does.
func numeric(field string) bool {
	return field != "" && strings.ContainsRune("+-.0123456789", rune(field[0]))
}

// choose sets the columns; names is nil for an empty text, else has a name, or "",
// for each column.
func (t *text) choose(names []string, src, dst Column) error {
	c, err := pick(t.path, names, src, dst)
	t.fields.columns, t.names = c, names
	return err
}
