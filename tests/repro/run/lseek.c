/*
 * Positions of a work queue. Right: lseek is ESPIPE, for idxd has no llseek; pread is EINVAL, for it has no read; pwrite
 * does what write does, which does not look at the offset.
 */
#include "dsa.h"

int main(void)
{
	int f = open(WQ, O_RDWR);
	struct dsa_hw_desc noop __attribute__((aligned(64))) = { 0 };
	char byte;

	if (f < 0) {
		perror("open");
		return 2;
	}
	off_t o = lseek(f, 1, SEEK_SET);
	int seek = errno;
	ssize_t got = pread(f, &byte, 1, 0);
	int read = errno;
	ssize_t plain = write(f, &noop, sizeof noop);
	int written = plain < 0 ? errno : 0;
	ssize_t at = pwrite(f, &noop, sizeof noop, 64);
	int written_at = at < 0 ? errno : 0;

	printf("lseek %ld %s, pread %zd %s\n", (long)o, strerror(seek), got, strerror(read));
	printf("write %zd %s, pwrite %zd %s\n", plain, strerror(written), at, strerror(written_at));
	return !(o == -1 && seek == ESPIPE && got == -1 && read == EINVAL && at == plain && written == written_at);
}
