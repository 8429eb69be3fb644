package request

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
)

func plainWords() []int64 {
	words := make([]int64, SizePlain)
	words[WordSignature], words[WordSize] = RequestSignature, SizePlain
	return words
}

func TestDecodeCountsWordsBeyondTheEndAsZero(t *testing.T) {
	words := append(plainWords(), 1, 2, 3, 4, 5, 6, 7, 8)
	words[WordSeeds], words[WordFlags] = 7, FlagPrompt|FlagKnown
	w, err := Decode(words)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w[:SizePlain], words[:SizePlain]) || slices.Max(w[SizePlain:]) != 0 {
		t.Errorf("got %v of %v", w, words)
	}
	if !w.Has(FlagPrompt) || !w.Has(FlagKnown) || w.Has(FlagOnDevice) {
		t.Errorf("flags %d", w[WordFlags])
	}
}

func TestDecodeRefusesWhatIsNoRequest(t *testing.T) {
	for _, k := range []struct {
		place int
		value int64
		want  string
	}{
		{WordSignature, 0x50475352, "the signature"},
		{WordSize, 17, "16, 24, 32, 40 or 56 words"},
		{WordSize, SizeDevice, "expected 24 words, got 16"},
		{WordKind, 2, "a kind of 0"},
		{WordKind, KindRows, "a kind of 0, or 1 of 56 words"},
		{WordFlags, 64, "flags from 0 to 63"},
		{WordFlags, -1, "flags from 0 to 63"},
		{WordResult, 1, "not submitted"},
		{WordJob, 1, "not submitted"},
	} {
		words := plainWords()
		words[k.place] = k.value
		if _, err := Decode(words); !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: got %v", k, err)
		}
	}
	if _, err := Decode(plainWords()[:SizePlain-1]); !errors.Is(err, ErrValue) {
		t.Errorf("got %v for 15 words", err)
	}
}

// FuzzDecode: random words are an error, or a request that says what they say.
func FuzzDecode(f *testing.F) {
	var seed []byte
	for _, w := range plainWords() {
		seed = binary.LittleEndian.AppendUint64(seed, uint64(w))
	}
	f.Add(seed)
	f.Add(seed[:8])
	f.Fuzz(func(t *testing.T, raw []byte) {
		words := make([]int64, len(raw)/8)
		for i := range words {
			words[i] = int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		w, err := Decode(words)
		if err != nil {
			if !errors.Is(err, ErrValue) {
				t.Fatal(err)
			}
			return
		}
		if size := words[WordSize]; !slices.Equal(w[:size], words[:size]) {
			t.Errorf("got %v of %v", w, words)
		}
	})
}
