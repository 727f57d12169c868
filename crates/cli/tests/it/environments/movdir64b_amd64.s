#include "textflag.h"

// func movdir64b(portal uintptr, work uintptr)
TEXT ·movdir64b(SB), NOSPLIT, $0-16
	MOVQ portal+0(FP), DI
	MOVQ work+8(FP), SI
	SFENCE
	BYTE $0x66; BYTE $0x0f; BYTE $0x38; BYTE $0xf8; BYTE $0x3e // MOVDIR64B (SI), DI
	RET
