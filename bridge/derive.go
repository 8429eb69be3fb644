package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

var derivedJobs table[*core.DeriveJob]

// DeriveStart begins to derive something of a graph: kind says what, name and dtype are those of the array that it reads
// ("" without one), and the numbers of each kind are at the address words, as core.StartDerivation says.
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

// DerivePoll waits up to timeoutMS milliseconds and says how many parts of 2^30 are
// done, -1 when all are.
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

// DeriveCancel ends a job; nothing is read for it then.
func DeriveCancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := derivedJobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}

// GraphAscends is 1 where the neighbors of each row ascend, else 0.
func GraphAscends(graph int64) (yes int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return number(g.Ascends())
}

// GraphEqualRows is 1 where two graphs have the same rows, else 0.
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
