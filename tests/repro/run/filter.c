/*
 * Submissions under a seccomp filter that kills: on hardware they make no system call. With `late` the filter allows
 * write and exit_group alone and comes when the portal is mapped; with `early` it comes before the node is opened, and
 * allows what that needs.
 */
#include "dsa.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static char source[4096], destination[4096];
static struct dsa_completion_record record __attribute__((aligned(32)));

static int install(const int *allowed, int count)
{
	struct sock_filter code[64];
	int n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = { .len = n, .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int copy(int i)
{
	struct dsa_hw_desc d = { 0 };

	memset(source, i, sizeof source);
	memset(destination, ~i, sizeof destination);
	d.opcode = DSA_OPCODE_MEMMOVE;
	d.flags = IDXD_OP_FLAG_CRAV | IDXD_OP_FLAG_RCR;
	d.src_addr = (uintptr_t)source;
	d.dst_addr = (uintptr_t)destination;
	d.xfer_size = sizeof source;
	d.completion_addr = (uintptr_t)&record;
	record.status = 0;
	while (enqcmd(portal, &d))
		;
	while (!*(volatile uint8_t *)&record.status)
		__builtin_ia32_pause();
	return record.status != 1 || memcmp(source, destination, sizeof source);
}

int main(int argc, char **argv)
{
	static const int late[] = { SYS_write, SYS_exit_group };
	static const int early[] = { SYS_write, SYS_exit_group, SYS_openat, SYS_open, SYS_mmap, SYS_close };
	int is_early = argc > 1 && !strcmp(argv[1], "early");
	int bad = 0;
	char text[64];

	if (is_early && install(early, 6))
		return 3;
	if (wq_open())
		return 2;
	if (!is_early && install(late, 2))
		return 3;
	for (int i = 0; i < 500; i++)
		bad += copy(i);
	write(1, text, snprintf(text, sizeof text, "%d bad of 500\n", bad));
	_exit(bad != 0);
}
