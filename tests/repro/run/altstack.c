/*
 * An alternate signal stack of the size in the first argument, and no signal. On hardware submissions and waits deliver none:
 * nothing of the stack is used, and nothing below it is written, whatever its size. Code without unwind tables may
 * trap once; the kernel's frame is then all that is used. With `later` the code that submits is made when the portal has
 * been mapped.
 */
#include "dsa.h"

enum { BELOW = 16384, MARK = 0xee };

static char memory[65536] __attribute__((aligned(4096)));
static char source[256], destination[256];
static struct dsa_completion_record record __attribute__((aligned(32)));

int main(int argc, char **argv)
{
	size_t size = atoi(argv[1]);
	int may_use = argc > 2 && !strcmp(argv[2], "traps");
	int later = argc > 2 && !strcmp(argv[argc - 1], "later");
	stack_t stack = { .ss_sp = memory + BELOW, .ss_size = size };
	struct dsa_hw_desc copy = { 0 };
	size_t below = 0, used = 0;

	memset(memory, MARK, sizeof memory);
	if (wq_open() || sigaltstack(&stack, NULL))
		return 2;
	memset(source, 7, sizeof source);
	destination[0] = 0;
	copy.opcode = DSA_OPCODE_MEMMOVE;
	copy.src_addr = (uintptr_t)source;
	copy.dst_addr = (uintptr_t)destination;
	copy.xfer_size = sizeof source;
	int status;
	if (later) {
		/* enqcmd rdi, [rsi]; setz al; movzx eax, al; ret */
		static const unsigned char code[] = { 0xf2, 0x0f, 0x38, 0xf8, 0x3e, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3 };
		char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		int (*submit)(volatile void *, const void *);

		if (page == MAP_FAILED)
			return 2;
		memcpy(page, code, sizeof code);
		memcpy(&submit, &page, sizeof page);
		copy.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
		copy.completion_addr = (uintptr_t)&record;
		while (submit(portal, &copy))
			;
		while (!*(volatile uint8_t *)&record.status)
			;
		status = record.status;
	} else {
		status = submit_wait(&copy, &record, 5);
	}
	/* Without an armed line the wait ends at once; the other ones by their deadline, which has passed, or before. */
	__asm__ volatile(".byte 0xf3, 0x0f, 0xae, 0xf0" ::"a"(&record)); /* umonitor rax */
	__asm__ volatile(".byte 0xf2, 0x0f, 0xae, 0xf1" ::"c"(0), "a"(0), "d"(0) : "cc"); /* umwait ecx */
	__asm__ volatile("xor %%r8d, %%r8d\n\t.byte 0x66, 0x41, 0x0f, 0xae, 0xf0" ::"a"(0), "d"(0) : "cc", "r8"); /* tpause r8d */
	for (size_t i = 0; i < BELOW; i++)
		below += memory[i] != (char)MARK;
	for (size_t i = 0; i < size; i++)
		used += memory[BELOW + i] != (char)MARK;
	printf("status %d, %zu bytes used, %zu written below\n", status, used, below);
	return status != 1 || below || (used && !may_use);
}
