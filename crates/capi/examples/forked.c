/* A child of fork has no use of its parent's mover, loses no time with it, and opens its own. */
#include "example.h"
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 16 };
static unsigned char source[BYTES], target[BYTES];

/* What is wrong in the child; 0: nothing. */
static int child(struct dray_mover *inherited) {
    struct dray_options options;
    struct dray_completion done;
    struct dray_mover *own = NULL;

    /* A call that waits for the parent's device ends the test. */
    alarm(60);
    memset(&done, 0, sizeof done);
    if (dray_copy(inherited, target, source, BYTES, 1) != -EBADF || strstr(dray_last_error(), "forked") == NULL)
        return 1;
    if (dray_submit(inherited) != -EBADF || dray_poll(inherited, &done, 1) != -EBADF)
        return 2;
    if (dray_wait(inherited, &done, 1, DRAY_WAIT_POLICY_PAUSE, 0) != -EBADF)
        return 3;
    if (dray_close(inherited) != 0 || dray_slots(inherited) != -EBADF)
        return 4;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = DRAY_BACKEND_ANY;
    check("open of the child", dray_open(&options, &own));
    present(source, BYTES);
    present(target, BYTES);
    check("copy of the child", dray_copy(own, target, source, BYTES, 2));
    if (finish(own).status != 1 || memcmp(source, target, BYTES) != 0)
        return 5;
    return dray_close(own) == 0 ? 0 : 6;
}

static int succeeded(pid_t process) {
    int status = 1;

    check("waitpid", waitpid(process, &status, 0));
    if (status != 0)
        fprintf(stderr, "the child has ended with status %#x\n", (unsigned)status);
    return status == 0;
}

int main(int argc, char **argv) {
    struct dray_mover *mover = open_mover(argc, argv);
    pid_t process;
    int right;

    memset(source, 7, BYTES);
    present(target, BYTES);
    check("copy", dray_copy(mover, target, source, BYTES, 3));
    check("submit", dray_submit(mover));
    process = fork();
    if (process == 0)
        _exit(child(mover));
    right = succeeded(process);
    /* The parent's copy was left alone. */
    right &= finish(mover).status == 1 && memcmp(source, target, BYTES) == 0;
    /* A child in its parent's memory uses what is open there. */
    process = vfork();
    if (process == 0)
        _exit(dray_slots(mover) > 0 ? 0 : 1);
    right &= succeeded(process);
    return result(mover, "forked", right);
}
