// System calls that write to and read from memory whose pages move, and time limits.
#include "hazard.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

enum { ROUNDS = 5000 };

static long bad;
static unsigned random_number = 1;

// Somewhere in memory, across two pages.
static void *any(void) {
	random_number = random_number * 1664525u + 1013904223u;
	return (char *)(pages + ((random_number >> 8) % (PAGES - 3) + 1) * WORDS) - 100;
}

int main(void) {
	int ends[2], pair[2], event = epoll_create1(0);
	char saved[512];
	alarm(60);
	fill();
	bad += pipe(ends) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
	struct epoll_event watched = { .events = EPOLLIN, .data.u64 = 0x1234567890abcdef };
	epoll_ctl(event, EPOLL_CTL_ADD, ends[0], &watched);
	settle();
	for (int round = 0; round < ROUNDS; round++) {
		char *at = any(), *to = any();
		// The end of one page and the beginning of the next, which has its number: put back at the end.
		memcpy(saved, at, 400);
		memset(at, round, 100);
		bad += write(ends[1], at, 100) != 100;
		struct epoll_event *got = (void *)at;
		bad += epoll_wait(event, got, 4, 1000) != 1 || got->data.u64 != watched.data.u64;
		memset(at, 0, 100);
		bad += read(ends[0], at, 100) != 100 || at[50] != (char)round || at[99] != (char)round;
		struct iovec parts[2] = { { at, 60 }, { at + 60, 40 } };
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		bad += sendmsg(pair[0], &message, 0) != 100;
		memset(at, 0, 100);
		bad += recvmsg(pair[1], &message, 0) != 100 || at[99] != (char)round;
		memcpy(at, saved, 400);
		struct timespec *time = (void *)(to + 40);
		memcpy(saved, to, 400);
		bad += clock_gettime(CLOCK_MONOTONIC, time) || syscall(SYS_clock_gettime, CLOCK_MONOTONIC, time) || time->tv_nsec >= 1000000000;
		struct stat *about = (void *)to;
		bad += fstat(ends[0], about) != 0 || !S_ISFIFO(about->st_mode);
		strcpy(to, "/proc/self/status");
		int file = open(to, O_RDONLY);
		bad += file < 0 || read(file, to, 300) != 300 || memcmp(to, "Name:", 5) != 0;
		close(file);
		struct pollfd *polled = (void *)to;
		*polled = (struct pollfd){ ends[0], POLLIN, 0 };
		bad += poll(polled, 1, 0) != 0;
		memcpy(to, saved, 400);
	}
	printf("%ld bad, %d pages wrong\n", bad, wrong());
	return 0;
}
