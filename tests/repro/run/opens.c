/* A thousand portals of one queue in one process, each of which submits; a shared queue has no limit. */
#include "dsa.h"
#include <sys/resource.h>

enum { PORTALS = 1000 };

static char source[64], destination[64];
static struct dsa_completion_record record __attribute__((aligned(32)));

static int copy(volatile char *at, int i)
{
	struct dsa_hw_desc d = { 0 };

	portal = at;
	memset(source, i, sizeof source);
	memset(destination, ~i, sizeof destination);
	d.opcode = DSA_OPCODE_MEMMOVE;
	d.src_addr = (uintptr_t)source;
	d.dst_addr = (uintptr_t)destination;
	d.xfer_size = sizeof source;
	return submit_wait(&d, &record, 5) != 1 || memcmp(source, destination, sizeof source);
}

int main(void)
{
	static volatile char *portals[PORTALS];
	struct rlimit files = { 4096, 4096 };
	int bad = 0;

	setrlimit(RLIMIT_NOFILE, &files);
	for (int i = 0; i < PORTALS; i++) {
		if (wq_open())
			return 2;
		portals[i] = portal;
	}
	for (int i = 0; i < PORTALS; i++)
		bad += copy(portals[i], i);
	for (int i = 0; i < PORTALS; i += 2)
		munmap((void *)portals[i], 4096);
	for (int i = 1; i < PORTALS; i += 2)
		bad += copy(portals[i], i);
	printf("%d bad\n", bad);
	return bad != 0;
}
