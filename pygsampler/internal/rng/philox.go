// Package rng holds the counter-based random numbers of the sampler.
//
// A sample is a pure function of (seed, epoch, batch, hop, node): each row (a node at a hop of a
// batch) gets one 64-bit state from one Philox4x32-10 call, and draw j of the row is SplitMix64's
// finalizer of that state advanced j+1 times. No state advances between calls, so threads, workers
// and backends cannot disagree.
package rng

// Philox4x32 is the ten-round block function: 128 bits of counter and 64 bits
// of key give 128 random bits.
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for range philoxRounds {
		p0 := uint64(c0) * philoxM0
		p1 := uint64(c2) * philoxM1
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += philoxW0
		k1 += philoxW1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Stream gives the states of all rows of one hop of one batch. The zero value is
// the stream of seed, epoch, batch, hop and purpose 0. It is read-only after
// NewStream, so any number of goroutines may share it.
type Stream struct {
	k0, k1     uint32
	c1, c2, c3 uint32
}

// NewStream packs the fields into Philox's key and counter: key = seed; counter
// word 1 = node bits 32..47 | hop << 16 | purpose << 24, word 2 = batch low 32
// bits, word 3 = batch bits 32..39 | epoch << 8.
func NewStream(seed uint64, epoch uint32, batch uint64, hop uint8, purpose Purpose) Stream {
	return Stream{
		k0: uint32(seed), k1: uint32(seed >> 32),
		c1: uint32(hop)<<hopShift | uint32(purpose)<<purposeShift,
		c2: uint32(batch),
		c3: uint32(batch>>32)&0xFF | epoch<<8,
	}
}

// Words returns the common words of all hops of a batch: the key, and counter words 2 and 3. A
// kernel derives each hop's stream from them.
func (s Stream) Words() [4]uint32 { return [4]uint32{s.k0, s.k1, s.c2, s.c3} }

// State returns the 64-bit state of node v's row: the first two words of the block. It is
// Philox4x32 unrolled by hand, since every row calls it once and the compiler does not unroll the
// loop.
func (s Stream) State(v uint64) uint64 {
	c0, c1, c2, c3 := v&0xFFFFFFFF, uint64(s.c1)|v>>32&0xFFFF, uint64(s.c2), uint64(s.c3)
	k0, k1 := uint64(s.k0), uint64(s.k1)
	// Counters are 32-bit values in 64-bit words; keys keep their carry above bit
	// 31, which the mask drops.
	p0, p1 := c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^k0)&low, p1&low, (p0>>32^c3^k1)&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^(k0+1*philoxW0))&low, p1&low, (p0>>32^c3^(k1+1*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^(k0+2*philoxW0))&low, p1&low, (p0>>32^c3^(k1+2*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^(k0+3*philoxW0))&low, p1&low, (p0>>32^c3^(k1+3*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^(k0+4*philoxW0))&low, p1&low, (p0>>32^c3^(k1+4*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^(k0+5*philoxW0))&low, p1&low, (p0>>32^c3^(k1+5*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c1, c2, c3 = (p1>>32^c1^(k0+6*philoxW0))&low, p1&low, (p0>>32^c3^(k1+6*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c0, c2, c3 = (p1>>32^c1^(k0+7*philoxW0))&low, (p0>>32^c3^(k1+7*philoxW1))&low, p0&low
	p0, p1 = c0*philoxM0, c2*philoxM1
	c1, c2 = p1&low, (p0>>32^c3^(k1+8*philoxW1))&low
	p1 = c2 * philoxM1
	c0, c1 = (p1>>32^c1^(k0+9*philoxW0))&low, p1&low
	return c0 | c1<<32
}

const low = 1<<32 - 1
