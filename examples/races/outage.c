/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that is wrong only if a descriptor never ends, for its queue was disabled or reset, or the device was: `outage
 * wrong` gives up, `outage right` submits the copy again, with another record. Both copy 32 buffers through the first work queue
 * in /dev/dsa, which is dedicated.
 *
 *   dray run --profile 1e1w-d --chaos 1..20:outages -- ./outage wrong
 *
 * Exit codes: 0 all is copied, 1 something is not, 2 usage, 3 no work queue.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct descriptor {
	uint32_t pasid, flags_opcode;
	uint64_t record, source, destination;
	uint32_t size, unused;
	uint64_t more[3];
} __attribute__((aligned(64)));

struct record {
	volatile uint8_t status;
	uint8_t result;
	uint16_t unused;
	uint32_t bytes;
	uint64_t fault, more[2];
} __attribute__((aligned(32)));

enum { VALID = 4, REQUEST = 8, MOVE = 3, SUCCESS = 1, SIZE = 4000, BUFFERS = 32 };
/* Far longer than a copy takes, and a halted device to come back. */
enum { PATIENCE_MS = 250, TRIES = 20 };

static char *portal, from[BUFFERS][SIZE], to[BUFFERS][SIZE];

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether there is a record in time. */
static int copy(char *destination, char *source, uint32_t size)
{
	/* The device may still come to one that seems lost: its record is not used again. */
	static struct record records[BUFFERS * TRIES];
	static int used;
	struct record *record = &records[used++];
	struct descriptor d = {
		.flags_opcode = MOVE << 24 | VALID | REQUEST,
		.record = (uintptr_t)record,
		.source = (uintptr_t)source,
		.destination = (uintptr_t)destination,
		.size = size,
	};
	long end = now_ms() + PATIENCE_MS;

	asm volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x02" : : "a"(portal), "d"(&d) : "memory");
	while (!record->status && now_ms() < end)
		asm volatile("pause");
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return record->status == SUCCESS;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	DIR *directory = opendir("/dev/dsa");
	int file = -1, n, tries;

	if (argc != 2 || (strcmp(argv[1], "wrong") && strcmp(argv[1], "right"))) {
		fprintf(stderr, "usage: %s wrong|right\n", argv[0]);
		return 2;
	}
	while (directory && file < 0 && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			file = openat(dirfd(directory), entry->d_name, O_RDWR);
	portal = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
	if (portal == MAP_FAILED) {
		fprintf(stderr, "no work queue in /dev/dsa\n");
		return 3;
	}
	memset(to, 0, sizeof(to));
	for (n = 0; n < BUFFERS; n++) {
		memset(from[n], n + 1, SIZE);
		memset(to[n], 0xff, SIZE);
		tries = strcmp(argv[1], "right") ? 1 : TRIES;
		while (!copy(to[n], from[n], SIZE))
			if (--tries == 0)
				break;
	}
	for (n = 0; n < BUFFERS; n++)
		if (memcmp(from[n], to[n], SIZE)) {
			printf("buffer %d is not copied\n", n);
			return 1;
		}
	return 0;
}
