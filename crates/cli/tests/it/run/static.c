/* Submits descriptors through a mapped portal from a program without a dynamic linker, and says what
 * comes of it: static MODE NODE. Mnemonics are spelled in bytes for older assemblers. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOOP = 0, MEMMOVE = 3, PAGE = 4096, THREADS = 4, COPIES = 50 };

struct descriptor {
	uint32_t pasid, flags_operation;
	uint64_t completion, source, destination;
	uint32_t size;
	uint8_t rest[28];
} __attribute__((aligned(64)));

struct record {
	volatile uint8_t status;
	uint8_t rest[31];
} __attribute__((aligned(32)));

static void fail(const char *what)
{
	perror(what);
	exit(3);
}

static void movdir64b(volatile void *to, const void *from)
{
	/* movdir64b (%rsi), %rdi */
	__asm__ volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x3e" ::"D"(to), "S"(from) : "memory");
}

static int enqcmd(volatile void *to, const void *from)
{
	uint8_t again;
	/* enqcmd (%rsi), %rdi */
	__asm__ volatile(".byte 0xf2, 0x0f, 0x38, 0xf8, 0x3e; setz %0"
			 : "=q"(again)
			 : "D"(to), "S"(from)
			 : "memory", "cc");
	return again;
}

#ifdef RAW
/* Past the C library. */
static long raw(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long answer;
	__asm__ volatile("syscall"
			 : "=a"(answer)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (answer < 0) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

static int raw_open(const char *path, int flags)
{
	return (int)raw(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

#define open raw_open
#define mmap(at, bytes, protection, flags, fd, offset) \
	((void *)raw(SYS_mmap, (long)(at), bytes, protection, flags, fd, offset))
#endif

/* close(2), past the C library. */
static void close_past(int fd)
{
	long answer;
	__asm__ volatile("syscall" : "=a"(answer) : "a"(SYS_close), "D"(fd) : "rcx", "r11", "memory");
}

static int open_node(const char *node)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(node);
	return fd;
}

static volatile char *map_node(int fd)
{
	volatile char *portal = mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (portal == MAP_FAILED)
		fail("mmap");
	return portal;
}

static int shared;

static void submit(volatile char *portal, const struct descriptor *work)
{
	if (!shared)
		movdir64b(portal, work);
	else
		while (enqcmd(portal, work))
			sched_yield();
}

/* The status that the device writes. */
static int carry_out(volatile char *portal, int operation, const void *from, void *to, uint32_t size)
{
	struct record record = {0};
	struct descriptor work = {
		.flags_operation = (uint32_t)operation << 24 | 0x0c,
		.completion = (uintptr_t)&record,
		.source = (uintptr_t)from,
		.destination = (uintptr_t)to,
		.size = size,
	};
	submit(portal, &work);
	while (record.status == 0)
		sched_yield();
	return record.status;
}

static int copies(volatile char *portal, int count, unsigned seed)
{
	char *from = malloc(PAGE), *to = malloc(PAGE);
	int good = 0;
	for (int i = 0; i < count; i++) {
		memset(from, (int)(seed + i) & 0xff, PAGE);
		memset(to, 0, PAGE);
		good += carry_out(portal, MEMMOVE, from, to, PAGE) == 1 && !memcmp(from, to, PAGE);
	}
	free(from);
	free(to);
	return good;
}

static volatile char *thread_portal;

static void *thread(void *number)
{
	return (void *)(intptr_t)copies(thread_portal, COPIES, (unsigned)(intptr_t)number * 7);
}

static int yields;

/* How many copies of 64 KiB one thread has done in a second and a half. */
static void *poller(void *number)
{
	enum { SIZE = 1 << 16 };
	(void)number;
	char *from = malloc(SIZE), *to = malloc(SIZE);
	struct record record;
	struct descriptor work = {
		.flags_operation = (uint32_t)MEMMOVE << 24 | 0x0c,
		.completion = (uintptr_t)&record,
		.source = (uintptr_t)from,
		.destination = (uintptr_t)to,
		.size = SIZE,
	};
	memset(from, 1, SIZE);
	memset(to, 0, SIZE);
	intptr_t done = 0;
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	double end = time.tv_sec + time.tv_nsec / 1e9 + 1.5;
	while (time.tv_sec + time.tv_nsec / 1e9 < end) {
		record.status = 0;
		submit(thread_portal, &work);
		while (record.status == 0) {
			if (yields)
				sched_yield();
			else
				__builtin_ia32_pause();
		}
		done += record.status == 1;
		clock_gettime(CLOCK_MONOTONIC, &time);
	}
	free(from);
	free(to);
	return (void *)done;
}

static sigjmp_buf back;
static volatile int code;
static void *volatile address;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	code = info->si_code;
	address = info->si_addr;
	siglongjmp(back, 1);
}

static void handle_faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, NULL);
}

/* What the program's handler is told of a submission that faults. */
static void faulting(const char *name, volatile char *portal)
{
	static const struct descriptor work;
	code = 0;
	if (sigsetjmp(back, 1) == 0)
		movdir64b(portal, &work);
	printf("%s code %d there %d\n", name, code, address == portal);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* What it was started with, as far as whoever starts it decides it. */
static int state(char **argv)
{
	char directory[PAGE];
	for (; *argv; argv++)
		printf("%s ", *argv);
	printf("in %s\n", getcwd(directory, PAGE) ? directory : "?");
	mode_t mask = umask(0);
	sigset_t blocked;
	sigprocmask(SIG_BLOCK, NULL, &blocked);
	printf("umask %o leader %d blocked", mask, getpgrp() == getpid());
	for (int signal = 1; signal < 32; signal++)
		if (sigismember(&blocked, signal))
			printf(" %d", signal);
	printf(" ignored");
	for (int signal = 1; signal < 32; signal++) {
		struct sigaction action;
		if (!sigaction(signal, NULL, &action) && action.sa_handler == SIG_IGN)
			printf(" %d", signal);
	}
	printf("\nfiles");
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf(" %d", fd);
	const char *mark = getenv("MARK");
	printf(" mark %s effective %d no-new-privs %d\n", mark ? mark : "-", geteuid(),
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	return 4;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		return 2;
	const char *mode = argv[1];
	if (!strcmp(mode, "state"))
		return state(argv);
	/* A script's interpreter gets the script's name in between. */
	const char *node = argv[argc - 1];
	int fd = open_node(node);
	shared = strstr(mode, "shared") != NULL;
	volatile char *portal = map_node(fd);

	if (!strncmp(mode, "copy", 4)) {
		printf("copies %d\n", copies(portal, COPIES, 1));
		/* The mapping outlives the file. */
		close(fd);
		printf("closed %d\n", copies(portal, 1, 9));
	} else if (!strncmp(mode, "threads", 7)) {
		pthread_t threads[THREADS];
		int good = 0;
		thread_portal = portal;
		for (intptr_t i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, thread, (void *)i))
				fail("pthread_create");
		for (int i = 0; i < THREADS; i++) {
			void *some;
			pthread_join(threads[i], &some);
			good += (int)(intptr_t)some;
		}
		printf("copies %d\n", good);
	} else if (!strcmp(mode, "fork-shared")) {
		pid_t child = fork();
		if (child == 0) {
			handle_faults();
			faulting("inherited", portal);
			volatile char *own = map_node(open_node(node));
			printf("own %d\n", copies(own, 2, 5));
			_exit(0);
		}
		int status;
		waitpid(child, &status, 0);
		printf("child %d parent %d\n", status, copies(portal, 2, 6));
		child = vfork();
		if (child == 0)
			_exit(carry_out(portal, NOOP, NULL, NULL, 0));
		waitpid(child, &status, 0);
		printf("vfork %d\n", WEXITSTATUS(status));
	} else if (!strcmp(mode, "handler")) {
		handle_faults();
		printf("before %d\n", copies(portal, 1, 1));
		faulting("nowhere", (volatile char *)PAGE);
		printf("between %d\n", copies(portal, 1, 2));
		faulting("unaligned", portal + 8);
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		printf("blocked %d\n", copies(portal, 1, 3));
	} else if (!strcmp(mode, "memory")) {
		handle_faults();
		*(volatile uint64_t *)portal = 1;
		memset((void *)portal, 0, 256);
		printf("after stores %d\n", copies(portal, 1, 1));
		printf("load %d\n", *(volatile uint32_t *)(portal + 4) == UINT32_MAX);
		printf("protect %d\n", mprotect((void *)portal, PAGE, PROT_READ));
		faulting("read-only", portal);
		mprotect((void *)portal, PAGE, PROT_READ | PROT_WRITE);
		printf("writable %d\n", copies(portal, 1, 1));
		printf("too long %d\n", mmap(NULL, 2 * PAGE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
		munmap((void *)portal, PAGE);
		faulting("unmapped", portal);
		printf("again %d\n", copies(map_node(fd), 1, 2));
	} else if (!strcmp(mode, "exec")) {
		printf("first %d\n", copies(portal, 1, 1));
		execl("/proc/self/exe", argv[0], "copy", node, NULL);
		fail("execl");
	} else if (!strcmp(mode, "keep-shared")) {
		char number[16];
		snprintf(number, sizeof number, "%d", fd);
		fcntl(fd, F_SETFD, 0);
		printf("first %d\n", copies(portal, 1, 1));
		/* A descriptor that nobody sees would be waited for for ever. */
		alarm(30);
		execl("/proc/self/exe", argv[0], "kept-shared", number, node, NULL);
		fail("execl");
	} else if (!strcmp(mode, "kept-shared")) {
		void *inherited = mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, atoi(argv[2]), 0);
		printf("refused %d\n", inherited == MAP_FAILED && errno == EPERM);
		printf("own %d\n", copies(portal, 2, 1));
	} else if (!strncmp(mode, "close", 5)) {
		/* Descriptors that the program knows nothing of are closed, or become others. */
		enum { MOST = 1100 };
		/* A descriptor that nobody sees would be waited for for ever. */
		alarm(30);
		printf("before %d\n", copies(portal, 1, 1));
		for (int i = 3; i < MOST; i++)
			close(i);
		printf("close %d\n", copies(portal, 1, 2));
		for (int i = 3; i < MOST; i++)
			syscall(SYS_close, i);
		syscall(SYS_close_range, 3, ~0U, 0);
		printf("syscall %d\n", copies(portal, 1, 3));
		close_range(3, ~0U, 0);
		closefrom(3);
		printf("ranges %d\n", copies(portal, 1, 4));
		for (int i = 3; i < MOST; i++)
			dup2(0, i);
		printf("dup2 %d\n", copies(portal, 1, 5));
		for (int i = 3; i < MOST; i++)
			close_past(i);
		printf("past %d\n", copies(portal, 1, 6));
		munmap((void *)portal, PAGE);
		closefrom(3);
		portal = map_node(open_node(node));
		printf("again %d\n", copies(portal, 1, 7));
	} else if (!strcmp(mode, "move")) {
		handle_faults();
		char *room = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		printf("before %d\n", copies(portal, 1, 1));
		void *moved = mremap((void *)portal, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE);
		printf("moved %d there %d\n", copies(moved, 1, 2), moved == room + PAGE);
		faulting("former", portal);
		printf("grown %d\n", mremap(moved, PAGE, 2 * PAGE, MREMAP_MAYMOVE) != MAP_FAILED);
		printf("still %d\n", copies(moved, 1, 3));
		close(fd);
		munmap(room, 3 * PAGE);
		printf("again %d\n", copies(map_node(open_node(node)), 1, 4));
	} else if (!strcmp(mode, "exit")) {
		printf("copies %d\n", copies(portal, 1, 1));
		return 7;
	} else if (!strcmp(mode, "raise")) {
		printf("copies %d\n", copies(portal, 1, 1));
		raise(SIGTERM);
	} else if (!strncmp(mode, "endless", 7)) {
		puts("ready");
		for (;;)
			copies(portal, 1, 1);
	} else if (!strncmp(mode, "poll", 4)) {
		/* Copies of 64 KiB a second by as many threads: poll-{pause,yield}[-shared] THREADS NODE. */
		int count = atoi(argv[2]);
		pthread_t threads[64];
		long good = 0;
		thread_portal = portal;
		yields = strstr(mode, "yield") != NULL;
		double begin = now();
		for (intptr_t i = 0; i < count && i < 64; i++)
			if (pthread_create(&threads[i], NULL, poller, (void *)i))
				fail("pthread_create");
		for (int i = 0; i < count && i < 64; i++) {
			void *some;
			pthread_join(threads[i], &some);
			good += (long)(intptr_t)some;
		}
		printf("%s %d threads: %.0f copies a second\n", mode, count, good / ((now() - begin) / 1e9));
	} else if (!strncmp(mode, "measure", 7)) {
		enum { SAMPLES = 4000 };
		static double samples[SAMPLES];
		struct record record = {0};
		struct descriptor work = {.flags_operation = 0x0c, .completion = (uintptr_t)&record};
		for (int i = 0; i < SAMPLES; i++) {
			record.status = 0;
			double begin = now();
			submit(portal, &work);
			samples[i] = now() - begin;
			while (record.status == 0)
				sched_yield();
		}
		qsort(samples, SAMPLES, sizeof *samples, compare);
		printf("median %.0f ns, quartiles %.0f and %.0f\n", samples[SAMPLES / 2],
		       samples[SAMPLES / 4], samples[SAMPLES * 3 / 4]);
	} else {
		return 2;
	}
	return 0;
}
