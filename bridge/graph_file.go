package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

var writers table[*core.GraphFileWriter]

// GraphFileHeader checks the graph file behind a descriptor and describes it as JSON.
func GraphFileHeader(fd int64, path string) (description string, err error) {
	defer finish(&err)
	return core.GraphFileHeader(fd, path)
}

// GraphFileChecksum continues the CRC-32C of a section over mapped bytes.
func GraphFileChecksum(before, address, bytes int64) (sum int64, err error) {
	defer finish(&err)
	return core.GraphFileChecksum(before, address, bytes)
}

// GraphFileCreate creates the temporary file that the JSON describes.
func GraphFileCreate(plan string) (writer int64, err error) {
	defer finish(&err)
	w, err := core.NewGraphFileWriter(plan)
	if err != nil {
		return 0, err
	}
	return writers.add(w), nil
}

// GraphFileWrite writes bytes from an address to a section.
func GraphFileWrite(writer, section, at, address, bytes int64) (zero int64, err error) {
	defer finish(&err)
	w, ok := writers.get(writer)
	if !ok {
		return 0, closed("graph file")
	}
	return 0, w.Write(section, at, address, bytes)
}

// GraphFileCommit completes the file and gives it its final name. It waits up to timeoutMS
// milliseconds and returns 1 at the end, 0 before.
func GraphFileCommit(writer, timeoutMS int64) (done int64, err error) {
	defer finish(&err)
	w, ok := writers.get(writer)
	if !ok {
		return 0, closed("graph file")
	}
	if finished, err := w.Wait(timeoutMS); err != nil || !finished {
		return 0, err
	}
	return 1, nil
}

// GraphFileAbort removes a file that does not have its final name yet, and forgets the writer.
func GraphFileAbort(writer int64) (zero int64, err error) {
	defer finish(&err)
	if w, ok := writers.take(writer); ok {
		w.Abort()
	}
	return 0, nil
}

// abortWriters removes all temporary files at the end of the interpreter.
func abortWriters() {
	writers.Lock()
	defer writers.Unlock()
	for _, w := range writers.items {
		w.Abort()
	}
	writers.items = nil
}
