/* Copies between blocks of the heap, all of whose bytes are looked at: no memory checker has anything to say. */
#include "dsa.h"

enum { BYTES = 65536 };

int main(void)
{
	int bad = 0;

	if (wq_open())
		return 2;
	for (int i = 0; i < 20; i++) {
		char *source = malloc(BYTES), *destination = malloc(BYTES);
		struct dsa_completion_record *record = aligned_alloc(32, 32);
		struct dsa_hw_desc d = { 0 };

		memset(source, i, BYTES);
		/* The pages are there; the bytes are for the device to define. */
		for (int at = 0; at < BYTES; at += 2048)
			((volatile char *)destination)[at] = 0;
		((volatile char *)destination)[BYTES - 1] = 0;
		d.opcode = DSA_OPCODE_MEMMOVE;
		d.src_addr = (uintptr_t)source;
		d.dst_addr = (uintptr_t)destination;
		d.xfer_size = BYTES;
		bad += submit_wait(&d, record, 5) != 1;
		for (int at = 0; at < BYTES; at++)
			if (destination[at] != i) {
				bad++;
				break;
			}
		free(source);
		free(destination);
		free(record);
	}
	printf("%d bad\n", bad);
	return bad != 0;
}
