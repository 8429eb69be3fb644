package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// edgesJobs are numbered by Python, as writers are, so that Ctrl-C between start and
// the caller's name for the job loses none.
var edgesJobs table[*core.EdgesJob]

// EdgesNext is the number of the next job; nothing stands behind it yet.
func EdgesNext() (job int64, err error) {
	defer finish(&err)
	return edgesJobs.add(nil), nil
}

// EdgesStart begins to read the file of edges that the JSON describes.
func EdgesStart(job int64, plan string) (zero int64, err error) {
	defer finish(&err)
	if j, ok := edgesJobs.get(job); !ok || j != nil {
		return 0, closed("job")
	}
	j, err := core.StartEdges(plan)
	if err != nil {
		return 0, err
	}
	if !edgesJobs.replace(job, j) {
		j.Cancel()
		return 0, closed("job")
	}
	return 0, nil
}

// EdgesPoll waits up to timeoutMS milliseconds and says, as JSON, how far the job is.
// When it is finished the job is forgotten, and its memory is the caller's.
func EdgesPoll(job, timeoutMS int64) (state string, err error) {
	defer finish(&err)
	j, ok := edgesJobs.get(job)
	if !ok || j == nil {
		return "", closed("job")
	}
	s, err := j.Poll(timeoutMS)
	if s.Finished {
		if _, mine := edgesJobs.take(job); !mine {
			return "", closed("job")
		}
	}
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(s)
	return string(text), err
}

// EdgesCancel ends a job; no file of it is left then.
func EdgesCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := edgesJobs.take(job); ok && j != nil {
		j.Cancel()
	}
	return 0, nil
}
