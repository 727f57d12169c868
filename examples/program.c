/* Copies 4 KiB with a DSA: program [NODE], by default /dev/dsa/wq0.0.
 *
 *   cc -O2 -o program program.c
 *   dray run --profile 4e1w-s -- ./program
 *
 * A shared queue takes the descriptor by ENQCMD and answers; a dedicated one takes it by MOVDIR64B.
 * Both are spelled in bytes for older assemblers. */

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { MEMMOVE = 3, COMPLETION_VALID = 1 << 2, REQUEST_COMPLETION = 1 << 3, SIZE = 4096 };

struct descriptor {
	uint32_t pasid, flags_operation;
	uint64_t completion, source, destination;
	uint32_t size;
	uint8_t rest[28];
} __attribute__((aligned(64)));

struct record {
	volatile uint8_t status;
	uint8_t rest[31];
} __attribute__((aligned(32)));

static void movdir64b(volatile void *portal, const void *work)
{
	__asm__ volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x3e" ::"D"(portal), "S"(work) : "memory");
}

/* Whether the queue is full. */
static int enqcmd(volatile void *portal, const void *work)
{
	uint8_t retry;
	__asm__ volatile(".byte 0xf2, 0x0f, 0x38, 0xf8, 0x3e; setz %0"
			 : "=q"(retry)
			 : "D"(portal), "S"(work)
			 : "memory", "cc");
	return retry;
}

static int is_shared(const char *node)
{
	char path[256], mode[16] = "";
	snprintf(path, sizeof path, "/sys/bus/dsa/devices/%s/mode", strrchr(node, '/') + 1);
	FILE *file = fopen(path, "r");
	if (file) {
		if (!fgets(mode, sizeof mode, file))
			mode[0] = 0;
		fclose(file);
	}
	return !strncmp(mode, "shared", 6);
}

int main(int argc, char **argv)
{
	const char *node = argc > 1 ? argv[1] : "/dev/dsa/wq0.0";
	if (!strchr(node, '/')) {
		fprintf(stderr, "usage: program [/dev/dsa/wqX.Y]\n");
		return 2;
	}
	int fd = open(node, O_RDWR);
	if (fd < 0) {
		perror(node);
		return 1;
	}
	volatile void *portal = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (portal == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	static char source[SIZE], destination[SIZE];
	static struct record record;
	memset(source, 'x', SIZE);
	/* The device finds a page that was never written only if the flag block-on-fault is set. */
	memset(destination, 0, SIZE);
	struct descriptor work = {
		.flags_operation = (uint32_t)MEMMOVE << 24 | COMPLETION_VALID | REQUEST_COMPLETION,
		.completion = (uintptr_t)&record,
		.source = (uintptr_t)source,
		.destination = (uintptr_t)destination,
		.size = SIZE,
	};
	record.status = 0;
	if (is_shared(node))
		while (enqcmd(portal, &work))
			sched_yield();
	else
		movdir64b(portal, &work);
	while (record.status == 0)
		sched_yield();
	int same = !memcmp(source, destination, SIZE);
	printf("status %d, %s\n", record.status, same ? "copied" : "not copied");
	return record.status == 1 && same ? 0 : 1;
}
