// Threads that nobody joins, that are cancelled, that have data to destroy, that the C library starts for timers and for
// input and output, and a signal for each.
#include "hazard.h"
#include <aio.h>
#include <fcntl.h>
#include <semaphore.h>

enum { ROUNDS = 1500 };

static pthread_key_t key;
static atomic_long destroyed, ended, fired;
static long bad;
static __thread char local[3 * PAGE];

static void destroys(void *number) {
	destroyed += (long)number == 7;
}

static void *detached(void *nothing) {
	memset(local, 5, sizeof local);
	pthread_setspecific(key, (void *)7);
	ended += local[PAGE] == 5;
	return nothing;
}

static void *cancelled(void *nothing) {
	pthread_setspecific(key, (void *)7);
	for (;;)
		pause();
	return nothing;
}

static void fires(union sigval value) {
	fired += value.sival_int == 9;
}

static void waits_for(atomic_long *count, long most) {
	while (*count < most)
		usleep(100);
}

int main(void) {
	pthread_attr_t attributes;
	pthread_t thread;
	timer_t timer;
	char *buffer;
	alarm(60);
	fill();
	pthread_key_create(&key, destroys);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	settle();
	for (long round = 1; round <= ROUNDS; round++) {
		bad += pthread_create(&thread, &attributes, detached, NULL) != 0;
		waits_for(&ended, round);
		if (round % 3)
			continue;
		void *result;
		bad += pthread_create(&thread, NULL, cancelled, NULL) != 0;
		bad += pthread_cancel(thread) != 0 || pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED;
	}
	struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = fires, .sigev_value.sival_int = 9 };
	struct itimerspec often = { .it_interval.tv_nsec = 2000000, .it_value.tv_nsec = 2000000 };
	bad += timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL);
	waits_for(&fired, 50);
	timer_delete(timer);
	buffer = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int file = open("threads.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600);
	unlink("threads.tmp");
	for (int round = 0; round < 100; round++) {
		struct aiocb all = { .aio_fildes = file, .aio_buf = buffer, .aio_nbytes = 1 << 20 };
		const struct aiocb *list[] = { &all };
		memset(buffer, round, 1 << 20);
		for (int reads = 0; reads < 2; reads++) {
			bad += reads ? aio_read(&all) : aio_write(&all);
			while (aio_error(&all) == EINPROGRESS)
				aio_suspend(list, 1, NULL);
			bad += aio_return(&all) != 1 << 20;
			bad += buffer[777777] != (char)round;
			memset(buffer, reads ? round : 0, 1 << 20);
		}
	}
	printf("%ld ended, %ld bad, %d pages wrong\n", (long)ended, bad, wrong());
	return 0;
}
