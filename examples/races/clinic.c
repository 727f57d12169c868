/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs that break a rule of asynchronous copies, each beside its right twin.
 *
 *   clinic CASE wrong|right     one of them, on the first work queue in /dev/dsa
 *   clinic list                 cases: name, class or `error` for an exit code of 1, options that it needs
 *
 * Try `dray run --sanitize -- ./clinic copy-of-copy wrong`. Exit codes: 0 done, 2 usage, 3 no work queue.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct descriptor {
	uint32_t pasid;
	uint32_t flags_opcode;
	uint64_t record, first, second;
	uint32_t size;
	uint16_t interrupt, reserved;
	uint64_t more[3];
} __attribute__((aligned(64)));

struct record {
	volatile uint8_t status;
	uint8_t result;
	uint16_t unused;
	uint32_t bytes;
	uint64_t fault, more[2];
} __attribute__((aligned(32)));

enum { FENCE = 1, VALID = 4, REQUEST = 8, CACHE = 0x100 };
enum { NOOP, BATCH, DRAIN, MOVE, FILL, COMPARE, DUALCAST = 9 };
#define SIZE 4096

static int file;
static char *portal;
static struct record records[64];
static char a[2 * SIZE], b[2 * SIZE], c[2 * SIZE];

static struct descriptor make(int opcode, const void *first, void *second, uint32_t size, struct record *record)
{
	struct descriptor d = { .flags_opcode = (uint32_t)opcode << 24 | VALID | REQUEST };

	d.first = (uintptr_t)first;
	d.second = (uintptr_t)second;
	d.size = size;
	d.record = (uintptr_t)record;
	return d;
}

/* To a dedicated queue. */
static void submit(struct descriptor d)
{
	asm volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x02" : : "a"(portal), "d"(&d) : "memory");
}

static struct record *wait_for(struct record *record)
{
	while (!record->status)
		asm volatile("pause");
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return record;
}

static void run(struct descriptor d)
{
	submit(d);
	wait_for((struct record *)(uintptr_t)d.record);
}

/* Two at once, or one after the other. */
static void pair(int right, struct descriptor first, struct descriptor second)
{
	submit(first);
	if (right)
		wait_for((struct record *)(uintptr_t)first.record);
	submit(second);
	wait_for((struct record *)(uintptr_t)second.record);
	wait_for((struct record *)(uintptr_t)first.record);
}

/* Memory whose second page of four is not present: a move to it ends there. */
static char *holed(void)
{
	char *memory = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(memory, 1, 4 * SIZE);
	madvise(memory + SIZE, SIZE, MADV_DONTNEED);
	return memory;
}

static void copy_of_copy(int right)
{
	pair(right, make(MOVE, a, b, SIZE, &records[0]), make(MOVE, b, c, SIZE, &records[1]));
}

static void *worker(void *right)
{
	usleep(10000);
	copy_of_copy(right != NULL);
	exit(0);
}

/* The first thread of a process may end before the others. */
static void first_thread_ended(int right)
{
	pthread_t thread;

	pthread_create(&thread, NULL, worker, right ? a : NULL);
	pthread_exit(NULL);
}

static void two_writers(int right)
{
	pair(right, make(FILL, (void *)1, b, SIZE, &records[0]), make(MOVE, a, b + SIZE - 1, SIZE, &records[1]));
}

static void source_reused(int right)
{
	pair(right, make(MOVE, a, b, SIZE, &records[0]), make(FILL, (void *)7, a, 64, &records[1]));
}

static void compare_early(int right)
{
	pair(right, make(MOVE, a, b, SIZE, &records[0]), make(COMPARE, a, b, SIZE, &records[1]));
}

static void record_in_data(int right)
{
	static struct record buffer[SIZE / sizeof(struct record)];

	pair(right, make(MOVE, a, b, SIZE, &buffer[4]), make(FILL, (void *)1, right ? c : (char *)buffer, 256, &records[1]));
	if (!right)
		buffer[0].status = 0;
}

static void batch(int right, uint32_t flags)
{
	static struct descriptor list[2];

	list[0] = make(MOVE, a, b, SIZE, &records[0]);
	list[1] = make(MOVE, b, c, SIZE, &records[1]);
	list[1].flags_opcode |= right ? flags : 0;
	run(make(BATCH, list, NULL, 2, &records[2]));
}

static void batch_without_fence(int right)
{
	batch(right, FENCE);
}

/* A batch that copies to `to`, piece by piece; nothing is known of its members but by its record. */
static struct descriptor batch_to(struct descriptor *list, const char *from, char *to, struct record *record)
{
	int n;

	for (n = 0; n < 4; n++) {
		list[n] = make(MOVE, from + n * SIZE / 4, to + n * SIZE / 4, SIZE / 4, NULL);
		list[n].flags_opcode &= ~(VALID | REQUEST);
	}
	return make(BATCH, list, NULL, 4, record);
}

static void batches_overlap(int right)
{
	static struct descriptor first[4], second[4];

	pair(right, batch_to(first, a, c, &records[0]), batch_to(second, b, c, &records[1]));
}

static void batch_of_batch(int right)
{
	static struct descriptor first[4], second[4];

	pair(right, batch_to(first, a, b, &records[0]), batch_to(second, b, c, &records[1]));
}

static void batch_of_copy(int right)
{
	static struct descriptor list[4];

	pair(right, make(MOVE, a, b, SIZE, &records[0]), batch_to(list, b, c, &records[1]));
}

static void copy_of_batch(int right)
{
	static struct descriptor list[4];

	pair(right, batch_to(list, a, b, &records[0]), make(MOVE, b, c, SIZE, &records[1]));
}

static void list_reused(int right)
{
	static struct descriptor list[2];

	list[0] = make(NOOP, NULL, NULL, 0, &records[0]);
	list[1] = make(NOOP, NULL, NULL, 0, &records[1]);
	pair(right, make(BATCH, list, NULL, 2, &records[2]), make(FILL, (void *)0, right ? (void *)c : (void *)list, 64, &records[3]));
}

static void record_shared(int right)
{
	pair(1, make(NOOP, NULL, NULL, 0, &records[5]), make(NOOP, NULL, NULL, 0, &records[6]));
	submit(make(MOVE, a, b, SIZE, &records[0]));
	submit(make(MOVE, a, c, SIZE, &records[right ? 1 : 0]));
	wait_for(&records[0]);
	wait_for(&records[right ? 1 : 0]);
}

static void record_not_cleared(int right)
{
	run(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		records[0].status = 0;
	submit(make(MOVE, a, b, SIZE, &records[0]));
	wait_for(&records[0]);
	usleep(100000);
}

static void record_cleared_late(int right)
{
	/* Of the operation before. */
	records[0].bytes = SIZE;
	if (right)
		records[0].bytes = 0;
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (!right)
		records[0].bytes = 0;
	wait_for(&records[0]);
}

static void record_freed(int right)
{
	struct record *record = aligned_alloc(sizeof(*record), sizeof(*record));

	memset(record, 0, sizeof(*record));
	submit(make(MOVE, a, b, SIZE, record));
	if (right)
		wait_for(record);
	free(record);
	usleep(100000);
}

static void record_shared_in_batch(int right)
{
	static struct descriptor list[2];

	list[0] = make(MOVE, a, b, SIZE, &records[0]);
	list[1] = make(MOVE, a, c, SIZE, right ? &records[1] : &records[2]);
	run(make(BATCH, list, NULL, 2, &records[2]));
}

/* A member that writes to its own batch. */
static void member_writes(int right, void *to)
{
	static struct descriptor list[4] __attribute__((aligned(4096)));
	int n;

	memset(b, 0, SIZE);
	list[0] = make(MOVE, b, right ? c : to ? to : &list[3], 32, &records[0]);
	for (n = 1; n < 4; n++)
		list[n] = make(NOOP, NULL, NULL, 0, &records[n]);
	run(make(BATCH, list, NULL, 4, &records[4]));
}

static void list_overwritten(int right)
{
	member_writes(right, NULL);
}

static void batch_record_overwritten(int right)
{
	member_writes(right, &records[4]);
}

/* Records for errors alone, one for several; of two that are polled each has its own. */
static void error_record_shared(int right)
{
	struct descriptor d = make(MOVE, a, b, SIZE, &records[0]);
	int n;

	for (n = 0; n < 4; n++) {
		d.second = (uintptr_t)(n % 2 ? b : c);
		d.flags_opcode &= right ? ~REQUEST : ~0u;
		submit(d);
	}
	run(make(DRAIN, NULL, NULL, 0, &records[1]));
}

/* The rest of a move, done as the record says or wrongly. */
static void rest_too_early(int right)
{
	char *to = holed();
	struct record *record = &records[0];
	uint32_t done;

	run(make(MOVE, a, to, 2 * SIZE, record));
	done = record->bytes;
	to[SIZE] = 0;
	if (!right)
		done -= 64;
	run(make(MOVE, a + done, to + done, 2 * SIZE - done, &records[1]));
}

/* A move onto itself upwards goes from its end. */
static void rest_in_wrong_direction(int right)
{
	char *memory = holed();
	struct record *record = &records[0];
	uint32_t done;

	run(make(MOVE, memory, memory + SIZE, 3 * SIZE, record));
	done = record->bytes;
	memory[SIZE] = 1;
	if (right || !(record->result & 1))
		run(make(MOVE, memory, memory + SIZE, 3 * SIZE - done, &records[1]));
	else
		run(make(MOVE, memory + done, memory + SIZE + done, 3 * SIZE - done, &records[1]));
}

/* What was moved was its own source. */
static void whole_again_onto_itself(int right)
{
	char *memory = holed();
	struct record *record = &records[0];
	uint32_t done;

	run(make(MOVE, memory, memory + SIZE, 3 * SIZE, record));
	done = right ? record->bytes : 0;
	memory[SIZE] = 1;
	run(make(MOVE, memory, memory + SIZE, 3 * SIZE - done, &records[1]));
}

/* The rest of a move is forgotten, and what is there is copied on; the right twin has a core do the rest. */
static void rest_forgotten(int right)
{
	char *to = holed();
	uint32_t done;

	memset(a, 5, sizeof(a));
	run(make(MOVE, a, to, 2 * SIZE, &records[0]));
	done = records[0].bytes;
	if (right)
		memcpy(to + done, a + done, 2 * SIZE - done);
	run(make(MOVE, to, c, 2 * SIZE, &records[1]));
}

/* A part of a move is done again with other bytes, and the rest of it never was; the right twin has had a core do the rest. */
static void part_before_rest(int right)
{
	char *to = holed();
	uint32_t done;

	run(make(MOVE, a, to, 2 * SIZE, &records[0]));
	done = records[0].bytes;
	if (right)
		memcpy(to + done, a + done, 2 * SIZE - done);
	memset(a, 9, sizeof(a));
	run(make(MOVE, a + 1024, to + 1024, 2048, &records[1]));
}

/* Its last byte is there, and the record is not: with `--chaos SEED:record` for a while. */
static void destination_polled(int right)
{
	struct record *record = &records[0];
	int n;

	for (n = 0; n < 64; n++) {
		a[SIZE - 1] = b[SIZE - 1] + 1;
		record->status = 0;
		submit(make(MOVE, a, b, SIZE, record));
		while (((volatile char *)b)[SIZE - 1] != a[SIZE - 1])
			asm volatile("pause");
		if (right)
			wait_for(record);
		b[0] = n;
		wait_for(record);
	}
}

/* The status is cleared behind the submission: with `--chaos SEED:prompt` the record is there by then, and lost. */
static void record_lost(int right)
{
	struct record *record = &records[0];
	int n, waits;

	for (n = 0; n < 16; n++) {
		if (right)
			record->status = 0;
		submit(make(MOVE, a, b, SIZE, record));
		if (!right)
			record->status = 0;
		for (waits = 0; !record->status; waits++) {
			if (!right && waits == 1000)
				_exit(1);
			usleep(1000);
		}
		record->status = 0;
	}
}

static void size_zero(int right)
{
	run(make(MOVE, a, b, right ? 1 : 0, &records[0]));
}

static void reserved_flag(int right)
{
	struct descriptor d = make(MOVE, a, b, SIZE, &records[0]);

	d.flags_opcode |= right ? 0 : 1u << 20;
	run(d);
}

static void reserved_field(int right)
{
	struct descriptor d = make(FILL, (void *)1, b, SIZE, &records[0]);

	d.more[2] = right ? 0 : 1;
	run(d);
}

static void no_such_operation(int right)
{
	run(make(right ? MOVE : 0x7f, a, b, SIZE, &records[0]));
}

static void dualcast_unaligned(int right)
{
	static char pages[4 * SIZE] __attribute__((aligned(SIZE)));
	struct descriptor d = make(DUALCAST, a, pages, SIZE, &records[0]);

	d.more[0] = (uintptr_t)pages + 2 * SIZE + (right ? 0 : 8);
	run(d);
}

static void exit_early(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	_exit(0);
}

/* It looks at the record a few times, and fails. */
static void polled_for_a_while(int right)
{
	struct record *record = &records[0];
	int n;

	submit(make(MOVE, a, b, SIZE, record));
	for (n = 0; !record->status; n++)
		if (!right && n == 3)
			_exit(1);
}

static void close_early(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	munmap(portal, 4096);
	close(file);
	usleep(100000);
}

static void exec_early(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	execl("/bin/true", "true", (char *)NULL);
}

static void killed_early(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	else
		kill(getpid(), 9);
}

/* More than any queue has entries, into bytes of their own. */
static void overrun(int right)
{
	static struct record many[512];
	static char bytes[512];
	int n;

	for (n = 0; n < 512; n++) {
		submit(make(FILL, (void *)1, bytes + n, 1, &many[n]));
		if (right)
			wait_for(&many[n]);
	}
	usleep(200000);
}

/* In flight for a while: what is done meanwhile must not touch it. */
static void during(int right, struct descriptor d, void (*act)(void))
{
	submit(d);
	if (right)
		wait_for((struct record *)(uintptr_t)d.record);
	act();
	wait_for((struct record *)(uintptr_t)d.record);
}

static void write_source(void)
{
	a[100] = 9;
}

static void source_written(int right)
{
	during(right, make(MOVE, a, b, SIZE, &records[0]), write_source);
}

/* The neighbours of a source and of a destination are not in flight. */
static void write_neighbours(void)
{
	a[SIZE + 10] = b[SIZE + 10] = 9;
	a[9] = b[9] = 9;
}

static void source_written_at_its_edge(int right)
{
	int first = right ? 10 : 9;

	during(0, make(MOVE, a + first, b + first, SIZE + 10 - first, &records[0]), write_neighbours);
}

static struct descriptor members[2];

static struct descriptor batch_of_two(void)
{
	members[0] = make(MOVE, a, b, SIZE, &records[0]);
	members[1] = make(MOVE, a, c, SIZE, &records[1]);
	return make(BATCH, members, NULL, 2, &records[2]);
}

static void write_list(void)
{
	members[1].size = 64;
}

static void list_written(int right)
{
	during(right, batch_of_two(), write_list);
}

static void source_of_a_member_written(int right)
{
	during(right, batch_of_two(), write_source);
}

static char *chunk;

static void free_chunk(void)
{
	free(chunk);
}

/* free(3) keeps its list in what is free. */
static void source_freed(int right)
{
	chunk = memset(malloc(256), 1, 256);
	during(right, make(MOVE, chunk, b, 256, &records[0]), free_chunk);
}

static void write_destination(void)
{
	memset(b, 9, SIZE);
}

static void destination_written(int right)
{
	during(right, make(MOVE, a, b, SIZE, &records[0]), write_destination);
}

static void destination_of_fill_written(int right)
{
	during(right, make(FILL, (void *)5, b, SIZE, &records[0]), write_destination);
}

static void second_destination_written(int right)
{
	static char pages[4 * SIZE] __attribute__((aligned(SIZE)));
	struct descriptor d = make(DUALCAST, a, pages + (uintptr_t)b % SIZE, SIZE, &records[0]);

	memset(pages, 1, sizeof(pages));
	d.more[0] = (uintptr_t)b;
	during(right, d, write_destination);
}

static void destination_of_a_member_written(int right)
{
	during(right, batch_of_two(), write_destination);
}

static void destination_freed(int right)
{
	chunk = memset(malloc(256), 1, 256);
	during(right, make(MOVE, a, chunk, 256, &records[0]), free_chunk);
}

static char *mapping;

static char *mapped(void)
{
	mapping = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memset(mapping, 1, 4 * SIZE);
}

static void unmap(void)
{
	munmap(mapping, 4 * SIZE);
}

static void source_unmapped(int right)
{
	during(right, make(MOVE, mapped(), b, SIZE, &records[0]), unmap);
}

static void destination_unmapped(int right)
{
	during(right, make(MOVE, a, mapped(), SIZE, &records[0]), unmap);
}

static void give_back(void)
{
	madvise(mapping, 4 * SIZE, MADV_DONTNEED);
}

static void source_given_back(int right)
{
	during(right, make(MOVE, mapped(), b, SIZE, &records[0]), give_back);
}

static void compared_given_back(int right)
{
	during(right, make(COMPARE, a, mapped(), SIZE, &records[0]), give_back);
}

static void move_mapping(void)
{
	void *free = mmap(NULL, 16 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mremap(mapping, 4 * SIZE, 16 * SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, free);
}

static void destination_moved(int right)
{
	during(right, make(MOVE, a, mapped(), SIZE, &records[0]), move_mapping);
}

static void map_again(void)
{
	mmap(mapping, 4 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void destination_mapped_again(int right)
{
	during(right, make(MOVE, a, mapped(), SIZE, &records[0]), map_again);
}

/* Larger than what malloc(3) keeps: free(3) unmaps it. */
static void large_chunk_freed(int right)
{
	chunk = memset(malloc(1 << 20), 1, 1 << 20);
	during(right, make(MOVE, a, chunk, SIZE, &records[0]), free_chunk);
}

static const struct {
	const char *name, *class;
	void (*run)(int right);
} cases[] = {
	{ "copy-of-copy", "overlap", copy_of_copy },
	{ "first-thread-ended", "overlap", first_thread_ended },
	{ "two-writers", "overlap", two_writers },
	{ "source-reused", "overlap", source_reused },
	{ "compare-early", "overlap", compare_early },
	{ "record-in-data", "overlap", record_in_data },
	{ "batch-without-fence", "overlap", batch_without_fence },
	{ "batches-overlap", "overlap", batches_overlap },
	{ "batch-of-batch", "overlap", batch_of_batch },
	{ "batch-of-copy", "overlap", batch_of_copy },
	{ "copy-of-batch", "overlap", copy_of_batch },
	{ "list-reused", "overlap", list_reused },
	{ "record-shared", "record", record_shared },
	{ "record-not-cleared", "record", record_not_cleared },
	{ "record-cleared-late", "record", record_cleared_late },
	{ "record-freed", "record", record_freed },
	{ "record-shared-in-batch", "record", record_shared_in_batch },
	{ "list-overwritten", "overlap", list_overwritten },
	{ "batch-record-overwritten", "overlap", batch_record_overwritten },
	{ "error-record-shared", "record", error_record_shared },
	{ "rest-too-early", "resume", rest_too_early },
	{ "rest-in-wrong-direction", "resume", rest_in_wrong_direction },
	{ "whole-again-onto-itself", "resume", whole_again_onto_itself },
	{ "rest-forgotten", "resume", rest_forgotten },
	{ "part-before-rest", "resume", part_before_rest },
	{ "size-zero", "field", size_zero },
	{ "reserved-flag", "field", reserved_flag },
	{ "reserved-field", "field", reserved_field },
	{ "no-such-operation", "field", no_such_operation },
	{ "dualcast-unaligned", "field", dualcast_unaligned },
	{ "exit-early", "close", exit_early },
	{ "polled-for-a-while", "close", polled_for_a_while },
	{ "close-early", "close", close_early },
	{ "exec-early", "close", exec_early },
	{ "killed-early", "close", killed_early },
	{ "overrun", "lost", overrun },
	{ "source-written", "source", source_written },
	{ "source-written-at-its-edge", "source", source_written_at_its_edge },
	{ "list-written", "source", list_written },
	{ "source-of-a-member-written", "source", source_of_a_member_written },
	{ "source-freed", "source", source_freed },
	{ "destination-written", "destination", destination_written },
	{ "destination-of-fill-written", "destination", destination_of_fill_written },
	{ "second-destination-written", "destination", second_destination_written },
	{ "destination-of-a-member-written", "destination", destination_of_a_member_written },
	{ "destination-freed", "destination", destination_freed },
	{ "destination-polled", "destination --chaos 1:record", destination_polled },
	{ "record-lost", "error --chaos 1:prompt", record_lost },
	{ "source-unmapped", "lifetime", source_unmapped },
	{ "destination-unmapped", "lifetime", destination_unmapped },
	{ "source-given-back", "lifetime", source_given_back },
	{ "compared-given-back", "lifetime", compared_given_back },
	{ "destination-moved", "lifetime", destination_moved },
	{ "destination-mapped-again", "lifetime", destination_mapped_again },
	{ "large-chunk-freed", "lifetime", large_chunk_freed },
};

int main(int argc, char **argv)
{
	size_t count = sizeof(cases) / sizeof(*cases), n;
	struct dirent *entry;
	DIR *directory;

	for (n = 0; argc == 2 && !strcmp(argv[1], "list") && n < count; n++)
		printf("%s %s\n", cases[n].name, cases[n].class);
	if (argc == 2 && n == count)
		return 0;
	if (argc != 3) {
		fprintf(stderr, "usage: %s CASE wrong|right, or list\n", argv[0]);
		return 2;
	}
	directory = opendir("/dev/dsa");
	for (file = -1; directory && file < 0 && (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			file = openat(dirfd(directory), entry->d_name, O_RDWR);
	portal = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
	if (portal == MAP_FAILED) {
		fprintf(stderr, "no work queue in /dev/dsa\n");
		return 3;
	}
	memset(a, 1, sizeof(a));
	memset(b, 2, sizeof(b));
	memset(c, 3, sizeof(c));
	for (n = 0; n < count; n++)
		if (!strcmp(argv[1], cases[n].name)) {
			cases[n].run(!strcmp(argv[2], "right"));
			return 0;
		}
	fprintf(stderr, "%s: no such case; `list` has them\n", argv[1]);
	return 2;
}
