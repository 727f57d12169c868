// Locks of every kind on pages that move: private, shared, with priority inheritance, conditions, semaphores, and the
// calls beneath.
#include "hazard.h"
#include <linux/futex.h>
#include <semaphore.h>

enum { THREADS = 4, LOCKS = 400, ROUNDS = 12000 };

// A page each.
struct lock {
	pthread_mutex_t mutex;
	long count;
	char rest[PAGE - sizeof(pthread_mutex_t) - sizeof(long)];
};

struct turns {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int turn;
	char rest[PAGE];
	sem_t semaphore;
	uint32_t words[2];
};

static struct lock *locks;
static struct turns *turns;
static long bad;

static void *contends(void *number) {
	unsigned random = (long)number + 1;
	for (int round = 0; round < ROUNDS; round++) {
		random = random * 1664525u + 1013904223u;
		struct lock *lock = &locks[(random >> 8) % LOCKS % (round % 2 ? LOCKS : 3)];
		pthread_mutex_lock(&lock->mutex);
		long before = lock->count;
		if (round % 16 == 0)
			sched_yield();
		lock->count = before + 1;
		pthread_mutex_unlock(&lock->mutex);
	}
	for (int turn = 0; turn < 300; turn++) {
		pthread_mutex_lock(&turns->mutex);
		while (turns->turn % THREADS != (long)number)
			pthread_cond_wait(&turns->changed, &turns->mutex);
		turns->turn++;
		pthread_cond_broadcast(&turns->changed);
		pthread_mutex_unlock(&turns->mutex);
		sem_post(&turns->semaphore);
	}
	return NULL;
}

static void *waits(void *word) {
	while (__atomic_load_n((uint32_t *)word, __ATOMIC_ACQUIRE) == 0)
		syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

int main(void) {
	pthread_t threads[THREADS];
	alarm(60);
	fill();
	locks = mmap(NULL, LOCKS * sizeof *locks, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	turns = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int number = 0; number < LOCKS; number++) {
		pthread_mutexattr_t attributes;
		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_setpshared(&attributes, number % 2 ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
		pthread_mutexattr_setprotocol(&attributes, number % 3 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
		pthread_mutex_init(&locks[number].mutex, &attributes);
	}
	pthread_mutex_init(&turns->mutex, NULL);
	pthread_cond_init(&turns->changed, NULL);
	sem_init(&turns->semaphore, 1, 0);
	settle();
	for (long number = 0; number < THREADS; number++)
		pthread_create(&threads[number], NULL, contends, (void *)number);
	for (int post = 0; post < THREADS * 300; post++)
		bad += sem_wait(&turns->semaphore) != 0;
	for (int number = 0; number < THREADS; number++)
		pthread_join(threads[number], NULL);
	long count = 0;
	for (int number = 0; number < LOCKS; number++)
		count += locks[number].count;
	// One call writes a word and wakes those that wait for it: FUTEX_OP_SET 1, and FUTEX_OP_CMP_EQ 0 of what was there.
	for (int round = 0; round < 300; round++) {
		turns->words[0] = turns->words[1] = 0;
		pthread_create(&threads[0], NULL, waits, &turns->words[1]);
		usleep(200);
		syscall(SYS_futex, &turns->words[0], FUTEX_WAKE_OP, 1, (void *)9, &turns->words[1], FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0));
		pthread_join(threads[0], NULL);
		bad += turns->words[1] != 1;
	}
	printf("%ld counted, turn %d, %ld bad, %d pages wrong\n", count, turns->turn, bad, wrong());
	return 0;
}
