package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

var tablesJobs table[*core.TablesJob]

// TablesStart begins to make what the rows of a graph draw by, of an array at an address
// with a value for each edge id.
func TablesStart(graph int64, name, dtype string, address, length, mask int64) (job int64, err error) {
	defer finish(&err)
	g, ok := graphs.get(graph)
	if !ok {
		return 0, closed("graph")
	}
	j, err := core.StartTables(g, name, dtype, address, length, mask != 0)
	if err != nil {
		return 0, err
	}
	return tablesJobs.add(j), nil
}

// TablesPoll waits up to timeoutMS milliseconds and says how many parts of 2^30 are
// done, -1 when all are.
func TablesPoll(job, timeoutMS int64) (parts int64, err error) {
	defer finish(&err)
	j, ok := tablesJobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	done, total, finished := j.Poll(timeoutMS)
	if finished {
		return -1, nil
	}
	return int64(float64(done) / float64(max(total, 1)) * (1 << 30)), nil
}

// TablesTake waits for the job's end, forgets the job and returns its memory.
func TablesTake(job int64) (mem int64, err error) {
	defer finish(&err)
	j, ok := tablesJobs.take(job)
	if !ok {
		return 0, closed("job")
	}
	return j.Take()
}

// TablesCancel ends a job; nothing is read for it then.
func TablesCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := tablesJobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}
