// What madvise(2), mlock(2), mseal(2) and mincore(2) do to memory whose pages move.
#include "hazard.h"

enum { RUN = 64, ROUNDS = 60 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static long bad;
static unsigned random_number = 1;

static size_t any(void) {
	random_number = random_number * 1664525u + 1013904223u;
	return (random_number >> 8) % (PAGES - RUN);
}

static void advise(size_t first, int advice, int may_fail) {
	if (madvise(pages + first * WORDS, (size_t)RUN * PAGE, advice) && !may_fail) {
		printf("advice %d: %s\n", advice, strerror(errno));
		bad++;
	}
}

// Dropped pages are zeros, and can be written again.
static void renew(size_t first) {
	for (size_t page = first; page < first + RUN; page++) {
		volatile uint64_t *word = &pages[page * WORDS];
		bad += *word != 0;
		*word = page * 2654435761u + 1;
	}
}

// A child has no pages of a range, or none that were written.
static void child_sees(int advice, int undo) {
	size_t first = any() / RUN * RUN;
	unsigned char there[RUN];
	int status = -1;
	uint64_t *start = pages + first * WORDS;
	advise(first, advice, 0);
	pid_t child = fork();
	if (child == 0) {
		int wrongs = 0;
		if (advice == MADV_DONTFORK)
			_exit(mincore(start, (size_t)RUN * PAGE, there) == 0 || errno != ENOMEM);
		for (size_t page = 0; page < RUN; page++)
			wrongs += *(volatile uint64_t *)(start + page * WORDS) != 0;
		_exit(wrongs);
	}
	waitpid(child, &status, 0);
	bad += status != 0;
	advise(first, undo, 0);
}

int main(void) {
	alarm(60);
	fill();
	settle();
	for (int round = 0; round < ROUNDS; round++) {
		size_t first = any();
		advise(first, MADV_DONTNEED, 0);
		renew(first);
		advise(first = any(), MADV_DONTNEED, 0);
		advise(first, round % 2 ? MADV_POPULATE_READ : MADV_POPULATE_WRITE, 0);
		renew(first);
		advise(any(), MADV_COLD, 0);
		advise(any(), MADV_PAGEOUT, 0);
		advise(any(), MADV_WILLNEED, 0);
		advise(any(), MADV_POPULATE_READ, 0);
		advise(any(), MADV_COLLAPSE, 1);
		advise(any(), MADV_MERGEABLE, 1);
		first = any();
		bad += mlock(pages + first * WORDS, (size_t)RUN * PAGE) != 0;
		advise(first, MADV_DONTNEED, 1);
		bad += munlock(pages + first * WORDS, (size_t)RUN * PAGE) != 0;
		if (round % 4 == 0) {
			child_sees(MADV_WIPEONFORK, MADV_KEEPONFORK);
			child_sees(MADV_DONTFORK, MADV_DOFORK);
		}
		usleep(1000);
	}
	// Of sealed memory nothing can be taken away. Kernels before 6.10 have no such call.
	long sealed = syscall(462, pages, (size_t)RUN * PAGE, 0);
	if (sealed == 0)
		bad += munmap(pages, PAGE) == 0 || mprotect(pages, PAGE, PROT_NONE) == 0;
	settle();
	printf("%ld bad, %d pages wrong\n", bad, wrong());
	return 0;
}
