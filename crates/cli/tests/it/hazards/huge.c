// Memory of huge pages: transparent ones, which are split and collapsed, and those of a pool, which stay.
#include "hazard.h"

enum { HUGE = 2 << 20, COUNT = 16 };

static uint64_t *start;

static void check(const char *what) {
	long bad = 0;
	for (size_t page = 0; page < COUNT * (HUGE / PAGE); page++)
		bad += *(volatile uint64_t *)&start[page * WORDS] != page * 77 + 3;
	if (bad)
		printf("%s: %ld pages wrong\n", what, bad);
}

int main(void) {
	unsigned random = 1;
	long failed = 0;
	alarm(60);
	fill();
	char *all = mmap(NULL, (size_t)(COUNT + 1) * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	start = (uint64_t *)(((uintptr_t)all + HUGE - 1) / HUGE * HUGE);
	madvise(start, (size_t)COUNT * HUGE, MADV_HUGEPAGE);
	for (size_t page = 0; page < COUNT * (HUGE / PAGE); page++)
		start[page * WORDS] = page * 77 + 3;
	settle();
	for (int round = 0; round < 400; round++) {
		random = random * 1664525u + 1013904223u;
		size_t first = (random >> 8) % (COUNT * (HUGE / PAGE) - 16);
		uint64_t *part = start + first * WORDS;
		switch (round % 4) {
		case 0:
			failed += mprotect(part, 16 * PAGE, PROT_READ) || mprotect(part, 16 * PAGE, PROT_READ | PROT_WRITE);
			break;
		case 1:
			failed += madvise(part, 16 * PAGE, MADV_DONTNEED) != 0;
			for (size_t page = first; page < first + 16; page++) {
				failed += *(volatile uint64_t *)&start[page * WORDS] != 0;
				start[page * WORDS] = page * 77 + 3;
			}
			break;
		default:
			usleep(500);
			check("moving");
		}
	}
	check("at the end");
	char *pool = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	int refused = pool == MAP_FAILED ? errno : 0;
	if (!refused) {
		memset(pool, 3, HUGE);
		settle();
		failed += pool[HUGE / 2] != 3;
	}
	printf("%ld failed, pool %d, %d pages wrong\n", failed, refused, wrong());
	return 0;
}
