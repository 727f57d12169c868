// The kernel and devices read and write memory by its pages while these move: O_DIRECT, vmsplice(2), MSG_ZEROCOPY, and
// io_uring with buffers that are registered, or read by its workers.
#include "hazard.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { SIZE = 64 * PAGE, ROUNDS = 120 };

static char *memory;
static long bad;
static unsigned random_number = 1;

// Another part of memory each time, filled by its round.
static char *part(int round) {
	random_number = random_number * 1664525u + 1013904223u;
	char *start = memory + (random_number >> 8) % 31 * (2 * SIZE);
	for (int word = 0; word < SIZE / 8; word++)
		((uint64_t *)start)[word] = word * 40503ull + round;
	return start;
}

static void check(const char *start, int round) {
	for (int word = 0; word < SIZE / 8; word++)
		bad += ((const uint64_t *)start)[word] != word * 40503ull + round;
}

static int file_of(int flags) {
	int file = open("transfers.tmp", O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
	unlink("transfers.tmp");
	return file;
}

static const char *direct(void) {
	int file = file_of(O_DIRECT);
	if (file < 0)
		return strerror(errno);
	for (int round = 0; round < ROUNDS; round++) {
		char *from = part(round), *to = from + SIZE;
		bad += pwrite(file, from, SIZE, 0) != SIZE;
		memset(to, 0, SIZE);
		bad += pread(file, to, SIZE, 0) != SIZE;
		check(to, round);
	}
	return "done";
}

static const char *spliced(void) {
	int ends[2];
	static char read_back[SIZE];
	bad += pipe(ends) != 0;
	fcntl(ends[1], F_SETPIPE_SZ, SIZE);
	for (int round = 0; round < ROUNDS * 4; round++) {
		struct iovec from = { part(round), SIZE };
		ssize_t sent = vmsplice(ends[1], &from, 1, 0);
		usleep(500);
		for (ssize_t got = 0; got < sent;)
			got += read(ends[0], read_back + got, sent - got);
		bad += sent != SIZE;
		check(read_back, round);
	}
	return "done";
}

static void *receives(void *socket_of) {
	static char got[SIZE];
	for (int round = 0; round < ROUNDS * 10; round++) {
		if (recv((int)(long)socket_of, got, SIZE, MSG_WAITALL) != SIZE)
			return (void *)1;
		check(got, round);
	}
	return NULL;
}

static const char *zero_copy(void) {
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	bad += bind(listener, (struct sockaddr *)&address, len) || listen(listener, 1) || getsockname(listener, (struct sockaddr *)&address, &len);
	int out = socket(AF_INET, SOCK_STREAM, 0);
	bad += connect(out, (struct sockaddr *)&address, len) != 0;
	int in = accept(listener, NULL, NULL);
	if (setsockopt(out, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one))
		return strerror(errno);
	pthread_t receiver;
	pthread_create(&receiver, NULL, receives, (void *)(long)in);
	for (int round = 0; round < ROUNDS * 10; round++) {
		char *from = part(round), control[200];
		unsigned last = 0, sends = 0;
		for (int sent = 0; sent < SIZE; sends++) {
			ssize_t some = send(out, from + sent, SIZE - sent, MSG_ZEROCOPY);
			if (some < 0)
				return strerror(errno);
			sent += some;
		}
		// Until the kernel has no use for any of it.
		static unsigned all;
		for (all += sends; last < all;) {
			struct pollfd polled = { out, 0, 0 };
			struct msghdr told = { .msg_control = control, .msg_controllen = sizeof control };
			poll(&polled, 1, 1000);
			if (recvmsg(out, &told, MSG_ERRQUEUE) < 0)
				continue;
			struct sock_extended_err *error = (void *)CMSG_DATA(CMSG_FIRSTHDR(&told));
			last = error->ee_data + 1;
		}
	}
	void *failed = NULL;
	pthread_join(receiver, &failed);
	bad += failed != NULL;
	return "done";
}

static const char *ring(int registered) {
	struct io_uring_params parameters = { 0 };
	int ring = syscall(SYS_io_uring_setup, 4, &parameters), file = file_of(0);
	if (ring < 0)
		return strerror(errno);
	size_t len = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
	char *queues = mmap(NULL, len + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entries = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
	struct iovec all = { memory, (size_t)64 * SIZE };
	if (registered && syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &all, 1))
		return strerror(errno);
	unsigned *tail = (void *)(queues + parameters.sq_off.tail), *array = (void *)(queues + parameters.sq_off.array);
	unsigned *head = (void *)(queues + parameters.cq_off.head), *mask = (void *)(queues + parameters.cq_off.ring_mask);
	struct io_uring_cqe *done = (void *)(queues + parameters.cq_off.cqes);
	for (int step = 0; step < ROUNDS * 2; step++) {
		static char *from;
		int writes = step % 2 == 0, round = step / 2;
		from = writes ? part(round) : from;
		char *at = writes ? from : from + SIZE;
		int operation = registered ? IORING_OP_READ_FIXED + writes : IORING_OP_READ + writes;
		if (!writes)
			memset(at, 0, SIZE);
		entries[0] = (struct io_uring_sqe){ .opcode = operation, .flags = registered ? 0 : IOSQE_ASYNC, .fd = file, .addr = (uintptr_t)at, .len = SIZE };
		array[*tail % parameters.sq_entries] = 0;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		bad += syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1;
		bad += done[*head & *mask].res != SIZE;
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
		if (!writes)
			check(at, round);
	}
	return "done";
}

int main(int count, char **words) {
	const char *how = count > 1 ? words[1] : "direct";
	alarm(60);
	fill();
	memory = mmap(NULL, (size_t)64 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(memory, 1, (size_t)64 * SIZE);
	settle();
	const char *end = !strcmp(how, "direct") ? direct() : !strcmp(how, "vmsplice") ? spliced() : !strcmp(how, "zerocopy") ? zero_copy() : ring(!strcmp(how, "fixed"));
	printf("%s: %s, %ld bad, %d pages wrong\n", how, end, bad, wrong());
	return 0;
}
