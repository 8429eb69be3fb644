package rng

import "testing"

// The known answers of Random123's kat_vectors for philox4x32 with ten rounds.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ff = 0xffffffff
	for _, k := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ff, ff, ff, ff}, [2]uint32{ff, ff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Philox4x32(k.counter, k.key); got != k.want {
			t.Errorf("Philox4x32(%x, %x) = %x, want %x", k.counter, k.key, got, k.want)
		}
	}
}

// counterOf is the layout that the contract gives, written from its text.
func counterOf(v uint64, hop uint8, purpose Purpose, batch uint64, epoch uint32) [4]uint32 {
	return [4]uint32{
		uint32(v),
		uint32(v>>32)&0xffff | uint32(hop)<<16 | uint32(purpose)<<24,
		uint32(batch),
		uint32(batch>>32)&0xff | epoch<<8,
	}
}

// State is Philox4x32 of the packed counter, for the extremes of every field and
// for many random ones.
func TestStateIsPhilox(t *testing.T) {
	check := func(seed uint64, epoch uint32, batch uint64, hop uint8, purpose Purpose, v uint64) {
		t.Helper()
		block := Philox4x32(counterOf(v, hop, purpose, batch, epoch), [2]uint32{uint32(seed), uint32(seed >> 32)})
		want := uint64(block[0]) | uint64(block[1])<<32
		if got := NewStream(seed, epoch, batch, hop, purpose).State(v); got != want {
			t.Fatalf("seed %x epoch %x batch %x hop %x purpose %d vertex %x: got %x, want %x",
				seed, epoch, batch, hop, purpose, v, got, want)
		}
	}
	for _, seed := range []uint64{0, 1, 1<<32 - 1, 1 << 32, 1 << 63, 1<<64 - 1} {
		for _, epoch := range []uint32{0, 1, MaxEpoch} {
			for _, batch := range []uint64{0, 1, 1<<32 - 1, 1 << 32, MaxBatch} {
				for _, hop := range []uint8{0, 1, MaxHops - 1} {
					for _, purpose := range []Purpose{Neighbors, Shuffling, 255} {
						for _, v := range []uint64{0, 1, 1<<32 - 1, 1 << 32, MaxVertex} {
							check(seed, epoch, batch, hop, purpose, v)
						}
					}
				}
			}
		}
	}
	r := uint64(1)
	next := func() uint64 { r += golden; return Mix(r) }
	for range 20000 {
		check(next(), uint32(next())&MaxEpoch, next()&MaxBatch, uint8(next()), Purpose(next()), next()&MaxVertex)
	}
}

// No two settings of the fields share a counter: each bit of each field has a bit
// of its own.
func TestFieldsDoNotOverlap(t *testing.T) {
	seen := map[Stream]string{}
	note := func(s Stream, v uint64, what string) {
		t.Helper()
		// The vertex enters in State; fold it in as the layout says.
		s.c1 |= uint32(v >> 32)
		s.k0 ^= uint32(v) // seed 0, so the key's word can stand for counter word 0
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s share a counter", what, other)
		}
		seen[s] = what
	}
	note(NewStream(0, 0, 0, 0, 0), 0, "zero")
	for b := range 24 {
		note(NewStream(0, 1<<b, 0, 0, 0), 0, "epoch")
	}
	for b := range 40 {
		note(NewStream(0, 0, 1<<b, 0, 0), 0, "batch")
	}
	for b := range 8 {
		note(NewStream(0, 0, 0, 1<<b, 0), 0, "hop")
		note(NewStream(0, 0, 0, 0, 1<<b), 0, "purpose")
	}
	for b := range 48 {
		note(NewStream(0, 0, 0, 0, 0), 1<<b, "vertex")
	}
}
