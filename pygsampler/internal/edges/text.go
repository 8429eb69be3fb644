package edges

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

const (
	blockSize = 2 << 20
	// A longer line lacks line breaks.
	mostRecord = 16 << 20
)

// text is a file with an edge a line: fields between separators, or between runs of
// blanks. Blank lines and lines that begin with a comment's mark are skipped.
type text struct {
	path     string
	name     string // for errors
	size     int64
	fields   fields
	skip     int64 // bytes before the first edge: byte order mark and header
	skipped  int64 // lines therein
	facts    Facts
	names    []string // of the columns, "" where they have none; nil for an empty text
	rejected string   // hint for a field that is no number
}

func (t *text) Facts() Facts { return t.facts }
func (t *text) Size() int64  { return t.size }

// openText reads the beginning of the file to find the structure of its lines.
func openText(path, format string, src, dst Column) (Source, error) {
	size, err := fileSize(path)
	if err != nil {
		return nil, err
	}
	t := &text{path: path, name: baseName(path), size: size, facts: Facts{Bits: 64, NumNodes: -1}}
	head, err := t.head()
	if err != nil {
		return nil, err
	}
	if err := t.detect(head, format, src, dst); err != nil {
		return nil, err
	}
	return t, nil
}

// open returns the text of the file, decompressed if necessary.
func (t *text) open(m *Meter) (io.Reader, io.Closer, error) {
	f, err := os.Open(t.path)
	if err != nil {
		return nil, nil, err
	}
	packed, err := starts(t.path, []byte{0x1f, 0x8b})
	if err != nil || !packed {
		return tracked{f, m}, f, err
	}
	z, err := gzip.NewReader(tracked{f, m})
	if err != nil {
		_ = f.Close()
		return nil, nil, located(t.path, "expected gzip data, got what cannot be unpacked: %v", err)
	}
	return z, f, nil
}

// head is the beginning of the text, up to one block.
func (t *text) head() ([]byte, error) {
	r, closer, err := t.open(&Meter{})
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	head := make([]byte, blockSize)
	n, err := fill(r, head)
	if err != nil && err != io.EOF {
		return nil, t.unreadable(err)
	}
	head = head[:n]
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return nil, located(t.path, "expected text in UTF-8, got UTF-16")
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil, located(t.path, "expected text, got binary data")
	}
	return head, nil
}

// fill reads until p is full or there is an error. Unlike io.ReadFull it leaves
// io.ErrUnexpectedEOF to packed data that is cut off.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = r.Read(p[n:])
		n += more
	}
	return n, err
}

func (t *text) unreadable(err error) error {
	if errors.Is(err, ErrStopped) {
		return err
	}
	var path *os.PathError
	if errors.As(err, &path) {
		return err
	}
	return located(t.path, "expected gzip data to its end, got what cannot be unpacked: %v", err)
}

// chunk is a piece of whole lines, passed from the reader through a worker to the consumer.
type chunk struct {
	data     []byte
	src, dst []int64
	lines    int64
	bad      *fault
	ready    chan struct{}
}

// Scan splits the text into chunks of whole lines, which workers parse; the caller's goroutine
// receives them in the order of the file.
func (t *text) Scan(m *Meter, emit func(*Batch) error) error {
	r, closer, err := t.open(m)
	if err != nil {
		return err
	}
	defer closer.Close()
	workers := runtime.GOMAXPROCS(0)
	pending := make(chan *chunk, workers+1)
	work := make(chan *chunk, workers+1)
	free := make(chan *chunk, workers+3)
	for range workers + 3 {
		free <- &chunk{ready: make(chan struct{}, 1)}
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	var readErr error
	wg.Go(func() {
		defer close(pending)
		defer close(work)
		readErr = guarded(t.path, func() error { return t.split(r, free, quit, work, pending) })
	})
	for range workers {
		wg.Go(func() {
			for c := range work {
				t.parse(c)
				c.ready <- struct{}{}
			}
		})
	}
	err = t.consume(m, pending, free, emit)
	close(quit)
	wg.Wait()
	if err == nil {
		err = readErr
	}
	return err
}

// parse fills the chunk; a panic, which would be a fault of this package, is an
// error of the chunk.
func (t *text) parse(c *chunk) {
	defer func() {
		if p := recover(); p != nil {
			c.bad = &fault{text: fmt.Sprint(p)}
		}
	}()
	c.src, c.dst, c.lines, c.bad = t.fields.parse(c.data, c.src[:0], c.dst[:0], -1)
}

func (t *text) consume(m *Meter, pending <-chan *chunk, free chan<- *chunk, emit func(*Batch) error) error {
	line := t.skipped
	for c := range pending {
		<-c.ready
		if m.Stop.Load() {
			return ErrStopped
		}
		first := line
		b := &Batch{Src: c.src, Dst: c.dst, where: func(i int) string {
			_, _, lines, _ := t.fields.parse(c.data, nil, nil, i)
			return fmt.Sprintf("%s:%d", t.name, first+lines)
		}}
		// Edges before the fault may have faults of their own, which come first.
		if len(c.src) > 0 {
			if err := emit(b); err != nil {
				return err
			}
		}
		if c.bad != nil {
			return valueError("%s:%d: %s%s", t.name, first+c.lines, c.bad.text, t.rejected)
		}
		line += c.lines
		free <- c
	}
	return nil
}

// split cuts the text into chunks after line breaks.
func (t *text) split(r io.Reader, free <-chan *chunk, quit <-chan struct{}, work, pending chan<- *chunk) error {
	if _, err := io.CopyN(io.Discard, r, t.skip); err != nil {
		return t.unreadable(err)
	}
	var rest []byte // the beginning of a line whose end has not been read
	ended := false
	for !ended {
		var c *chunk
		select {
		case c = <-free:
		case <-quit:
			return nil
		}
		data := append(c.data[:0], rest...)
		have := len(data)
		want := have + blockSize
		if cap(data) < want {
			data = append(make([]byte, 0, want+want/8), data...)
		}
		n, err := fill(r, data[have:want])
		data = data[:have+n]
		if ended = err == io.EOF; err != nil && !ended {
			return t.unreadable(err)
		}
		end := len(data)
		if !ended {
			if end = t.fields.lastBreak(data); end == 0 && len(data) > mostRecord {
				return located(t.path, "expected lines of less than %d bytes, got a longer one%s", mostRecord, t.fields.quoteHint())
			}
		}
		rest = append(rest[:0], data[end:]...)
		c.data = data[:end]
		select {
		case pending <- c:
		case <-quit:
			return nil
		}
		// The consumer waits for each pending chunk, so this one has to be parsed.
		work <- c
	}
	return nil
}

// numberLines is the number of the line at a position of the text's head.
func numberLines(head []byte) int64 { return int64(bytes.Count(head, []byte("\n"))) }

func quoted(b []byte) string { return "'" + shortened(b) + "'" }

func shortened(b []byte) string {
	s := strings.ToValidUTF8(string(b[:min(len(b), 40)]), "?")
	if len(b) > 40 {
		s += "..."
	}
	return s
}
