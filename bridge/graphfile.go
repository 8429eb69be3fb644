package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

// writers are numbered by Python, which so can give up one that it never got to
// know of: Ctrl-C may come between the making of a file and the caller's name for it.
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

// GraphMapped is GraphNew for the arrays of a graph file, which are not read.
func GraphMapped(indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes int64) (graph int64, err error) {
	defer finish(&err)
	return newGraph(core.NewMappedGraph, indptr, indptrBits, numRows, indices, idBits, numEdges, edgeIDs, edgeIDBits, numNodes)
}

// GraphFileNext is the number of the next writer; nothing stands behind it yet.
func GraphFileNext() (writer int64, err error) {
	defer finish(&err)
	return writers.add(nil), nil
}

// GraphFileCreate makes the temporary file that the JSON describes.
func GraphFileCreate(writer int64, plan string) (zero int64, err error) {
	defer finish(&err)
	if w, ok := writers.get(writer); !ok || w != nil {
		return 0, closed("graph file")
	}
	w, err := core.NewGraphFileWriter(plan)
	if err != nil {
		return 0, err
	}
	if !writers.replace(writer, w) {
		w.Abort()
		return 0, closed("graph file")
	}
	return 0, nil
}

func openWriter(writer int64) (*core.GraphFileWriter, error) {
	w, ok := writers.get(writer)
	if !ok || w == nil {
		return nil, closed("graph file")
	}
	return w, nil
}

// GraphFileWrite puts bytes from an address into a section.
func GraphFileWrite(writer, section, at, address, bytes int64) (zero int64, err error) {
	defer finish(&err)
	w, err := openWriter(writer)
	if err != nil {
		return 0, err
	}
	return 0, w.Write(section, at, address, bytes)
}

// GraphFileCommit completes the file and gives it its name; it waits up to timeoutMS
// milliseconds and returns 1 when that is done, 0 while it goes on.
func GraphFileCommit(writer, timeoutMS int64) (done int64, err error) {
	defer finish(&err)
	w, err := openWriter(writer)
	if err != nil {
		return 0, err
	}
	if finished, err := w.Wait(timeoutMS); err != nil || !finished {
		return 0, err
	}
	return 1, nil
}

// GraphFileAbort removes a file that has not got its name, and forgets the writer.
func GraphFileAbort(writer int64) (zero int64, err error) {
	defer finish(&err)
	if w, ok := writers.take(writer); ok && w != nil {
		w.Abort()
	}
	return 0, nil
}

// abortWriters leaves no temporary file behind at the end of the interpreter.
func abortWriters() {
	writers.Lock()
	defer writers.Unlock()
	for _, w := range writers.items {
		if w != nil {
			w.Abort()
		}
	}
	writers.items = nil
}
