// Guard regions come and go: what was there before is zero, what is beside it is as it was.
#include "hazard.h"

enum { INSTALL = 102, REMOVE = 103, RUN = 16 };

int main(void) {
	long stale = 0, failed = 0;
	unsigned random = 1;
	double end;
	fill();
	settle();
	for (end = seconds() + 3; seconds() < end;) {
		random = random * 1664525u + 1013904223u;
		size_t first = (random >> 8) % (PAGES - RUN);
		uint64_t *start = pages + first * WORDS;
		failed += madvise(start, (size_t)RUN * PAGE, INSTALL) != 0;
		failed += madvise(start, (size_t)RUN * PAGE, REMOVE) != 0;
		if (failed)
			break;
		for (size_t page = 0; page < RUN; page++) {
			volatile uint64_t *word = start + page * WORDS;
			stale += *word != 0;
			*word = (first + page) * 2654435761u + 1;
		}
	}
	printf("%d failed, %ld pages not zero, %d wrong\n", failed != 0, stale, wrong());
	return 0;
}
