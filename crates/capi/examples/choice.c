/* Who executes an operation, device or core, and why: by a threshold, by a cost model, or as required. */
#include "example.h"
#include <errno.h>

#define LARGE 65536u
#define SMALL 64u

static unsigned char source[LARGE], target[LARGE];

/* The completion of a copy on channels that are opened for it. */
static struct dray_completion copy_with(const struct dray_channels_options *options, uint32_t len) {
    struct dray_mover *mover = NULL;
    struct dray_completion done;

    check("open", dray_open_channels(options, &mover));
    check("copy", dray_copy(mover, target, source, len, 0));
    done = finish(mover);
    check("close", dray_close(mover));
    return done;
}

int main(int argc, char **argv) {
    struct dray_channels_options options;
    struct dray_cost_model cost;
    struct dray_completion done;
    struct dray_mover *mover = open_mover(argc, argv);
    int right = 1;

    memset(source, 9, sizeof source);
    memset(target, 1, sizeof target);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    /* The core beside a device; without a device it would be alone. */
    options.backend = DRAY_BACKEND_VIRTUAL;

    options.device_from_bytes = 4096;
    done = copy_with(&options, SMALL);
    right &= done.executor == DRAY_EXECUTOR_CPU && done.core_reason == DRAY_CORE_REASON_BELOW_THRESHOLD;
    done = copy_with(&options, LARGE);
    right &= done.executor == DRAY_EXECUTOR_VIRTUAL && done.core_reason == DRAY_CORE_REASON_NONE;
    right &= memcmp(source, target, LARGE) == 0;

    /* Half a nanosecond for a byte on the core; the device takes nothing, then a second. */
    memset(&cost, 0, sizeof cost);
    cost.size = sizeof cost;
    cost.core_kib_ns = 512;
    options.device_from_bytes = 0;
    options.choice = DRAY_CHOICE_COST_MODEL;
    options.cost = &cost;
    right &= copy_with(&options, LARGE).executor == DRAY_EXECUTOR_VIRTUAL;
    cost.device_latency_ns = 1e9;
    done = copy_with(&options, LARGE);
    right &= done.executor == DRAY_EXECUTOR_CPU && done.core_reason == DRAY_CORE_REASON_FASTER;

    /* What is required is not left to the core: what would do so is refused. */
    options.cost = NULL;
    options.choice = DRAY_CHOICE_CORE;
    right &= copy_with(&options, LARGE).core_reason == DRAY_CORE_REASON_CHOSEN;
    options.require = DRAY_REQUIRE_DEVICE;
    right &= dray_open_channels(&options, &mover) == -EINVAL;
    options.choice = DRAY_CHOICE_DEVICE;
    right &= copy_with(&options, SMALL).executor == DRAY_EXECUTOR_VIRTUAL;
    return result(mover, "choice", right);
}
