#include "textflag.h"

// Asks for the elements of a table at n places, n > 0, which are so many bytes apart; elements are of 1<<shift bytes.
#define ASK(LOAD, hint, shift, bytes) \
	MOVD table+0(FP), R0; \
	MOVD at+8(FP), R1; \
	MOVD n+16(FP), R2; \
next: \
	LOAD bytes(R1), R3; \
	ADD R3<<shift, R0, R3; \
	PRFM (R3), hint; \
	SUBS $1, R2; \
	BNE next; \
	RET

// 32 or 64 bits of an element by those of a place, into the first-level cache.

// func fetch32by32(table, at unsafe.Pointer, n int)
TEXT ·fetch32by32(SB), NOSPLIT, $0-24
	ASK(MOVWU.P, PLDL1KEEP, 2, 4)

// func fetch32by64(table, at unsafe.Pointer, n int)
TEXT ·fetch32by64(SB), NOSPLIT, $0-24
	ASK(MOVD.P, PLDL1KEEP, 2, 8)

// func fetch64by32(table, at unsafe.Pointer, n int)
TEXT ·fetch64by32(SB), NOSPLIT, $0-24
	ASK(MOVWU.P, PLDL1KEEP, 3, 4)

// func fetch64by64(table, at unsafe.Pointer, n int)
TEXT ·fetch64by64(SB), NOSPLIT, $0-24
	ASK(MOVD.P, PLDL1KEEP, 3, 8)

// And into the second-level cache.

// func ahead32by32(table, at unsafe.Pointer, n int)
TEXT ·ahead32by32(SB), NOSPLIT, $0-24
	ASK(MOVWU.P, PLDL2KEEP, 2, 4)

// func ahead32by64(table, at unsafe.Pointer, n int)
TEXT ·ahead32by64(SB), NOSPLIT, $0-24
	ASK(MOVD.P, PLDL2KEEP, 2, 8)

// func ahead64by32(table, at unsafe.Pointer, n int)
TEXT ·ahead64by32(SB), NOSPLIT, $0-24
	ASK(MOVWU.P, PLDL2KEEP, 3, 4)

// func ahead64by64(table, at unsafe.Pointer, n int)
TEXT ·ahead64by64(SB), NOSPLIT, $0-24
	ASK(MOVD.P, PLDL2KEEP, 3, 8)

// func fetchLines(from unsafe.Pointer, bytes int)
TEXT ·fetchLines(SB), NOSPLIT, $0-16
	MOVD from+0(FP), R0
	MOVD bytes+8(FP), R1
	ADD R0, R1
	AND $~63, R0
next:
	PRFM (R0), PLDL1KEEP
	ADD $64, R0
	CMP R1, R0
	BLO next
	RET
