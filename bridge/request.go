package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// Submit begins what the request at an address asks for, of so many words, and writes into it the address of the
// memory, which is complete, or the handle of the job.
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

// SubmitMany begins several batches on a device together, as core.SubmitMany says, and writes the handle of their
// launch into the request.
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

// Wait waits up to timeoutMS milliseconds (-1: without end). It returns the job's memory, 0 while the job is running,
// or minus the bytes that the request's Out would have needed.
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

// WaitMany waits as Wait for all batches of a launch, and writes their memories to addresses. It returns 1 then, 0
// while they are running, and minus the place of the first that failed, counted from 1: the launch stays for JobFault.
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

// WaitWords waits as Wait for a batch, or for all of a launch, in a caller's memory, of which nothing is left to
// release: it writes the words that describe each, so many, to an address, one batch behind the other, ends the job,
// and returns 1. Where a batch does not fit it returns minus the bytes that would do; of a launch the words of that
// batch have no signature, and say what capacity would do. Where batches of a launch have failed it returns the error of
// the first, whose words are zeros then; those before it are good.
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

// room is an error unless there is an address for some words. It is asked before a batch
// is taken, which nobody could release afterwards.
func room(count, words int64) error {
	if words == 0 || count < 1 {
		return core.Errorf(core.KindValue, "words: expected an address for some, got %#x for %d", words, count)
	}
	return nil
}

// JobFault ends a launch of which a batch has failed, and is the error of that one.
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

// JobSpan waits as Wait does, and leaves the job as it is: it writes when the work on it
// began and ended, in nanoseconds of CLOCK_MONOTONIC, to an address, and returns 1.
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

// Cancel ends a job; it returns once no memory of the graph is read for it.
func Cancel(job int64) (zero int64, err error) {
	defer finish(&err)
	if j, ok := jobs.take(job); ok {
		j.Cancel()
	}
	return 0, nil
}

// JobAsks waits up to timeoutMS milliseconds (-1: without end) for a question of a job of a partitioned graph, as
// core.HostJob.NextRequest says.
func JobAsks(job, timeoutMS, address, room int64) (state int64, err error) {
	defer finish(&err)
	j, err := itemOf[*core.HostJob](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	return j.NextRequest(timeoutMS, address, room)
}

// JobAnswer answers a question, as core.HostJob.Answer says.
func JobAnswer(job, answers, count int64) (zero int64, err error) {
	defer finish(&err)
	j, err := itemOf[*core.HostJob](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	return 0, j.Answer(answers, count)
}

// JobFail ends a job whose rows nobody will bring.
func JobFail(job int64, why string) (zero int64, err error) {
	defer finish(&err)
	j, err := itemOf[*core.HostJob](&jobs, job, "job")
	if err != nil {
		return 0, err
	}
	return 0, j.Fail(why)
}
