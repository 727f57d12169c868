// A sandbox for all threads: what this program does not need itself fails, or kills it. Threads and children after it.
#include "hazard.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

static const int allowed[] = {
	SYS_read, SYS_write, SYS_close, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_brk, SYS_madvise, SYS_exit, SYS_exit_group,
	SYS_clock_nanosleep, SYS_clock_gettime, SYS_futex, SYS_newfstatat, SYS_fstat, SYS_clone, SYS_clone3, SYS_wait4,
	SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_set_robust_list, SYS_rseq, SYS_getrandom, SYS_gettid, SYS_getpid, SYS_alarm, SYS_rt_sigaction,
};

enum { COUNT = sizeof allowed / sizeof *allowed };

static void *adds(void *number) {
	return (void *)((long)number + 1);
}

int main(int count, char **words) {
	unsigned otherwise = count > 1 && !strcmp(words[1], "kill") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
	struct sock_filter filter[COUNT + 3];
	int length = 0;
	alarm(60);
	fill();
	settle();
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int number = 0; number < COUNT; number++)
		filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[number], COUNT - number, 0);
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
	filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { length, filter };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long set = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	printf("set %ld", set);
	fflush(stdout);
	settle();
	pthread_t thread;
	void *result = NULL;
	for (int turn = 0; turn < 50; turn++) {
		if (pthread_create(&thread, NULL, adds, (void *)41) != 0)
			return 7;
		pthread_join(thread, &result);
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(wrong() != 0);
	int status = -1;
	waitpid(pid, &status, 0);
	printf(", thread %ld, child %d, %d pages wrong\n", (long)result, status, wrong());
	return 0;
}
