package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

var derivedJobs table[*core.DeriveJob]

// DeriveStart starts to derive data from a graph. kind selects the data, name and dtype belong to
// the array that is read (empty without one), and the numbers for each kind are at the address
// words, as in core.StartDerivation.
func DeriveStart(graph int64, kind, name, dtype string, words int64) (job int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	j, err := core.StartDerivation(g, kind, name, dtype, words)
	if err != nil {
		return 0, err
	}
	return derivedJobs.add(j), nil
}

// DerivePoll waits up to timeoutMS milliseconds and returns the progress in units of 2^-30, or -1
// at the end.
func DerivePoll(job, timeoutMS int64) (parts int64, err error) {
	defer finish(&err)
	j, ok := derivedJobs.get(job)
	if !ok {
		return 0, closed("job")
	}
	done, total, finished := j.Poll(timeoutMS)
	if finished {
		return -1, nil
	}
	return int64(float64(done) / float64(max(total, 1)) * (1 << 30)), nil
}

// DeriveTake waits for the job's end, forgets the job and returns its memory.
func DeriveTake(job int64) (mem int64, err error) {
	defer finish(&err)
	j, ok := derivedJobs.take(job)
	if !ok {
		return 0, closed("job")
	}
	return j.Take()
}

// DeriveCancel ends a job; the job reads nothing afterwards.
func DeriveCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := derivedJobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}

// GraphAscends returns 1 if the neighbors of each row are in ascending order, else 0.
func GraphAscends(graph int64) (yes int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return number(g.Ascends())
}

// GraphEqualRows returns 1 if two graphs have the same rows, else 0.
func GraphEqualRows(graph, other int64) (yes int64, err error) {
	defer finish(&err)
	a, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	b, err := relationOf(other)
	if err != nil {
		return 0, err
	}
	return number(a.HasRowsOf(b))
}

// number is 1 for yes.
func number(yes bool, err error) (int64, error) {
	if yes {
		return 1, err
	}
	return 0, err
}
