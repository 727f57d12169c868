/* A work queue that an administrator disables: the other queues go on, or the core, and who asks is told. */
#include "example.h"
#include <errno.h>

#define COPIES 64

/* Disables a work queue of this machine, as `accel-config disable-wq` does. */
static void disable(const char *queue) {
    FILE *file = fopen("/sys/bus/dsa/drivers/user/unbind", "w");

    if (file == NULL || fputs(queue, file) < 0 || fclose(file) != 0) {
        perror(queue);
        exit(1);
    }
}

/* The name in the first line of dray_note, such as "wq0.1 is open". */
static void first_queue(struct dray_mover *mover, char *name, size_t bytes) {
    check("note", dray_note(mover, name, bytes));
    name[strcspn(name, " ")] = 0;
}

int main(int argc, char **argv) {
    static unsigned char source[COPIES][4096], target[COPIES][4096];
    struct dray_channels_options options;
    struct dray_excluded_queue excluded[2];
    struct dray_outcome outcome;
    struct dray_mover *mover = NULL;
    char name[256] = "";
    int on_work_queues, n, right;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_ANY;
    options.virtual_queues = 2;
    options.gather_below_bytes = 1;
    options.lost_queue = DRAY_LOST_QUEUE_POLICY_OTHER;
    on_work_queues = options.backend == DRAY_BACKEND_HARDWARE;
    check("open", dray_open_channels(&options, &mover));
    right = dray_excluded_queues(mover, excluded, 2) == 0 && dray_excluded_queues(mover, NULL, 0) == 0;
    right &= dray_excluded_queues(mover, NULL, 1) == -EINVAL;
    memset(source, 7, sizeof source);
    memset(target, 1, sizeof target);

    if (on_work_queues) {
        first_queue(mover, name, sizeof name);
        disable(name);
    }
    for (n = 0; n < COPIES; n++)
        check("copy", dray_copy(mover, target[n], source[n], sizeof source[n], (uint64_t)n));
    for (n = 0; n < COPIES; n++) {
        check("wait", dray_wait_outcomes(mover, &outcome, 1, DRAY_WAIT_POLICY_YIELD, 30000000000));
        right &= outcome.completion.status == 1 && outcome.completion.queue_lost == DRAY_QUEUE_LOST_REASON_NONE;
        right &= outcome.completion.withdrawn == 0;
    }
    right &= memcmp(source, target, sizeof source) == 0;

    memset(excluded, 0x55, sizeof excluded);
    n = dray_excluded_queues(mover, excluded, 2);
    if (on_work_queues) {
        right &= n == 1 && strcmp(excluded[0].name, name) == 0 && excluded[0].number == 0;
        right &= excluded[0].reason == DRAY_QUEUE_LOST_REASON_DISABLED && excluded[0].error == 0;
        /* With one queue alone the core has taken its place. */
        right &= outcome.device_bytes > 0 || outcome.core_reason == DRAY_CORE_REASON_QUEUE_LOST;
    } else {
        right &= n == 0 && excluded[0].number == 0x55555555;
    }
    return result(mover, "excluded", right);
}
