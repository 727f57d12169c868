// Pages are protected and each access to one is a signal, as collectors of garbage do: as many as without dray, each with
// its reason and address.
#include "hazard.h"

enum { ROUNDS = 4000, RUN = 8 };

static volatile long signals, bad;
static uint64_t *volatile expected;

static void handler(int number, siginfo_t *info, void *context) {
	uint64_t *page = (uint64_t *)((uintptr_t)info->si_addr / PAGE * PAGE);
	signals++;
	bad += number != SIGSEGV || info->si_code != SEGV_ACCERR || info->si_addr != (void *)expected || context == NULL;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

int main(void) {
	unsigned random = 1;
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	alarm(60);
	sigaction(SIGSEGV, &action, NULL);
	fill();
	settle();
	for (int round = 0; round < ROUNDS; round++) {
		random = random * 1664525u + 1013904223u;
		size_t first = (random >> 8) % (PAGES - RUN);
		uint64_t *start = pages + first * WORDS;
		int reads = round % 2;
		bad += mprotect(start, (size_t)RUN * PAGE, reads ? PROT_NONE : PROT_READ) != 0;
		if (round % 8 == 0)
			usleep(300);
		for (size_t page = 0; page < RUN; page++) {
			volatile uint64_t *word = expected = start + page * WORDS;
			if (reads)
				bad += *word != (first + page) * 2654435761u + 1;
			else
				*word = (first + page) * 2654435761u + 1;
		}
		bad += mprotect(start, (size_t)RUN * PAGE, PROT_READ | PROT_WRITE) != 0;
	}
	printf("%ld signals, %ld bad, %d pages wrong\n", signals, bad, wrong());
	return 0;
}
