package bridge

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
)

// Words of a request, as internal/request/words.go has them.
const (
	wordKind, wordFlags, wordGraph, wordSampler                 = 2, 3, 4, 5
	wordSeeds, wordNumSeeds, wordSeedBits, wordEpoch, wordBatch = 6, 7, 8, 9, 10
	wordExclude, wordNumExclude, wordThreads                    = 11, 12, 13
	wordResult, wordJob, wordStream, wordOut, wordOutBytes      = 14, 15, 16, 17, 18
	wordSorted, wordSeedTimes                                   = 25, 26

	prompt, edgeLists, ownStream = 1, 2, 4
)

// addresses are the words that are addresses: no check can tell a good one from a bad one.
var addresses = []int{wordSeeds, wordExclude, wordStream, wordOut, 24, wordSorted, wordSeedTimes, 27, 32, 34, 45, 48, 49}

// words are those of a request of a size with some words set.
func words(size int, set map[int]int64) []int64 {
	w := make([]int64, size)
	w[0], w[1] = 0x150475352, int64(size)
	for place, value := range set {
		w[place] = value
	}
	return w
}

// submitted is what a request gives: a memory, or a job negated.
func submitted(w []int64) (memOrJob int64, err error) {
	_, err = Submit(address(w), int64(len(w)))
	runtime.KeepAlive(w)
	return w[wordResult] - w[wordJob], err
}

// flagged is what a plain request with flags gives.
func flagged(flags, graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads int64) (memOrJob int64, err error) {
	return submitted(words(16, map[int]int64{
		wordFlags: flags, wordGraph: graph, wordSampler: sampler, wordSeeds: seeds, wordNumSeeds: numSeeds, wordSeedBits: seedBits,
		wordEpoch: epoch, wordBatch: batch, wordExclude: exclude, wordNumExclude: numExclude, wordThreads: threads,
	}))
}

func submit(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads int64) (job int64, err error) {
	return flagged(0, graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads)
}

func sample(graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads int64) (memOrJob int64, err error) {
	return flagged(prompt, graph, sampler, seeds, numSeeds, seedBits, epoch, batch, exclude, numExclude, threads)
}

// deviceWords are those of a request for a batch of seeds on the host.
func deviceWords(flags, graph, sampler, seeds, numSeeds, seedBits, epoch, batch int64) []int64 {
	return words(24, map[int]int64{
		wordFlags: flags, wordGraph: graph, wordSampler: sampler, wordSeeds: seeds, wordNumSeeds: numSeeds, wordSeedBits: seedBits,
		wordEpoch: epoch, wordBatch: batch,
	})
}

// submitMany is the handle of the launch of several batches.
func submitMany(graph, sampler, count, calls, own int64) (launch int64, err error) {
	w := words(24, map[int]int64{wordFlags: own * ownStream, wordGraph: graph, wordSampler: sampler})
	_, err = SubmitMany(address(w), int64(len(w)), calls, count)
	runtime.KeepAlive(w)
	return w[wordJob], err
}

func TestSubmitWritesAMemoryOrAJob(t *testing.T) {
	g, s := newRing(t, 10), newSampler(t, "auto", 2)
	seeds := []int64{3, 4}
	for flags := range int64(2) {
		w := words(16, map[int]int64{wordFlags: flags, wordGraph: g.handle, wordSampler: s, wordSeeds: address(seeds), wordNumSeeds: 2, wordSeedBits: 64})
		if _, err := Submit(address(w), 16); err != nil {
			t.Fatal(err)
		}
		mem, err := w[wordResult], error(nil)
		if (mem != 0) != (flags == prompt) || (w[wordJob] != 0) != (flags == 0) {
			t.Fatalf("flags %d: the memory %#x, job %d", flags, mem, w[wordJob])
		}
		if mem == 0 {
			mem, err = Wait(w[wordJob], -1)
		}
		if err != nil || !slices.Equal(nodes(mem)[:2], seeds) {
			t.Errorf("flags %d: got %v, %v", flags, nodes(mem), err)
		}
		// Words with a result are no request: it would be lost.
		_, err = Submit(address(w), 16)
		fails(t, err, "ValueError: request: expected a request that was not submitted, got one with a result or a job")
	}
	_, err := Submit(0, 16)
	fails(t, err, "ValueError: request: expected 16 to 56 words at an address, got 16 at 0x0")
	_, err = Submit(address(seeds)+4, 16)
	fails(t, err, "")
	runtime.KeepAlive(seeds)
}

// FuzzSubmit: random words are an error or a job, never a crash. Arrays are given that have no elements.
func FuzzSubmit(f *testing.F) {
	g, s := newRing(f, 10), newSampler(f, "auto", 2)
	for _, size := range []int{16, 24, 32, 40, 56} {
		var raw []byte
		for _, w := range words(size, map[int]int64{wordGraph: g.handle, wordSampler: s, wordSeedBits: 64, wordKind: int64(size / 56)}) {
			raw = binary.LittleEndian.AppendUint64(raw, uint64(w))
		}
		f.Add(raw, true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, good bool) {
		w := make([]int64, min(len(raw)/8, 56))
		for i := range w {
			if w[i] = int64(binary.LittleEndian.Uint64(raw[8*i:])); slices.Contains(addresses, i) {
				w[i] = 0
			}
		}
		if len(w) == 0 {
			return
		}
		if good && len(w) >= 16 {
			// With these words the input is a valid request.
			w[0], w[1], w[wordFlags], w[wordResult], w[wordJob] = 0x150475352, int64(len(w))/8*8, w[wordFlags]&63, 0, 0
			w[wordGraph], w[wordSampler] = g.handle, s
		}
		_, err := Submit(address(w), int64(len(w)))
		switch {
		case err != nil && !message.MatchString(err.Error()):
			t.Errorf("got %q", err)
		case err == nil && w[wordJob] != 0:
			_, err = Cancel(w[wordJob])
		}
		if _, again := SubmitMany(address(w), int64(len(w)), 0, 1); again == nil || !message.MatchString(again.Error()) {
			t.Errorf("got %v", again)
		}
		if err != nil && !message.MatchString(err.Error()) {
			t.Errorf("got %q", err)
		}
		runtime.KeepAlive(g)
	})
}
