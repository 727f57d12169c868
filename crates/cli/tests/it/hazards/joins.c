// Threads on small stacks are started and joined; a join that never returns is ended by the alarm.
// Little else moves, so that they move often.
#define PAGES 512
#include "hazard.h"
#include <threads.h>

enum { ROUNDS = 8000, STACK = 64 << 10 };

static char *stacks;

static void *child(void *number) {
	char used[2000];
	memset(used, (long)number, sizeof used);
	return (void *)(long)used[77];
}

static int c11(void *number) {
	return (int)(long)child(number);
}

static void *parent(void *argument) {
	long id = (long)argument, bad = 0;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstack(&attributes, stacks + id * STACK, STACK);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread;
		void *result;
		bad += pthread_create(&thread, &attributes, child, (void *)(id + 5)) != 0;
		bad += pthread_join(thread, &result) != 0 || (long)result != id + 5;
	}
	return (void *)bad;
}

int main(void) {
	long bad = 0;
	alarm(120);
	fill();
	stacks = mmap(NULL, 64 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(stacks, 1, 64 * STACK);
	settle();
	pthread_t parents[2];
	for (long id = 0; id < 2; id++)
		pthread_create(&parents[id], NULL, parent, (void *)id);
	for (int id = 0; id < 2; id++) {
		void *result;
		pthread_join(parents[id], &result);
		bad += (long)result;
	}
	for (int round = 0; round < ROUNDS / 4; round++) {
		thrd_t thread;
		int result;
		bad += thrd_create(&thread, c11, (void *)9) != thrd_success;
		bad += thrd_join(thread, &result) != thrd_success || result != 9;
	}
	printf("joined, %ld bad, %d pages wrong\n", bad, wrong());
	return 0;
}
