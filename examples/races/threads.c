/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads that race with a device, each beside its right twin, for ThreadSanitizer:
 *
 *   cc -O1 -g -Wno-psabi -Wno-tsan -fsanitize=thread -pthread -o threads threads.c
 *   dray run --profile 1e1w-d --sanitize=thread -- ./threads CASE wrong|right
 *
 * `threads list` has the cases. Exit codes: 0 done, 2 usage, 3 no work queue, that of ThreadSanitizer (66) for a report.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
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

enum { FENCE = 1, VALID = 4, REQUEST = 8 };
enum { NOOP, BATCH, DRAIN, MOVE, FILL };
#define SIZE 4096

static int file = -1;
static char *portal;
static struct record records[64];
static char a[SIZE], b[SIZE], c[SIZE];
static volatile int sum;

static struct descriptor make(int opcode, const void *first, void *second, uint32_t size, struct record *record)
{
	struct descriptor d = { .flags_opcode = (uint32_t)opcode << 24 | VALID | REQUEST };

	d.first = (uintptr_t)first;
	d.second = (uintptr_t)second;
	d.size = size;
	d.record = (uintptr_t)record;
	return d;
}

static int map_queue(void)
{
	DIR *directory = opendir("/dev/dsa");
	struct dirent *entry;

	for (file = -1; directory && file < 0 && (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			file = openat(dirfd(directory), entry->d_name, O_RDWR);
	if (directory)
		closedir(directory);
	portal = file < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
	return portal != MAP_FAILED;
}

/* To a dedicated queue. */
static void submit(struct descriptor d)
{
	asm volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x02" : : "a"(portal), "d"(&d) : "memory");
}

static void wait_for(struct record *record)
{
	while (!record->status)
		asm volatile("pause");
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static void read_all(const char *bytes)
{
	int n;

	for (n = 0; n < SIZE; n++)
		sum += bytes[n];
}

static void read_early(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	read_all(b);
	wait_for(&records[0]);
}

static void compare_early(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	sum = memcmp(a, b, SIZE);
	wait_for(&records[0]);
}

static void atomic_poll(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	while (!__atomic_load_n(&records[0].status, __ATOMIC_ACQUIRE) && right)
		;
	read_all(b);
	wait_for(&records[0]);
}

static void source_written(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	a[100] = 9;
	wait_for(&records[0]);
}

static void source_freed(int right)
{
	char *chunk = memset(malloc(SIZE), 1, SIZE);

	submit(make(MOVE, chunk, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	free(chunk);
	wait_for(&records[0]);
}

static void destination_freed(int right)
{
	char *chunk = memset(malloc(SIZE), 1, SIZE);

	submit(make(MOVE, a, chunk, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	free(chunk);
	wait_for(&records[0]);
}

static void record_reused(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	memset(&records[0], 0, sizeof(records[0]));
	submit(make(MOVE, a, c, SIZE, &records[0]));
	wait_for(&records[0]);
}

static __attribute__((noinline)) void with_record_on_stack(int right)
{
	struct record record;

	memset(&record, 0, sizeof(record));
	submit(make(MOVE, a, b, SIZE, &record));
	if (right)
		wait_for(&record);
}

static __attribute__((noinline)) void use_stack(void)
{
	char bytes[1024];
	int n;

	for (n = 0; n < 1024; n++) {
		bytes[n] = 0;
		asm volatile("" : : "r"(bytes) : "memory");
	}
}

static void record_on_stack(int right)
{
	with_record_on_stack(right);
	use_stack();
	usleep(100000);
}

/* One completion says nothing of another. */
static void last_alone(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	submit(make(MOVE, a, c, SIZE, &records[1]));
	wait_for(&records[1]);
	if (right)
		wait_for(&records[0]);
	read_all(b);
	wait_for(&records[0]);
}

/* That of a drain does. */
static void noop_for_drain(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	submit(make(right ? DRAIN : NOOP, NULL, NULL, 0, &records[1]));
	wait_for(&records[1]);
	read_all(b);
	wait_for(&records[0]);
}

/* That of a batch does; that of a member does not. */
static void member_for_batch(int right)
{
	static struct descriptor list[2];

	list[0] = make(MOVE, a, b, SIZE, &records[0]);
	list[1] = make(MOVE, a, c, SIZE, &records[1]);
	submit(make(BATCH, list, NULL, 2, &records[2]));
	wait_for(&records[right ? 2 : 0]);
	read_all(c);
	wait_for(&records[2]);
}

static void list_reused(int right)
{
	static struct descriptor list[2];

	list[0] = make(NOOP, NULL, NULL, 0, &records[0]);
	list[1] = make(NOOP, NULL, NULL, 0, &records[1]);
	submit(make(BATCH, list, NULL, 2, &records[2]));
	if (right)
		wait_for(&records[2]);
	list[0] = make(MOVE, a, b, SIZE, &records[3]);
	wait_for(&records[2]);
}

static void two_copies(int right)
{
	submit(make(MOVE, a, b, SIZE, &records[0]));
	if (right)
		wait_for(&records[0]);
	submit(make(MOVE, b, c, SIZE, &records[1]));
	wait_for(&records[1]);
	wait_for(&records[0]);
}

/* Looks at the record some times, and goes on: to be seen where devices are late, as under --chaos 1:delay. With plain loads
 * it is not, for the record might have been cleared since by code that is not instrumented. */
static void gives_up(int right)
{
	int n;

	submit(make(MOVE, a, b, SIZE, &records[0]));
	for (n = 0; (right || n < 2) && !__atomic_load_n(&records[0].status, __ATOMIC_ACQUIRE); n++)
		;
	b[0] = 1;
	wait_for(&records[0]);
}

static pthread_t start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, argument);
	return thread;
}

static void *fills(void *unused)
{
	int n;

	for (n = 0; n < SIZE; n++)
		a[n] = 5;
	return unused;
}

/* Another thread writes the source, and nobody waits for it. */
static void filled_by_another(int right)
{
	pthread_t thread = start(fills, NULL);

	if (right)
		pthread_join(thread, NULL);
	else
		usleep(100000);
	submit(make(MOVE, a, b, SIZE, &records[0]));
	wait_for(&records[0]);
	if (!right)
		pthread_join(thread, NULL);
}

static int flag;

static void *reads_when_told(void *right)
{
	if (right)
		while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
			;
	else
		usleep(100000);
	read_all(b);
	return NULL;
}

/* One thread sees the completion, another one reads. */
static void told_to_another(int right)
{
	pthread_t thread = start(reads_when_told, right ? &flag : NULL);

	submit(make(MOVE, a, b, SIZE, &records[0]));
	wait_for(&records[0]);
	__atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

static void *reads_record(void *right)
{
	if (right)
		wait_for(&records[0]);
	else
		usleep(100000);
	read_all(b);
	return NULL;
}

/* Another thread sees the completion itself. */
static void record_read_by_another(int right)
{
	pthread_t thread;

	submit(make(MOVE, a, b, SIZE, &records[0]));
	thread = start(reads_record, right ? &flag : NULL);
	pthread_join(thread, NULL);
	wait_for(&records[0]);
}

/* Large copies of the same, many at once. */
static void large_copies(int right)
{
	enum { LARGE = 4 << 20 };
	char *from = memset(malloc(LARGE), 1, LARGE), *to = malloc(LARGE);
	int n;

	for (n = 0; n < 20; n++) {
		submit(make(MOVE, from, to, LARGE, &records[n]));
		if (right)
			wait_for(&records[n]);
	}
	for (n = 0; n < 20; n++)
		wait_for(&records[n]);
}

/* A child that opens a queue for itself, of a process that has fibers by then. It is not looked at. */
static void forked_child(int right)
{
	pid_t child;
	int n;

	read_early(right);
	munmap(portal, SIZE);
	close(file);
	child = fork();
	if (!child) {
		if (!map_queue())
			_exit(3);
		for (n = 1; n < 20; n++) {
			memset(a, n, SIZE);
			submit(make(MOVE, a, b, SIZE, &records[n]));
			wait_for(&records[n]);
			read_all(b);
		}
		_exit(0);
	}
	waitpid(child, &n, 0);
	if (n)
		abort();
}

static const struct {
	const char *name;
	void (*run)(int right);
} cases[] = {
	{ "read-early", read_early },
	{ "compare-early", compare_early },
	{ "atomic-poll", atomic_poll },
	{ "source-written", source_written },
	{ "source-freed", source_freed },
	{ "destination-freed", destination_freed },
	{ "record-reused", record_reused },
	{ "record-on-stack", record_on_stack },
	{ "last-alone", last_alone },
	{ "noop-for-drain", noop_for_drain },
	{ "member-for-batch", member_for_batch },
	{ "list-reused", list_reused },
	{ "two-copies", two_copies },
	{ "gives-up", gives_up },
	{ "filled-by-another", filled_by_another },
	{ "told-to-another", told_to_another },
	{ "record-read-by-another", record_read_by_another },
	{ "large-copies", large_copies },
	{ "forked-child", forked_child },
};

int main(int argc, char **argv)
{
	size_t count = sizeof(cases) / sizeof(*cases), n;

	for (n = 0; argc == 2 && !strcmp(argv[1], "list") && n < count; n++)
		printf("%s\n", cases[n].name);
	if (argc == 2 && n == count)
		return 0;
	if (argc != 3) {
		fprintf(stderr, "usage: %s CASE wrong|right, or list\n", argv[0]);
		return 2;
	}
	if (!map_queue()) {
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
