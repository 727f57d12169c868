/* Which work queues were opened, and why others were not; what becomes of operations then. */
#include "example.h"
#include <errno.h>

/* Opens channels on work queues of a node: 0 or an error code; what happened is in `note`. */
static int open_on_node(uint32_t backend, uint32_t node, char *note, size_t bytes, uint8_t *core_reason) {
    struct dray_channels_options options;
    struct dray_mover *mover = NULL;
    static unsigned char target[4096];
    int code;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = backend;
    options.numa = DRAY_NUMA_ONLY;
    options.numa_node = node;
    code = dray_open_channels(&options, &mover);
    if (code < 0) {
        snprintf(note, bytes, "%s", dray_last_error());
        return code;
    }
    check("note", dray_note(mover, note, bytes));
    present(target, sizeof target);
    check("fill", dray_fill(mover, target, 7, sizeof target, 0));
    *core_reason = finish(mover).core_reason;
    check("close", dray_close(mover));
    return 0;
}

/* The list of queues, before any is opened: each can be opened or says why not, and those that this process then has are in it. */
static int listed(const char *wanted) {
    struct dray_queue queues[64];
    int n, right, found = 0, count = dray_queues(NULL, 0);

    check("queues", count);
    right = dray_queues(queues, 64) == count && dray_queues(NULL, 1) == -EINVAL;
    for (n = 0; n < count && n < 64; n++) {
        right &= strncmp(queues[n].name, "wq", 2) == 0;
        right &= (queues[n].error == 0) == (queues[n].why_not[0] == '\0');
        right &= queues[n].error != 0 || (queues[n].entries > 0 && queues[n].dedicated <= 1);
        found |= queues[n].error == 0 && strcmp(queues[n].name, wanted) == 0;
    }
    return right && (found || wanted[0] == '\0');
}

int main(int argc, char **argv) {
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_options options;
    struct dray_mover *other = NULL;
    char note[4096];
    uint8_t reason = DRAY_CORE_REASON_NONE;
    int code, right, length = dray_note(mover, note, sizeof note);

    right = length > 0 && strlen(note) == (size_t)length;
    right &= listed(argc > 1 && atoi(argv[1]) == DRAY_BACKEND_HARDWARE ? "wq0.0" : "");
    /* No machine has this node: nothing is opened, and each queue is named. */
    right &= open_on_node(DRAY_BACKEND_HARDWARE, 9999, note, sizeof note, &reason) == -ENODEV;
    if (argc > 1 && atoi(argv[1]) == DRAY_BACKEND_HARDWARE)
        right &= strstr(note, "wq0.0 is left out") != NULL;
    right &= open_on_node(DRAY_BACKEND_ANY, 9999, note, sizeof note, &reason) == 0;
    right &= reason == DRAY_CORE_REASON_NO_DEVICE && strstr(note, "the core executes all operations") != NULL;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = DRAY_BACKEND_HARDWARE;
    code = dray_open(&options, &other);
    if (code == 0) {
        /* Another queue, or the same if it is shared. */
        check("note", dray_note(other, note, sizeof note));
        right &= strstr(note, " is open\n") != NULL;
        check("close", dray_close(other));
    } else {
        /* A dedicated queue has one client; without a device there is none to open. */
        right &= code == -EBUSY || code == -ENODEV;
        right &= strlen(dray_last_error()) > 0;
        if (code == -EBUSY)
            right &= strstr(dray_last_error(), "wq0.0") != NULL;
    }
    return result(mover, "queues", right);
}
