#include "textflag.h"

// Asks for the elements of a table at n places, n > 0, which are so many bytes apart; elements are of scale bytes.
#define ASK(LOAD, PREFETCH, scale, bytes) \
	MOVQ table+0(FP), DI; \
	MOVQ at+8(FP), SI; \
	MOVQ n+16(FP), CX; \
next: \
	LOAD (SI), AX; \
	PREFETCH (DI)(AX*scale); \
	ADDQ $bytes, SI; \
	DECQ CX; \
	JNZ next; \
	RET

// 32 or 64 bits of an element by those of a place, into the first-level cache.

// func fetch32by32(table, at unsafe.Pointer, n int)
TEXT ·fetch32by32(SB), NOSPLIT, $0-24
	ASK(MOVL, PREFETCHT0, 4, 4)

// func fetch32by64(table, at unsafe.Pointer, n int)
TEXT ·fetch32by64(SB), NOSPLIT, $0-24
	ASK(MOVQ, PREFETCHT0, 4, 8)

// func fetch64by32(table, at unsafe.Pointer, n int)
TEXT ·fetch64by32(SB), NOSPLIT, $0-24
	ASK(MOVL, PREFETCHT0, 8, 4)

// func fetch64by64(table, at unsafe.Pointer, n int)
TEXT ·fetch64by64(SB), NOSPLIT, $0-24
	ASK(MOVQ, PREFETCHT0, 8, 8)

// And into the second-level cache.

// func ahead32by32(table, at unsafe.Pointer, n int)
TEXT ·ahead32by32(SB), NOSPLIT, $0-24
	ASK(MOVL, PREFETCHT1, 4, 4)

// func ahead32by64(table, at unsafe.Pointer, n int)
TEXT ·ahead32by64(SB), NOSPLIT, $0-24
	ASK(MOVQ, PREFETCHT1, 4, 8)

// func ahead64by32(table, at unsafe.Pointer, n int)
TEXT ·ahead64by32(SB), NOSPLIT, $0-24
	ASK(MOVL, PREFETCHT1, 8, 4)

// func ahead64by64(table, at unsafe.Pointer, n int)
TEXT ·ahead64by64(SB), NOSPLIT, $0-24
	ASK(MOVQ, PREFETCHT1, 8, 8)

// func fetchLines(from unsafe.Pointer, bytes int)
TEXT ·fetchLines(SB), NOSPLIT, $0-16
	MOVQ from+0(FP), SI
	MOVQ bytes+8(FP), CX
	ADDQ SI, CX
	ANDQ $~63, SI
next:
	PREFETCHT0 (SI)
	ADDQ $64, SI
	CMPQ SI, CX
	JB next
	RET
