/* Executes a program in one of the ways that the C library has: start WAY PROGRAM ARGUMENT... Says
 * what went wrong if it could not, and otherwise ends as the program does. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char **program;

static int failed(void)
{
	printf("errno %d\n", errno);
	return 9;
}

static int ended(pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status)) {
		printf("signal %d\n", WTERMSIG(status));
		return 8;
	}
	return WEXITSTATUS(status);
}

static void *thread(void *nothing)
{
	(void)nothing;
	execv(program[0], program);
	exit(failed());
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 5)
		return 2;
	const char *way = argv[1];
	char **a = program = argv + 2;
	pid_t child;

	if (!strcmp(way, "execl"))
		execl(a[0], a[0], a[1], a[2], a[3], NULL);
	else if (!strcmp(way, "execl-many"))
		execl(a[0], a[0], a[1], a[2], "3", "4", "5", "6", "7", "8", NULL);
	else if (!strcmp(way, "execlp"))
		execlp(a[0], a[0], a[1], a[2], a[3], NULL);
	else if (!strcmp(way, "execle"))
		execle(a[0], a[0], a[1], a[2], a[3], NULL, environ);
	else if (!strcmp(way, "execv"))
		execv(a[0], a);
	else if (!strcmp(way, "execvp"))
		execvp(a[0], a);
	else if (!strcmp(way, "execve"))
		execve(a[0], a, environ);
	else if (!strcmp(way, "execve-nothing"))
		execve(a[0], a, (char *[]){NULL});
	else if (!strcmp(way, "execvpe"))
		execvpe(a[0], a, environ);
	else if (!strcmp(way, "execveat"))
		execveat(AT_FDCWD, a[0], a, environ, 0);
	else if (!strcmp(way, "execveat-below"))
		execveat(open("/", O_PATH | O_CLOEXEC), a[0] + 1, a, environ, 0);
	else if (!strcmp(way, "execveat-file"))
		execveat(open(a[0], O_PATH | O_CLOEXEC), "", a, environ, AT_EMPTY_PATH);
	else if (!strcmp(way, "fexecve"))
		fexecve(open(a[0], O_RDONLY | O_CLOEXEC), a, environ);
	else if (!strcmp(way, "vfork")) {
		child = vfork();
		if (child == 0) {
			execv(a[0], a);
			_exit(failed());
		}
		return ended(child);
	} else if (!strcmp(way, "fork")) {
		child = fork();
		if (child == 0) {
			execv(a[0], a);
			_exit(failed());
		}
		return ended(child);
	} else if (!strcmp(way, "traced")) {
		int status, signal = 0;
		child = fork();
		if (child == 0) {
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
			execv(a[0], a);
			_exit(failed());
		}
		while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
			/* Of exec. */
			signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
			ptrace(PTRACE_CONT, child, NULL, (void *)(long)signal);
		}
		return WEXITSTATUS(status);
	} else if (!strcmp(way, "thread")) {
		pthread_t other;
		if (!pthread_create(&other, NULL, thread, NULL))
			pthread_join(other, NULL);
	} else if (!strcmp(way, "posix_spawn") || !strcmp(way, "posix_spawnp")) {
		int path = way[11] == 'p';
		errno = (path ? posix_spawnp : posix_spawn)(&child, a[0], NULL, NULL, a, environ);
		if (errno == 0)
			return ended(child);
	} else if (!strcmp(way, "posix_spawn-moved")) {
		/* With all that may be done to a child. */
		posix_spawn_file_actions_t actions;
		posix_spawnattr_t attributes;
		sigset_t some;
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_addclose(&actions, 0);
		posix_spawn_file_actions_adddup2(&actions, 1, 7);
		posix_spawn_file_actions_addchdir_np(&actions, "/usr");
		posix_spawnattr_init(&attributes);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
		sigemptyset(&some);
		sigaddset(&some, SIGUSR1);
		posix_spawnattr_setsigmask(&attributes, &some);
		errno = posix_spawn(&child, a[0], &actions, &attributes, a, environ);
		if (errno == 0)
			return ended(child);
	} else
		return 2;
	return failed();
}
