#include "textflag.h"

// Each asks for the elements of a table at n places, n > 0: 32 or 64 bits of an element
// by those of a place.

// func fetch32by32(table, at unsafe.Pointer, n int)
TEXT ·fetch32by32(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVL (SI), AX
	PREFETCHT0 (DI)(AX*4)
	ADDQ $4, SI
	DECQ CX
	JNZ next
	RET

// func fetch32by64(table, at unsafe.Pointer, n int)
TEXT ·fetch32by64(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVQ (SI), AX
	PREFETCHT0 (DI)(AX*4)
	ADDQ $8, SI
	DECQ CX
	JNZ next
	RET

// func fetch64by32(table, at unsafe.Pointer, n int)
TEXT ·fetch64by32(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVL (SI), AX
	PREFETCHT0 (DI)(AX*8)
	ADDQ $4, SI
	DECQ CX
	JNZ next
	RET

// func fetch64by64(table, at unsafe.Pointer, n int)
TEXT ·fetch64by64(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVQ (SI), AX
	PREFETCHT0 (DI)(AX*8)
	ADDQ $8, SI
	DECQ CX
	JNZ next
	RET

// And into the second-level cache.

// func ahead32by32(table, at unsafe.Pointer, n int)
TEXT ·ahead32by32(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVL (SI), AX
	PREFETCHT1 (DI)(AX*4)
	ADDQ $4, SI
	DECQ CX
	JNZ next
	RET

// func ahead32by64(table, at unsafe.Pointer, n int)
TEXT ·ahead32by64(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVQ (SI), AX
	PREFETCHT1 (DI)(AX*4)
	ADDQ $8, SI
	DECQ CX
	JNZ next
	RET

// func ahead64by32(table, at unsafe.Pointer, n int)
TEXT ·ahead64by32(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVL (SI), AX
	PREFETCHT1 (DI)(AX*8)
	ADDQ $4, SI
	DECQ CX
	JNZ next
	RET

// func ahead64by64(table, at unsafe.Pointer, n int)
TEXT ·ahead64by64(SB), NOSPLIT, $0-24
	MOVQ table+0(FP), DI
	MOVQ at+8(FP), SI
	MOVQ n+16(FP), CX
next:
	MOVQ (SI), AX
	PREFETCHT1 (DI)(AX*8)
	ADDQ $8, SI
	DECQ CX
	JNZ next
	RET

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
