// Signals arrive on stacks whose pages move, also while registers are in use; and functions run and switch there.
#include "hazard.h"
#include <ucontext.h>

enum { STACKS = 200, STACK = 64 << 10, ROUNDS = 60000 };

static char *stacks;
static volatile long handled, bad, switched;
static ucontext_t own, others[STACKS];

static void handler(int number, siginfo_t *info, void *context) {
	volatile double x = 1.5;
	volatile char here[3000];
	memset((char *)here, number, sizeof here);
	for (int turn = 0; turn < 10; turn++)
		x = x * 1.25 + number;
	handled += info->si_signo == SIGUSR1;
	bad += info->si_signo != number || here[1500] != number || context == NULL || x < number;
}

static void runs(int number) {
	for (int turn = 0;; turn++) {
		volatile char here[5000];
		memset((char *)here, turn, sizeof here);
		switched += here[2500] == (char)turn;
		swapcontext(&others[number], &own);
	}
}

int main(void) {
	unsigned random = 1;
	timer_t timer;
	alarm(60);
	fill();
	stacks = mmap(NULL, (size_t)STACKS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(stacks, 1, (size_t)STACKS * STACK);
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigaction(SIGUSR1, &action, NULL);
	action.sa_flags |= SA_RESTART;
	sigaction(SIGUSR2, &action, NULL);
	settle();
	// Another signal, at any moment, in the frames of which registers are kept.
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	struct itimerspec often = { .it_interval.tv_nsec = 700000, .it_value.tv_nsec = 700000 };
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, NULL);
	for (int number = 0; number < STACKS; number++) {
		getcontext(&others[number]);
		others[number].uc_stack.ss_sp = stacks + number * STACK;
		others[number].uc_stack.ss_size = STACK;
		makecontext(&others[number], (void (*)(void))runs, 1, number);
	}
	for (int round = 0; round < ROUNDS; round++) {
		random = random * 1664525u + 1013904223u;
		// The upper half of the stacks is for signals, the lower one for functions.
		stack_t stack = { .ss_sp = stacks + (STACKS / 2 + (random >> 8) % (STACKS / 2)) * STACK, .ss_size = STACK };
		sigaltstack(&stack, NULL);
		double before = random * 0.5, after = before;
		__asm__ volatile("" : "+x"(after));
		raise(SIGUSR1);
		__asm__ volatile("" : "+x"(after));
		bad += before != after;
		swapcontext(&own, &others[(random >> 16) % (STACKS / 2)]);
		if (round % 1000 == 999)
			wrong();
	}
	timer_delete(timer);
	printf("%ld handled, %ld switched, %ld bad, %d pages wrong\n", handled, switched, bad, wrong());
	return 0;
}
