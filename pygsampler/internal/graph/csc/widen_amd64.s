#include "textflag.h"

// func widen32(to *float64, from *float32, n int)
TEXT ·widen32(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
	SUBQ $8, CX
	JLT  few
eight:
	CVTPS2PD (SI), X0
	CVTPS2PD 8(SI), X1
	CVTPS2PD 16(SI), X2
	CVTPS2PD 24(SI), X3
	MOVUPS X0, (DI)
	MOVUPS X1, 16(DI)
	MOVUPS X2, 32(DI)
	MOVUPS X3, 48(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $8, CX
	JGE  eight
few:
	ADDQ $8, CX
	JZ   done
one:
	XORPS X0, X0
	CVTSS2SD (SI), X0
	MOVSD X0, (DI)
	ADDQ $4, SI
	ADDQ $8, DI
	DECQ CX
	JNZ  one
done:
	RET
