// What a program with one thread and no children sees of itself, and how its last thread ends it.
#include "hazard.h"
#include <dirent.h>

static int entries(const char *path) {
	int count = -2;
	DIR *directory = opendir(path);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void ends(void) {
	puts("the last thread has ended");
}

static void *last(void *nothing) {
	usleep(300000);
	return nothing;
}

int main(int count, char **words) {
	alarm(60);
	fill();
	settle();
	printf("threads %d", entries("/proc/self/task"));
	int waited = waitpid(-1, NULL, WNOHANG | __WALL);
	printf(", children %d %d", waited, errno);
	printf(", user namespace %d", unshare(CLONE_NEWUSER) ? errno : 0);
	printf(", files %d, %d pages wrong\n", entries("/proc/self/fd"), wrong());
	if (count > 1 && !strcmp(words[1], "exec")) {
		fflush(stdout);
		execl(words[0], words[0], NULL);
	}
	atexit(ends);
	pthread_t thread;
	pthread_create(&thread, NULL, last, NULL);
	pthread_exit(NULL);
}
