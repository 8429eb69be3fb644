package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

var edgesJobs table[*core.EdgesJob]

// EdgesEnds returns, as JSON, the columns of a table that hold the sources and the targets of
// edges. about is JSON with the names of all columns.
func EdgesEnds(about string) (places string, err error) {
	defer finish(&err)
	ends, err := core.EdgesEnds(about)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(ends)
	return string(text), err
}

// EdgesStart starts to read the edge file that the JSON describes.
func EdgesStart(plan string) (job int64, err error) {
	defer finish(&err)
	j, err := core.StartEdges(plan)
	if err != nil {
		return 0, err
	}
	return edgesJobs.add(j), nil
}

// EdgesPoll waits up to timeoutMS milliseconds and returns the progress of the job as JSON.
func EdgesPoll(job, timeoutMS int64) (state string, err error) {
	defer finish(&err)
	j, ok := edgesJobs.get(job)
	if !ok {
		return "", closed("job")
	}
	s, err := j.Poll(timeoutMS)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(s)
	return string(text), err
}

// EdgesTake waits for the end of the job, forgets the job and returns its memory, or 0 if the graph
// is in a file.
func EdgesTake(job int64) (mem int64, err error) {
	defer finish(&err)
	j, ok := edgesJobs.take(job)
	if !ok {
		return 0, closed("job")
	}
	return j.Take()
}

// EdgesCancel ends a job and removes its files.
func EdgesCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := edgesJobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}
