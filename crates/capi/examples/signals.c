/* A signal handler submits to the mover that the program uses. It gets an error when it has interrupted a call
 * of the library; what it could enqueue completes like everything else. */
#include "example.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define RAISED 100
#define SENT 300

static struct dray_mover *shared;
static unsigned char target[64], source[4096], copied[4096];
/* Of the handler: enqueued, and the error otherwise. */
static int enqueued, refused, wrong, handled;
static pthread_t program;

static void handler(int number) {
    int code = dray_fill(shared, target, 0x0101010101010101, sizeof target, 7);

    (void)number;
    if (code == 0)
        __atomic_fetch_add(&enqueued, 1, __ATOMIC_RELAXED);
    else if (code == -EBUSY || code == -EAGAIN)
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
    else
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

/* Sends signals to the thread that is in calls of the library. */
static void *sender(void *nothing) {
    int n;

    for (n = 0; n < SENT; n++) {
        int before = __atomic_load_n(&handled, __ATOMIC_RELAXED);
        if (pthread_kill(program, SIGUSR1) != 0)
            return &wrong;
        while (__atomic_load_n(&handled, __ATOMIC_RELAXED) == before)
            sched_yield();
    }
    return nothing;
}

int main(int argc, char **argv) {
    struct sigaction action;
    struct dray_completion done[8];
    pthread_t thread;
    void *failed;
    int n, code, fills = 0, copies = 0, submitted = 0;

    present(target, sizeof target);
    present(source, sizeof source);
    present(copied, sizeof copied);
    shared = open_mover(argc, argv);
    program = pthread_self();
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    if (sigaction(SIGUSR1, &action, NULL) != 0)
        return 1;

    /* Between two calls a handler enqueues, as anybody does. */
    for (n = 0; n < RAISED; n++)
        raise(SIGUSR1);
    if (enqueued != RAISED)
        return 1;

    /* In a call it gets an error, and nothing is lost. */
    if (pthread_create(&thread, NULL, sender, NULL) != 0)
        return 1;
    while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < RAISED + SENT) {
        code = dray_copy(shared, copied, source, sizeof source, 9);
        if (code == 0)
            submitted++;
        else if (code != -EAGAIN)
            return 1;
        check("submit", dray_submit(shared));
        n = dray_poll(shared, done, 8);
        if (n < 0)
            return 1;
        while (n > 0) {
            n--;
            if (done[n].status != 1)
                return 1;
            *(done[n].user_data == 7 ? &fills : &copies) += 1;
        }
    }
    pthread_join(thread, &failed);
    if (failed != NULL || wrong != 0 || enqueued + refused != RAISED + SENT)
        return 1;
    while (fills + copies < enqueued + submitted) {
        n = dray_wait(shared, done, 8, DRAY_WAIT_POLICY_YIELD, 30000000000);
        if (n <= 0)
            return 1;
        while (n > 0) {
            n--;
            *(done[n].user_data == 7 ? &fills : &copies) += 1;
        }
    }
    if (fills != enqueued || copies != submitted || target[63] != 1)
        return 1;
    check("close", dray_close(shared));
    printf("signals: right\n");
    return 0;
}
