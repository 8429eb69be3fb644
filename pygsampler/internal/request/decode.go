package request

import "fmt"

// Words are the words of a packed request by the constants of words.go.
type Words [SizeRows]int64

// allFlags has every flag.
const allFlags = 2*FlagFloatTimes - 1

// Decode copies the words of a request, and returns an error for malformed words.
func Decode(words []int64) (w Words, err error) {
	if len(words) < SizePlain {
		return w, fmt.Errorf("%w: request: expected at least %d words, got %d", ErrValue, SizePlain, len(words))
	}
	if got := words[WordSignature]; got != RequestSignature {
		return w, fmt.Errorf("%w: request: expected the signature %#x, got %#x; are all files of one version?", ErrValue, int64(RequestSignature), got)
	}
	size := words[WordSize]
	switch size {
	case SizePlain, SizeDevice, SizeHetero, SizePartition, SizeRows:
	default:
		return w, fmt.Errorf("%w: request: expected 16, 24, 32, 40 or 56 words, got %d", ErrValue, size)
	}
	if size > int64(len(words)) {
		return w, fmt.Errorf("%w: request: expected %d words, got %d", ErrValue, size, len(words))
	}
	if kind := words[WordKind]; kind != KindSample && kind != KindRows || kind == KindRows && size != SizeRows {
		return w, fmt.Errorf("%w: request: expected a kind of 0, or 1 of %d words, got %d of %d words", ErrValue, SizeRows, kind, size)
	}
	if flags := words[WordFlags]; flags&^allFlags != 0 {
		return w, fmt.Errorf("%w: request: expected flags from 0 to %d, got %d", ErrValue, allFlags, flags)
	}
	if words[WordResult] != 0 || words[WordJob] != 0 {
		return w, fmt.Errorf("%w: request: expected a request that was not submitted, got one with a result or a job", ErrValue)
	}
	copy(w[:], words[:size])
	return w, nil
}

// Has reports whether the request has a flag.
func (w *Words) Has(flag int64) bool { return w[WordFlags]&flag != 0 }
