// Children with a copy of memory, by each call that makes one: what they read.
#include "hazard.h"

enum { CHILDREN = 30 };

static int checks(void *nothing) {
	(void)nothing;
	return wrong() != 0;
}

static long make(const char *how, char *stack) {
	if (!strcmp(how, "fork"))
		return fork();
	if (!strcmp(how, "_Fork"))
		return _Fork();
	if (!strcmp(how, "clone"))
		return clone(checks, stack, SIGCHLD, NULL);
	if (!strcmp(how, "SYS_fork"))
		return syscall(SYS_fork);
	if (!strcmp(how, "SYS_clone"))
		return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
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
	for (int child = 0; child < CHILDREN; child++) {
		long pid = make(how, stack + sizeof stack);
		if (pid == 0)
			syscall(SYS_exit_group, wrong() != 0);
		int status = -1;
		waitpid(pid, &status, 0);
		bad += status != 0;
		usleep(500);
	}
	printf("%d children by %s, %d bad, %d pages wrong\n", CHILDREN, how, bad, wrong());
	return 0;
}
