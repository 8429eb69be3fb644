package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// Submit starts the request of size words at an address, and writes into the request the address of
// the memory, if it is complete, or else the handle of the job.
func Submit(address, size int64) (zero int64, err error) {
	defer finish(&err)
	r, err := core.Unpack(address, size)
	if err != nil {
		return 0, err
	}
	g, o, err := open(r.Graph, r.Sampler)
	if err != nil {
		return 0, err
	}
	j, err := core.Submit(g, o, &r.Request)
	if err != nil {
		return 0, err
	}
	return 0, r.Answer(j, func(j core.Job) int64 { return jobs.add(j) })
}

// SubmitMany starts several batches on a device together, as core.SubmitMany does, and writes the
// handle of their launch into the request.
func SubmitMany(address, size, calls, count int64) (zero int64, err error) {
	defer finish(&err)
	r, err := core.Unpack(address, size)
	if err != nil {
		return 0, err
	}
	g, o, err := open(r.Graph, r.Sampler)
	if err != nil {
		return 0, err
	}
	l, err := core.SubmitMany(g, o, r.Request, calls, count)
	if err != nil {
		return 0, err
	}
	r.AnswerJob(jobs.add(l))
	return 0, nil
}

// mine takes a job that has ended out of the table.
func mine(job int64) error {
	if _, mine := jobs.take(job); !mine {
		// Another thread took the result, or cancelled, while this one waited.
		return closed("job")
	}
	return nil
}

// Wait waits up to timeoutMS milliseconds (-1: without limit). It returns the memory of the job, 0
// while the job is running, or minus the number of bytes that the Out of the request would have
// needed.
func Wait(job, timeoutMS int64) (mem int64, err error) {
	defer finish(&err)
	return wait(job, timeoutMS)
}

func wait(job, timeoutMS int64) (mem int64, err error) {
	j, err := itemOf[core.Job](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	address, finished, err := j.Wait(timeoutMS)
	if !finished {
		return 0, nil
	}
	if err := mine(job); err != nil {
		return 0, err
	}
	return address, err
}

// WaitMany waits, like Wait, for all batches of a launch and writes their memories to addresses. It
// then returns 1; it returns 0 while they are running, and minus the position of the first failed
// batch, counted from 1. After a failure the launch remains for JobFault.
func WaitMany(launch, timeoutMS, addresses int64) (done int64, err error) {
	defer finish(&err)
	l, err := itemOf[*core.DeviceLaunch](&jobs, launch, "job")
	if err != nil {
		return 0, err
	}
	if addresses == 0 {
		return 0, core.Errorf(core.KindValue, "addresses: expected an address, got 0")
	}
	failed, finished := l.Wait(timeoutMS)
	switch {
	case !finished:
		return 0, nil
	case l.Err(failed) != nil:
		return -int64(failed) - 1, nil
	}
	if err := mine(launch); err != nil {
		return 0, err
	}
	l.Take(addresses)
	return 1, nil
}

// WaitWords waits, like Wait, for a batch, or for all batches of a launch, in the memory of the
// caller, so that nothing remains to be released. It writes the words that describe each batch to
// an address, one batch after another, ends the job, and returns 1. If a batch does not fit, it
// returns minus the number of bytes that suffice; the words of such a batch in a launch have no
// signature and hold the sufficient capacity. If batches of a launch have failed, it returns the
// error of the first, whose words are then zeros; the batches before it are valid.
func WaitWords(job, timeoutMS, count, words int64) (done int64, err error) {
	defer finish(&err)
	if err := room(count, words); err != nil {
		return 0, err
	}
	l, err := itemOf[*core.DeviceLaunch](&jobs, job, "job")
	if err != nil {
		mem, err := wait(job, timeoutMS)
		if err == nil && mem > 0 {
			core.TakeWords(mem, count, words)
			mem = 1
		}
		return mem, err
	}
	failed, finished := l.Wait(timeoutMS)
	if !finished {
		return 0, nil
	}
	if err := mine(job); err != nil {
		return 0, err
	}
	l.TakeWords(count, words)
	return 1, l.Err(failed)
}

// room returns an error unless there is an address for some words. It is called before a batch is
// taken, which could not be released afterwards.
func room(count, words int64) error {
	if words == 0 || count < 1 {
		return core.Errorf(core.KindValue, "words: expected an address for some, got %#x for %d", words, count)
	}
	return nil
}

// JobFault ends a launch with a failed batch and returns the error of that batch.
func JobFault(launch, place int64) (zero int64, err error) {
	defer finish(&err)
	l, err := itemOf[*core.DeviceLaunch](&jobs, launch, "job")
	if err != nil {
		return 0, err
	}
	if err := mine(launch); err != nil {
		return 0, err
	}
	l.Cancel()
	return 0, l.Err(int(place))
}

// JobSpan waits like Wait and leaves the job unchanged: it writes the times when the work of the
// job began and ended, in nanoseconds of CLOCK_MONOTONIC, to an address, and returns 1.
func JobSpan(job, timeoutMS, address int64) (done int64, err error) {
	defer finish(&err)
	if err := room(2, address); err != nil {
		return 0, err
	}
	j, err := itemOf[core.Job](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	if finished, err := j.Span(timeoutMS, address); !finished || err != nil {
		return 0, err
	}
	return 1, nil
}

// Cancel ends a job; it returns once the job reads no memory of the graph.
func Cancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := jobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}

// JobAsks waits up to timeoutMS milliseconds (-1: without limit) for a question of a job on a
// partitioned graph, as core.HostJob.NextRequest does.
func JobAsks(job, timeoutMS, address, room int64) (state int64, err error) {
	defer finish(&err)
	j, err := itemOf[*core.HostJob](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	return j.NextRequest(timeoutMS, address, room)
}

// JobAnswer answers a question, as core.HostJob.Answer does.
func JobAnswer(job, answers, count int64) (zero int64, err error) {
	defer finish(&err)
	j, err := itemOf[*core.HostJob](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	return 0, j.Answer(answers, count)
}

// JobFail ends a job that will not get its rows.
func JobFail(job int64, why string) (zero int64, err error) {
	defer finish(&err)
	j, err := itemOf[*core.HostJob](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	return 0, j.Fail(why)
}
