// Memory for AF_XDP is pinned while its pages move, and memory that was never touched.
#include "hazard.h"
#include <linux/if_xdp.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int registers(void *start, size_t len) {
	int socket_of = socket(AF_XDP, SOCK_RAW, 0);
	if (socket_of < 0)
		return errno;
	struct xdp_umem_reg area = { .addr = (uint64_t)start, .len = len, .chunk_size = 2048 };
	int answer = setsockopt(socket_of, SOL_XDP, XDP_UMEM_REG, &area, sizeof area) ? errno : 0;
	close(socket_of);
	return answer;
}

int main(void) {
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	int failed = 0;
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	fill();
	size_t half = (size_t)PAGES * PAGE / 2;
	char *untouched = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	settle();
	sleep(2);
	failed |= registers(untouched, 8 << 20);
	for (int turn = 0; turn < 100; turn++) {
		failed |= registers((char *)pages + turn % 2 * half, half);
		usleep(5000);
	}
	printf("registered: %s, %d pages wrong\n", strerror(failed), wrong());
	return 0;
}
