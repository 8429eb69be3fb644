package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

var edgesJobs table[*core.EdgesJob]

// EdgesEnds says, as JSON, which of a table's columns are the ends of edges; the JSON
// has the names of all.
func EdgesEnds(about string) (places string, err error) {
	defer finish(&err)
	ends, err := core.EdgesEnds(about)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(ends)
	return string(text), err
}

// EdgesStart begins to read the file of edges that the JSON describes.
func EdgesStart(plan string) (job int64, err error) {
	defer finish(&err)
	j, err := core.StartEdges(plan)
	if err != nil {
		return 0, err
	}
	return edgesJobs.add(j), nil
}

// EdgesPoll waits up to timeoutMS milliseconds and says, as JSON, how far the job is.
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

// EdgesTake waits for the job's end, forgets the job and returns its memory, or 0
// where the graph is in a file.
func EdgesTake(job int64) (mem int64, err error) {
	defer finish(&err)
	j, ok := edgesJobs.take(job)
	if !ok {
		return 0, closed("job")
	}
	return j.Take()
}

// EdgesCancel ends a job; no file of it is left then.
func EdgesCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := edgesJobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}
