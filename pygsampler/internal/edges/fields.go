package edges

import (
	"bytes"
	"fmt"
	"math"
)

// fields describes the structure of lines, and the fields that are the ends of an edge.
type fields struct {
	separator byte // 0: runs of blanks and tabs
	comments  string
	quotes    bool   // fields may stand in double quotes
	numbers   bool   // what is read are bits of float64, not ids
	heard     *heard // what is read are words
	columns
}

// fault is the error of a line.
type fault struct{ text string }

func (f *fields) blank(c byte) bool { return c == ' ' || c == '\r' || c == '\t' && f.separator != '\t' }

// lastBreak returns the position after the last line break of data outside of quotes; data begins
// with a line.
func (f *fields) lastBreak(data []byte) int {
	if !f.quotes || bytes.IndexByte(data, '"') < 0 {
		return bytes.LastIndexByte(data, '\n') + 1
	}
	end := 0
	for end < len(data) {
		n := f.record(data[end:])
		if n == 0 || data[end+n-1] != '\n' {
			break
		}
		end += n
	}
	return end
}

// record returns the length of the first line of data, with its line break; breaks inside quotes
// belong to the line. It is 0 if a quote is still open at the end.
func (f *fields) record(data []byte) int {
	end := bytes.IndexByte(data, '\n')
	if end < 0 {
		end = len(data) - 1
	}
	if !f.quotes || bytes.IndexByte(data[:end+1], '"') < 0 || f.isComment(data) {
		return end + 1
	}
	for at := 0; at < len(data); {
		n := f.field(data[at:])
		if n < 0 {
			return 0
		}
		at += n
		if at < len(data) {
			at++
			if data[at-1] == '\n' {
				return at
			}
		}
	}
	return len(data)
}

// field is the length of the first field of data; -1 where its quote is still open
// at the end. A quote opens a field only at its beginning: elsewhere it is a letter.
func (f *fields) field(data []byte) int {
	at := 0
	for at < len(data) && f.blank(data[at]) {
		at++
	}
	if f.quotes && at < len(data) && data[at] == '"' {
		for at++; ; at++ {
			n := bytes.IndexByte(data[at:], '"')
			if n < 0 {
				return -1
			}
			// Two quotes in a row stand for one.
			if at += n + 1; at == len(data) || data[at] != '"' {
				break
			}
		}
	}
	for at < len(data) && data[at] != f.separator && data[at] != '\n' {
		at++
	}
	return at
}

func (f *fields) isComment(line []byte) bool {
	for _, c := range line {
		if f.blank(c) {
			continue
		}
		for i := range len(f.comments) {
			if c == f.comments[i] {
				return true
			}
		}
		return false
	}
	return false
}

func (f *fields) quoteHint() string {
	if f.quotes {
		return ", or a quote that is not closed"
	}
	return ""
}

// parse appends the edges of whole lines to src and dst. lines is the number of line breaks; with a
// fault, or after until >= 0 edges, the number of the line in question, from 1.
func (f *fields) parse(data []byte, src, dst []int64, until int) (s, d []int64, lines int64, bad *fault) {
	last := max(f.src, f.dst)
	for at := 0; at < len(data); {
		c := data[at]
		// Two plain numbers at the beginning of a line: what nearly all lines are.
		if c-'0' <= 9 && f.src == 0 && f.dst == 1 && until < 0 {
			if u, v, next, ok := f.plain(data, at); ok {
				src, dst = append(src, u), append(dst, v)
				at = next
				lines++
				continue
			}
		}
		n := f.record(data[at:])
		if n == 0 {
			return src, dst, lines + 1, &fault{"expected a closing quote, got the end of the file"}
		}
		line := data[at : at+n]
		at += n
		breaks := int64(bytes.Count(line, []byte{'\n'}))
		line = bytes.TrimRight(line, "\r\n")
		if f.empty(line) || f.isComment(line) {
			lines += breaks
			continue
		}
		u, v, bad := f.edge(line, last)
		if bad != nil {
			return src, dst, lines + 1, bad
		}
		if len(src) == until {
			return src, dst, lines + 1, nil
		}
		src, dst = append(src, u), append(dst, v)
		lines += breaks
	}
	return src, dst, lines, nil
}

func (f *fields) empty(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// plain reads "digits separator digits" and the rest up to the line break; ok is false for any
// other content, which the general parser handles.
func (f *fields) plain(data []byte, at int) (u, v int64, next int, ok bool) {
	start := at
	for at < len(data) && data[at]-'0' <= 9 {
		u = u*10 + int64(data[at]-'0')
		at++
	}
	// 18 digits cannot overflow.
	if at-start > 18 || at == len(data) {
		return 0, 0, 0, false
	}
	if f.separator != 0 {
		if data[at] != f.separator {
			return 0, 0, 0, false
		}
		at++
	} else {
		from := at
		for at < len(data) && (data[at] == ' ' || data[at] == '\t') {
			at++
		}
		if at == from {
			return 0, 0, 0, false
		}
	}
	start = at
	for at < len(data) && data[at]-'0' <= 9 {
		v = v*10 + int64(data[at]-'0')
		at++
	}
	if at == start || at-start > 18 {
		return 0, 0, 0, false
	}
	if at == len(data) {
		return u, v, at, false // the last line, without a break
	}
	switch c := data[at]; {
	case c == '\n':
		return u, v, at + 1, true
	case c == '\r' && at+1 < len(data) && data[at+1] == '\n':
		return u, v, at + 2, true
	case c == f.separator && c != 0 || f.separator == 0 && (c == ' ' || c == '\t'):
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 || f.quotes && bytes.IndexByte(data[at:at+end], '"') >= 0 {
			return 0, 0, 0, false
		}
		return u, v, at + end + 1, true
	}
	return 0, 0, 0, false
}

// edge reads the two fields of a line.
func (f *fields) edge(line []byte, last int) (u, v int64, bad *fault) {
	count := 0
	for rest := line; rest != nil && count <= last; count++ {
		var field []byte
		field, rest = f.next(rest)
		if count != f.src && count != f.dst {
			continue
		}
		read := f.id
		if f.numbers {
			read = f.number
		}
		if f.heard != nil {
			read = f.word
		}
		id, problem := read(field)
		if problem != "" {
			return 0, 0, &fault{f.name(count) + ": " + problem}
		}
		if count == f.src {
			u = id
		}
		if count == f.dst {
			v = id
		}
	}
	if count <= last {
		return 0, 0, &fault{fmt.Sprintf("expected at least %d columns, got %d", last+1, count)}
	}
	return u, v, nil
}

func (f *fields) name(column int) string {
	if column == f.src {
		return f.srcName
	}
	return f.dstName
}

// next is the first field of a line, trimmed but still quoted, and the rest; nil
// where nothing follows.
func (f *fields) next(line []byte) (field, rest []byte) {
	if f.separator == 0 {
		line = bytes.TrimLeft(line, " \t\r")
		end := bytes.IndexAny(line, " \t\r")
		if end < 0 {
			return line, nil
		}
		rest = bytes.TrimLeft(line[end:], " \t\r")
		if len(rest) == 0 {
			rest = nil
		}
		return line[:end], rest
	}
	end := f.field(line)
	if end < 0 || end == len(line) {
		return f.trim(line), nil
	}
	return f.trim(line[:end]), line[end+1:]
}

func (f *fields) trim(field []byte) []byte {
	for len(field) > 0 && f.blank(field[0]) {
		field = field[1:]
	}
	for len(field) > 0 && f.blank(field[len(field)-1]) {
		field = field[:len(field)-1]
	}
	return field
}

// id reads a field as a node; problem describes the error.
func (f *fields) id(field []byte) (id int64, problem string) {
	digits := field
	if f.quotes && len(digits) >= 2 && digits[0] == '"' && digits[len(digits)-1] == '"' {
		digits = f.trim(digits[1 : len(digits)-1])
	}
	if len(digits) > 1 && digits[0] == '+' {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, "expected an integer >= 0, got " + quoted(field)
	}
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, "expected an integer >= 0, got " + quoted(field)
		}
		if id > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, "expected an integer below 2^63, got " + quoted(field)
		}
		id = id*10 + int64(c-'0')
	}
	return id, ""
}
