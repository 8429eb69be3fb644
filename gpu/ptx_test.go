package gpu

// ptx is the code of the kernels on a true device; their Args stand in
// real_test.go. mix_24 does nothing.
const ptx = `
.version 7.0
.target sm_70
.address_size 64

.visible .entry add(.param .align 8 .b8 args[24])
{
	.reg .pred %p;
	.reg .b32 %r<9>;
	.reg .b64 %d<6>;
	ld.param.u64 %d1, [args];
	ld.param.u64 %d2, [args+8];
	ld.param.u32 %r1, [args+16];
	ld.param.u32 %r2, [args+20];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r6, %r3, %r4, %r5;
	setp.ge.u32 %p, %r6, %r1;
	@%p bra END;
	mul.wide.u32 %d3, %r6, 4;
	add.s64 %d4, %d2, %d3;
	ld.u32 %r7, [%d4];
	add.u32 %r8, %r7, %r2;
	add.s64 %d5, %d1, %d3;
	st.u32 [%d5], %r8;
END:
	ret;
}

.visible .entry meet(.param .align 8 .b8 args[24])
{
	.reg .pred %p;
	.reg .b32 %r<9>;
	.reg .b64 %d<3>;
	ld.param.u64 %d1, [args];
	ld.param.u64 %d2, [args+8];
	ld.param.u32 %r1, [args+16];
	mov.u32 %r2, %tid.x;
	setp.ne.u32 %p, %r2, 0;
	@%p bra END;
	mov.u32 %r3, %nctaid.x;
	mov.u32 %r4, 0;
ROUND:
	setp.eq.u32 %p, %r1, 0;
	@%p bra END;
	sub.u32 %r1, %r1, 1;
	add.u32 %r4, %r4, %r3;
	membar.gl;
	atom.add.u32 %r5, [%d1], 1;
	mov.u32 %r6, 0;
SPIN:
	ld.volatile.u32 %r7, [%d1];
	setp.ge.u32 %p, %r7, %r4;
	@%p bra ROUND;
	add.u32 %r6, %r6, 1;
	setp.lt.u32 %p, %r6, 10000000;
	@%p bra SPIN;
	atom.add.u32 %r8, [%d2], 1;
END:
	ret;
}

.visible .entry spin(.param .align 8 .b8 args[24])
{
	.reg .pred %p;
	.reg .b32 %r<2>;
	.reg .b64 %d<6>;
	ld.param.u64 %d1, [args];
	ld.param.u64 %d2, [args+8];
	ld.param.u32 %r1, [args+16];
	mov.u64 %d3, %globaltimer;
AGAIN:
	mov.u64 %d4, %globaltimer;
	sub.u64 %d5, %d4, %d3;
	setp.lt.u64 %p, %d5, %d2;
	@%p bra AGAIN;
	st.u32 [%d1], %r1;
	ret;
}

.visible .entry mix_24(.param .align 8 .b8 args[24])
{
	ret;
}
`
