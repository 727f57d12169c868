// What the programs share: memory whose pages carry their number, and the way to end.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PAGES
#define PAGES 4096
#endif

enum { PAGE = 4096, WORDS = PAGE / 8 };

static uint64_t *pages;

// Writes all of it, so that a child has pages of its own: shared ones do not move.
static inline void number_pages(void) {
	for (size_t page = 0; page < PAGES; page++)
		*(volatile uint64_t *)&pages[page * WORDS] = page * 2654435761u + 1;
}

static inline void fill(void) {
	pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	number_pages();
}

static inline int wrong(void) {
	int count = 0;
	for (size_t page = 0; page < PAGES; page++)
		count += *(volatile uint64_t *)&pages[page * WORDS] != page * 2654435761u + 1;
	return count;
}

static inline double seconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

// Until pages have been moving for a while, where they move at all.
static inline void settle(void) {
	double end = seconds() + 0.7;
	while (seconds() < end && wrong() == 0)
		usleep(1000);
}
