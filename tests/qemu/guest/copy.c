/*
 * A user program of a work queue: copies, checks what has arrived, and says how it went.
 *
 *   copy FILE movdir64b|enqcmd|write COUNT BYTES [fresh|endless|records|lost]
 *
 * `fresh`: each destination is memory that was never touched. A page fault is answered as software does: the
 * page is touched, and the rest submitted. `endless`: until the device takes or completes nothing any more.
 * `records`: all at once, each with a completion record in a page that was never touched: the kernel writes it from
 * the event log. `lost`: the same, but the page is gone: the kernel cannot write it, and nothing comes.
 * Prints `copied DESCRIPTORS descriptors BYTES bytes FAULTS faults`. Exit codes: 0 all arrived, 1 not, 2 usage,
 * 3 the device is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct descriptor {
	uint32_t pasid;
	uint32_t flags_opcode;
	uint64_t completion, source, destination;
	uint32_t size;
	uint16_t interrupt, reserved;
	uint8_t rest[24];
} __attribute__((aligned(64)));

struct record {
	volatile uint8_t status;
	uint8_t result, fault_info, reserved;
	uint32_t bytes_completed;
	uint64_t fault_address;
	uint64_t rest[2];
} __attribute__((aligned(32)));

enum way { MOVDIR64B, ENQCMD, WRITE };

static enum way way;
static int file;
static char *portal;
static unsigned int slot;
static unsigned long descriptors, bytes, faults;

/* How long a descriptor may take, by so much as the guest is slow (lib.sh). */
static double patience_s = 30;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

static int submit(struct descriptor *d)
{
	void *place = portal + 64 * (slot++ % 64);
	double begin = now();
	unsigned char retry;

	switch (way) {
	case MOVDIR64B:
		asm volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x02" : : "a"(place), "d"(d) : "memory");
		return 0;
	case ENQCMD:
		do {
			asm volatile(".byte 0xf2, 0x0f, 0x38, 0xf8, 0x02\n\tsetz %0"
				     : "=r"(retry) : "a"(place), "d"(d) : "memory", "cc");
		} while (retry && now() - begin < patience_s);
		return retry ? -1 : 0;
	case WRITE:
		do {
			errno = 0;
			if (write(file, d, sizeof(*d)) == sizeof(*d))
				return 0;
		} while (errno == EAGAIN && now() - begin < patience_s);
		return -1;
	}
	return -1;
}

/* One memmove, resumed after page faults. 0 success, 1 wrong, 3 no completion. */
static int move(char *from, char *to, uint32_t size)
{
	static struct record record;

	while (size) {
		/* Completion address valid, request completion record; memory move. */
		struct descriptor d = { .flags_opcode = 3u << 24 | 0xc, .size = size };
		double begin = now();

		d.completion = (uintptr_t)&record;
		d.source = (uintptr_t)from;
		d.destination = (uintptr_t)to;
		memset(&record, 0, sizeof(record));
		if (submit(&d)) {
			fprintf(stderr, "not accepted: %s\n", strerror(errno));
			return 3;
		}
		descriptors++;
		while (!record.status)
			if (now() - begin > patience_s) {
				fprintf(stderr, "no completion record\n");
				return 3;
			}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		switch (record.status & 0x3f) {
		case 1:
			bytes += size;
			return 0;
		case 3:
			faults++;
			bytes += record.bytes_completed;
			from += record.bytes_completed;
			to += record.bytes_completed;
			size -= record.bytes_completed;
			if (record.status & 0x80)
				*(volatile char *)record.fault_address = 0;
			else
				(void)*(volatile char *)record.fault_address;
			break;
		default:
			fprintf(stderr, "status %#x\n", record.status);
			return 1;
		}
	}
	return 0;
}

/* All descriptors at once, each with a completion record in a page of its own. 0 success, 1 wrong, 3 no completion. */
static int flood(char *from, unsigned long count, uint32_t size, int lost)
{
	size_t page = 4096;
	char *records = mmap(NULL, count * page, lost ? PROT_NONE : PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *to = calloc(count, size);
	unsigned long n;
	double begin;

	if (records == MAP_FAILED || !to)
		return 3;
	memset(to, 0xff, count * size);
	for (n = 0; n < count; n++) {
		struct descriptor d = { .flags_opcode = 3u << 24 | 0xc, .size = size };

		d.completion = (uintptr_t)(records + n * page);
		d.source = (uintptr_t)from;
		d.destination = (uintptr_t)(to + n * size);
		if (submit(&d)) {
			fprintf(stderr, "not accepted: %s\n", strerror(errno));
			return 3;
		}
		descriptors++;
	}
	begin = now();
	for (n = 0; n < count; n++) {
		struct record *record = (struct record *)(records + n * page);

		/* What was copied says that a descriptor has ended whose record cannot be written. */
		while (lost ? memcmp(from, to + n * size, size) : !record->status)
			if (now() - begin > patience_s) {
				fprintf(stderr, "no completion record: %lu of %lu\n", n, count);
				return 3;
			}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!lost && (record->status != 1 || memcmp(from, to + n * size, size))) {
			fprintf(stderr, "status %#x, or wrong bytes\n", record->status);
			return 1;
		}
		bytes += size;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int fresh, endless, lost, result = 0;
	unsigned long count, size, n, at;
	char *source, *destination;

	if (argc < 5) {
		fprintf(stderr, "usage: %s FILE movdir64b|enqcmd|write COUNT BYTES [fresh|endless|records|lost]\n", argv[0]);
		return 2;
	}
	way = !strcmp(argv[2], "write") ? WRITE : !strcmp(argv[2], "enqcmd") ? ENQCMD : MOVDIR64B;
	count = strtoul(argv[3], NULL, 0);
	size = strtoul(argv[4], NULL, 0);
	fresh = argc > 5 && !strcmp(argv[5], "fresh");
	endless = argc > 5 && !strcmp(argv[5], "endless");
	if (getenv("slow"))
		patience_s *= strtoul(getenv("slow"), NULL, 10);
	file = open(argv[1], O_RDWR);
	if (file < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 3;
	}
	if (way != WRITE) {
		portal = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
		if (portal == MAP_FAILED)
			portal = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
		if (portal == MAP_FAILED) {
			fprintf(stderr, "mmap: %s\n", strerror(errno));
			return 3;
		}
	}
	source = malloc(size);
	destination = NULL;
	lost = argc > 5 && !strcmp(argv[5], "lost");
	if (lost || (argc > 5 && !strcmp(argv[5], "records"))) {
		for (at = 0; at < size; at++)
			source[at] = at * 7;
		result = flood(source, count, size, lost);
		/* The counts of an open file are the kernel's as long as it is open: the caller reads them. */
		printf("copied %lu descriptors %lu bytes %lu faults\n", descriptors, bytes, faults);
		fflush(stdout);
		if (getenv("hold"))
			pause();
		return result;
	}
	for (n = 0; !result && (endless || n < count); n++) {
		if (fresh && destination)
			munmap(destination, size);
		if (fresh || !destination)
			destination = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (!fresh)
			memset(destination, 0, size);
		for (at = 0; at < size; at++)
			source[at] = at * 7 + n;
		result = move(source, destination, size);
		if (!result && memcmp(source, destination, size)) {
			fprintf(stderr, "wrong bytes\n");
			result = 1;
		}
	}
	printf("copied %lu descriptors %lu bytes %lu faults\n", descriptors, bytes, faults);
	return result;
}
