// Children with a copy of memory, or on the same, by each call that makes one: what they read.
#include "hazard.h"
#include <linux/sched.h>
#include <spawn.h>

enum { CHILDREN = 30 };

static void *allocates(void *nothing) {
	for (;;) {
		char *some = malloc(200000);
		memset(some, 1, 200000);
		free(some);
		wrong();
	}
	return nothing;
}

static int checks(void *nothing) {
	(void)nothing;
	return wrong() != 0;
}

static long make(const char *how, char *stack) {
	if (!strcmp(how, "fork") || !strcmp(how, "threads"))
		return fork();
	if (!strcmp(how, "_Fork"))
		return _Fork();
	if (!strcmp(how, "clone"))
		return clone(checks, stack, SIGCHLD, NULL);
	// On the same memory, and the parent waits, or not.
	if (!strcmp(how, "clone-vm"))
		return clone(checks, stack, SIGCHLD | CLONE_VM, NULL);
	if (!strcmp(how, "vfork"))
		return clone(checks, stack, SIGCHLD | CLONE_VM | CLONE_VFORK, NULL);
	if (!strcmp(how, "SYS_fork"))
		return syscall(SYS_fork);
	if (!strcmp(how, "SYS_clone"))
		return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!strcmp(how, "SYS_clone3")) {
		struct clone_args arguments = { .exit_signal = SIGCHLD };
		return syscall(SYS_clone3, &arguments, sizeof arguments);
	}
	if (!strcmp(how, "spawn")) {
		pid_t child = -1;
		char *words[] = { "true", NULL };
		return posix_spawn(&child, "/bin/true", NULL, NULL, words, NULL) ? -1 : child;
	}
	long answer = SYS_fork;
	__asm__ volatile("syscall" : "+a"(answer) : : "rcx", "r11", "memory");
	return answer;
}

int main(int count, char **words) {
	const char *how = count > 1 ? words[1] : "fork";
	static char stack[65536];
	int bad = 0;
	alarm(120);
	fill();
	settle();
	for (int thread = 0; thread < 3 && !strcmp(how, "threads"); thread++) {
		pthread_t number;
		pthread_create(&number, NULL, allocates, NULL);
	}
	for (int child = 0; child < CHILDREN; child++) {
		long pid = make(how, stack + sizeof stack);
		if (pid == 0) {
			if (!strcmp(how, "threads"))
				free(malloc(300000));
			syscall(SYS_exit_group, wrong() != 0);
		}
		int status = -1;
		waitpid(pid, &status, 0);
		bad += status != 0;
		usleep(500);
	}
	for (int turn = 0; turn < 5 && !strcmp(how, "spawn"); turn++)
		bad += system("exit 3") != 3 << 8;
	printf("%d children by %s, %d bad, %d pages wrong\n", CHILDREN, how, bad, wrong());
	return 0;
}
