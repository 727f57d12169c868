/*
 * Memory whose pages move between two nodes while its contents are checked.
 *
 *   migrate move BYTES 4k|2m TIMES     moves all of it to the other node and back, checks, and counts
 *   migrate write BYTES 4k|2m SECONDS  writes and checks without end while a thread moves it (0: until SIGUSR1)
 *   migrate idle BYTES 4k|2m           fills it, says READY, checks when its input ends
 *   migrate hot BYTES 4k|2m SECONDS    moves it to node 1 and reads it until its pages are on node 0
 *   migrate fragments BYTES            leaves every other page of it, for compaction, and checks as idle does
 *
 * Prints what it has done in one line. Exit codes: 0 all is as it was written, 1 it is not, 2 usage, 3 the
 * kernel refused something.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define HUGE (512 * PAGE)
#define WORDS (PAGE / 8)

static char *memory;
static size_t size;
static size_t stride = PAGE;
static unsigned long moved, refused;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* What word `n` of the memory holds in round `round`. */
static uint64_t word(size_t n, uint64_t round)
{
	return (n + 1) * 0x9e3779b97f4a7c15ULL + round;
}

static void fill(size_t from, size_t to)
{
	uint64_t *at = (uint64_t *)memory;
	size_t n;

	for (n = from / 8; n < to / 8; n++)
		at[n] = word(n, 0);
}

/* Words that are not as they were written. */
static unsigned long bad_words(size_t step)
{
	uint64_t *at = (uint64_t *)memory;
	unsigned long bad = 0;
	size_t page, n;

	for (page = 0; page < size; page += step)
		for (n = page / 8; n < page / 8 + WORDS; n++)
			bad += at[n] != word(n, 0);
	return bad;
}

static int allocate(void)
{
	/* Aligned, so that each 2 MiB can be one huge page. */
	char *area = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (area == MAP_FAILED)
		return -1;
	memory = (char *)(((uintptr_t)area + HUGE - 1) & ~(HUGE - 1));
	return madvise(memory, size, stride == HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

/* Moves everything to a node. Each page is named, as each is asked about. */
static int move_to(int node)
{
	size_t pages = size / stride, n;
	void **at = malloc(pages * sizeof(*at));
	int *nodes = malloc(pages * sizeof(*nodes)), *status = malloc(pages * sizeof(*status));
	long result;

	for (n = 0; n < pages; n++) {
		at[n] = memory + n * stride;
		nodes[n] = node;
		status[n] = -ENODATA;
	}
	result = syscall(SYS_move_pages, 0, pages, at, nodes, status, 2 /* MPOL_MF_MOVE */);
	if (result < 0)
		fprintf(stderr, "move_pages: %s\n", strerror(errno));
	for (n = 0; n < pages; n++)
		if (status[n] == node)
			moved++;
		else
			refused++;
	free(at);
	free(nodes);
	free(status);
	return result < 0 ? -1 : 0;
}

static size_t pages_on(int node)
{
	size_t pages = size / stride, n, count = 0;
	void **at = malloc(pages * sizeof(*at));
	int *status = malloc(pages * sizeof(*status));

	for (n = 0; n < pages; n++)
		at[n] = memory + n * stride;
	if (!syscall(SYS_move_pages, 0, pages, at, NULL, status, 0))
		for (n = 0; n < pages; n++)
			count += status[n] == node;
	free(at);
	free(status);
	return count;
}

static volatile int stop;
static volatile sig_atomic_t ended;

static void end_writing(int signal)
{
	ended = signal;
}

static void *mover(void *nothing)
{
	unsigned int round = 0;

	while (!stop)
		move_to(++round & 1);
	return nothing;
}

/* Writes every eighth word again and again, each time checking what was written before. */
static unsigned long write_until(double end)
{
	uint64_t *at = (uint64_t *)memory;
	unsigned long bad = 0;
	uint64_t round;
	size_t n;

	for (round = 1; now() < end && !ended; round++)
		for (n = 0; n < size / 8; n += 8) {
			bad += at[n] != word(n, round - 1);
			at[n] = word(n, round);
		}
	/* The words between have never been written. */
	for (n = 0; n < size / 8; n++)
		bad += at[n] != word(n, n % 8 ? 0 : round - 1);
	printf("wrote %lu rounds, moved %lu, refused %lu, bad %lu\n", (unsigned long)round - 1, moved, refused,
	       bad);
	return bad;
}

static int wait_and_check(size_t step)
{
	unsigned long bad;

	printf("READY\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	bad = bad_words(step);
	printf("checked, bad %lu\n", bad);
	return bad != 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long number = argc > 4 ? strtoul(argv[4], NULL, 0) : 0, bad = 0, n;
	pthread_t thread;

	if (argc < 3) {
		fprintf(stderr, "usage: %s move|write|idle|hot|fragments BYTES [4k|2m [NUMBER]]\n", argv[0]);
		return 2;
	}
	size = strtoul(argv[2], NULL, 0);
	if (argc > 3 && !strcmp(argv[3], "2m"))
		stride = HUGE;
	if (!size || size % stride || allocate()) {
		fprintf(stderr, "no %s bytes: %s\n", argv[2], strerror(errno));
		return 2;
	}
	fill(0, size);
	if (!strcmp(what, "move")) {
		for (n = 1; n <= number; n++) {
			if (move_to(n & 1))
				return 3;
			bad += bad_words(PAGE);
		}
		printf("moved %lu of %lu, bad %lu\n", moved, moved + refused, bad);
		return bad || refused;
	}
	if (!strcmp(what, "write")) {
		signal(SIGUSR1, end_writing);
		if (pthread_create(&thread, NULL, mover, NULL))
			return 3;
		bad = write_until(number ? now() + number : 1e18);
		stop = 1;
		pthread_join(thread, NULL);
		return bad != 0;
	}
	if (!strcmp(what, "hot")) {
		double end;

		if (move_to(1))
			return 3;
		for (end = now() + number; now() < end && pages_on(0) < size / stride;)
			bad += bad_words(PAGE);
		printf("promoted %lu of %lu, bad %lu\n", (unsigned long)pages_on(0), (unsigned long)(size / stride), bad);
		return bad != 0;
	}
	if (!strcmp(what, "fragments"))
		for (n = PAGE; n < size; n += 2 * PAGE)
			madvise(memory + n, PAGE, MADV_DONTNEED);
	return wait_and_check(!strcmp(what, "fragments") ? 2 * PAGE : PAGE);
}
