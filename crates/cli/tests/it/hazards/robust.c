// A process is killed whose threads hold robust mutexes: each is released by the kernel.
// Little else moves, so that their pages move often.
#define PAGES 1024
#include "hazard.h"

enum { THREADS = 250, KILLS = 4 };

struct shared {
	pthread_mutex_t mutexes[THREADS];
	atomic_int held;
};

static struct shared *shared;

static void *hold(void *number) {
	char used[3000];
	memset(used, 1, sizeof used);
	pthread_mutex_lock(&shared->mutexes[(long)number]);
	atomic_fetch_add(&shared->held, 1);
	for (;;)
		pause();
	return NULL;
}

static void holder(void) {
	fill();
	for (long number = 0; number < THREADS; number++) {
		pthread_t thread;
		pthread_create(&thread, NULL, hold, (void *)number);
	}
	for (;;) {
		wrong();
		usleep(1000);
	}
}

int main(void) {
	int lost = 0, other = 0;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int turn = 0; turn < KILLS; turn++) {
		pthread_mutexattr_t attributes;
		pthread_mutexattr_init(&attributes);
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		for (int number = 0; number < THREADS; number++)
			pthread_mutex_init(&shared->mutexes[number], &attributes);
		shared->held = 0;
		pid_t pid = fork();
		if (pid == 0)
			holder();
		while (shared->held < THREADS)
			usleep(1000);
		usleep(1500000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		for (int number = 0; number < THREADS; number++) {
			int answer = pthread_mutex_trylock(&shared->mutexes[number]);
			lost += answer == EBUSY;
			other += answer != EBUSY && answer != EOWNERDEAD;
		}
	}
	printf("%d mutexes locked for ever, %d otherwise\n", lost, other);
	return 0;
}
