// A program serves part of its memory by a userfaultfd of its own, once its pages have moved.
#include "hazard.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

enum { FIRST = 1024, COUNT = 1024 };

static int served;
static volatile long bad;

static void *serves(void *nothing) {
	static uint64_t page[WORDS];
	struct uffd_msg message;
	for (int number = 0; number < COUNT; number++) {
		if (read(served, &message, sizeof message) != sizeof message) {
			bad++;
			break;
		}
		uint64_t at = message.arg.pagefault.address / PAGE * PAGE;
		page[0] = ((uint64_t *)at - pages) / WORDS * 2654435761u + 1;
		struct uffdio_copy copy = { .dst = at, .src = (uintptr_t)page, .len = PAGE };
		bad += ioctl(served, UFFDIO_COPY, &copy) != 0;
	}
	return nothing;
}

int main(void) {
	struct uffdio_api api = { .api = UFFD_API };
	pthread_t server;
	alarm(60);
	fill();
	settle();
	served = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (served < 0 || ioctl(served, UFFDIO_API, &api)) {
		printf("none: %s\n", strerror(errno));
		return 0;
	}
	struct uffdio_register all = { .range = { (uintptr_t)(pages + FIRST * WORDS), (size_t)COUNT * PAGE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	if (ioctl(served, UFFDIO_REGISTER, &all))
		printf("not registered: %s\n", strerror(errno));
	bad += madvise(pages + FIRST * WORDS, (size_t)COUNT * PAGE, MADV_DONTNEED) != 0;
	pthread_create(&server, NULL, serves, NULL);
	int first = wrong();
	pthread_join(server, NULL);
	settle();
	printf("%ld bad, %d and %d pages wrong\n", bad, first, wrong());
	return 0;
}
