/* Reads and writes an attribute by streams, by posix_spawn and by vfork, and says what comes of it:
 * paths ATTRIBUTE. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file) {
		printf("fopen %s\n", strerror(errno));
		return;
	}
	fputs(text, file);
	printf("fclose %s\n", fclose(file) ? strerror(errno) : "well");
}

int main(int argc, char **argv)
{
	const char *path = argv[argc - 1];
	char text[512] = "";
	char *cat[] = { "cat", NULL };
	posix_spawn_file_actions_t actions;
	pid_t child;
	int watch, status, fd;

	setvbuf(stdout, NULL, _IONBF, 0);
	put(path, "7");
	put(path, "7000");
	put("/sys/bus/dsa/devices/dsa0/version", "1");
	printf("freopen %s", fgets(text, sizeof text, freopen(path, "r", stdin)));

	watch = inotify_init1(IN_NONBLOCK);
	inotify_add_watch(watch, path, IN_MODIFY);
	fd = open(path, O_RDWR | O_TRUNC);
	printf("write %zd, ", write(fd, "9", 1));
	printf("pread %zd, ", pread(fd, text, sizeof text, 0));
	printf("ftruncate %d, ", ftruncate(fd, 0));
	printf("read %zd, ", read(fd, text, sizeof text));
	printf("told %d\n", read(watch, text, sizeof text) > 0);

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, path, O_RDONLY, 0);
	printf("posix_spawn ");
	if (posix_spawnp(&child, "cat", &actions, NULL, cat, environ))
		return 1;
	waitpid(child, &status, 0);

	child = vfork();
	if (!child) {
		fd = open(path, O_WRONLY);
		_exit(write(fd, "5", 1));
	}
	waitpid(child, &status, 0);
	printf("vfork %d\n", WEXITSTATUS(status));
	snprintf(text, sizeof text, "cat %s", path);
	return system(text);
}
