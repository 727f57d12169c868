// Another process reads memory while its pages move: process_vm_readv(2) and process_vm_writev(2), which wait; /proc/PID/mem
// and ptrace(2), which do not, and which debuggers use on a program that has stopped.
#include "hazard.h"
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

static pid_t other;

// A child with memory of its own, which touches it without end.
static void start(void) {
	int ends[2];
	char byte;
	if (pipe(ends) || (other = fork()) < 0)
		exit(1);
	if (other == 0) {
		alarm(60);
		number_pages();
		settle();
		if (write(ends[1], "r", 1) != 1)
			_exit(1);
		for (;;) {
			wrong();
			usleep(500);
		}
	}
	if (read(ends[0], &byte, 1) != 1)
		exit(1);
}

static long by_call(void) {
	long bad = 0;
	for (size_t page = 0; page < PAGES; page++) {
		uint64_t value = 0, expected = page * 2654435761u + 1;
		struct iovec here = { &value, 8 }, there = { &pages[page * WORDS], 8 };
		bad += process_vm_readv(other, &here, 1, &there, 1, 0) != 8 || value != expected;
		struct iovec next = { (char *)there.iov_base + 8, 8 };
		bad += process_vm_writev(other, &here, 1, &next, 1, 0) != 8;
		value = 0;
		bad += process_vm_readv(other, &here, 1, &next, 1, 0) != 8 || value != expected;
	}
	return bad;
}

static long by_file(void) {
	char path[40];
	long bad = 0;
	snprintf(path, sizeof path, "/proc/%d/mem", other);
	int file = open(path, O_RDONLY);
	for (size_t page = 0; page < PAGES; page++) {
		uint64_t value = 0;
		bad += pread(file, &value, 8, (uintptr_t)&pages[page * WORDS]) != 8 || value != page * 2654435761u + 1;
	}
	return bad;
}

static long by_trace(void) {
	long bad = 0;
	for (size_t page = 0; page < PAGES; page++) {
		errno = 0;
		long value = ptrace(PTRACE_PEEKDATA, other, &pages[page * WORDS], NULL);
		bad += errno != 0 || value != (long)(page * 2654435761u + 1);
		bad += ptrace(PTRACE_POKEDATA, other, &pages[page * WORDS + 1], value) != 0;
	}
	return bad;
}

int main(int count, char **words) {
	const char *how = count > 1 ? words[1] : "call";
	long bad = 0;
	int status;
	alarm(60);
	fill();
	start();
	for (int turn = 0; turn < 8; turn++) {
		if (!strcmp(how, "call"))
			bad += by_call();
		if (!strcmp(how, "running"))
			bad += by_file();
		if (!strcmp(how, "stopped")) {
			kill(other, SIGSTOP);
			waitpid(other, &status, WUNTRACED);
			usleep(20000);
			bad += by_file();
			kill(other, SIGCONT);
		}
		if (!strcmp(how, "traced")) {
			bad += ptrace(PTRACE_SEIZE, other, NULL, NULL) || ptrace(PTRACE_INTERRUPT, other, NULL, NULL);
			waitpid(other, &status, __WALL);
			usleep(20000);
			bad += by_trace();
			ptrace(PTRACE_DETACH, other, NULL, NULL);
		}
		usleep(50000);
	}
	kill(other, SIGKILL);
	waitpid(other, &status, 0);
	printf("%s: %ld bad, status %d, %d pages wrong\n", how, bad, status, wrong());
	return 0;
}
