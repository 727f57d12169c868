// Threads whose restartable sequences are registered on pages that move: the kernel writes the number of the processor
// there whenever a thread comes back to one.
#include "hazard.h"
#include <sys/rseq.h>

enum { THREADS = 6, SIGNATURE = 0x53053053 };

static char *areas;
static atomic_long bad;

static void *runs(void *number) {
	volatile struct rseq *area = (struct rseq *)(areas + (long)number * 7 * PAGE);
	struct rseq *before = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	if (__rseq_size && syscall(SYS_rseq, before, 32, RSEQ_FLAG_UNREGISTER, SIGNATURE))
		return (void *)1;
	area->cpu_id = RSEQ_CPU_ID_UNINITIALIZED;
	if (syscall(SYS_rseq, area, 32, 0, SIGNATURE))
		return (void *)2;
	double end = seconds() + 1;
	while (seconds() < end) {
		unsigned processor = 0;
		sched_yield();
		for (int turn = 0; turn < 100; turn++) {
			unsigned first = area->cpu_id;
			syscall(SYS_getcpu, &processor, NULL, NULL);
			// Between the two the thread may have moved.
			bad += first == area->cpu_id && first != processor && first == area->cpu_id && first > 4096;
		}
		usleep(100);
	}
	bad += area->cpu_id > 4096;
	return (void *)(long)(syscall(SYS_rseq, area, 32, RSEQ_FLAG_UNREGISTER, SIGNATURE) ? 3 : 0);
}

int main(void) {
	pthread_t threads[THREADS];
	long failed = 0;
	alarm(60);
	fill();
	areas = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(areas, 0, 4 << 20);
	settle();
	for (long number = 0; number < THREADS; number++)
		pthread_create(&threads[number], NULL, runs, (void *)number);
	for (int number = 0; number < THREADS; number++) {
		void *result;
		pthread_join(threads[number], &result);
		failed += (long)result;
	}
	printf("%ld failed, %ld bad, %d pages wrong\n", failed, (long)bad, wrong());
	return 0;
}
