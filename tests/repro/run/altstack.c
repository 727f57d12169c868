/*
 * An alternate signal stack of the size in the first argument, and no signal. On hardware a submission delivers none:
 * nothing of the stack is used, and nothing below it is written, whatever its size. Code without unwind tables may
 * trap once; the kernel's frame is then all that is used.
 */
#include "dsa.h"

enum { BELOW = 16384, MARK = 0xee };

static char memory[65536] __attribute__((aligned(4096)));
static char source[256], destination[256];
static struct dsa_completion_record record __attribute__((aligned(32)));

int main(int argc, char **argv)
{
	size_t size = atoi(argv[1]);
	int may_use = argc > 2;
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
	int status = submit_wait(&copy, &record, 5);
	for (size_t i = 0; i < BELOW; i++)
		below += memory[i] != (char)MARK;
	for (size_t i = 0; i < size; i++)
		used += memory[BELOW + i] != (char)MARK;
	printf("status %d, %zu bytes used, %zu written below\n", status, used, below);
	return status != 1 || below || (used && !may_use);
}
