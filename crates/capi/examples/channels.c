/* Several work queues as one mover: a copy that is striped over them, small ones in batches, and who did
 * what of each. */
#include "example.h"

#define LARGE (1u << 20)
#define SMALL 16u

int main(int argc, char **argv) {
    static unsigned char source[LARGE + SMALL * 64], target[LARGE + SMALL * 64];
    struct dray_channels_options options;
    struct dray_outcome outcome;
    struct dray_mover *mover = NULL;
    unsigned ended = 0, n;
    int right = 1;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.backend = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)DRAY_BACKEND_ANY;
    options.virtual_queues = 4;
    for (n = 0; n < sizeof source; n++)
        source[n] = (unsigned char)(n * 7 + 1);
    memset(target, 0, sizeof target);
    check("open", dray_open_channels(&options, &mover));
    check("copy", dray_copy(mover, target, source, LARGE, 1));
    for (n = 0; n < SMALL; n++)
        check("copy", dray_copy(mover, target + LARGE + n * 64, source + LARGE + n * 64, 64, 2));
    while (ended < SMALL + 1) {
        check("wait", dray_wait_outcomes(mover, &outcome, 1, DRAY_WAIT_POLICY_YIELD, 30000000000));
        ended++;
        right &= outcome.completion.status == 1;
        right &= outcome.device_bytes + outcome.core_bytes == (outcome.completion.user_data == 1 ? LARGE : 64);
        if (outcome.completion.user_data == 1 && options.backend == DRAY_BACKEND_VIRTUAL)
            right &= outcome.stripes == 4 && outcome.core_reason == DRAY_CORE_REASON_NONE;
    }
    right &= memcmp(source, target, sizeof source) == 0;

    /* What excludes itself is refused, with a code and a text. */
    options.require = DRAY_REQUIRE_HARDWARE;
    if (options.backend != DRAY_BACKEND_HARDWARE) {
        struct dray_mover *other = NULL;
        right &= dray_open_channels(&options, &other) < 0 && other == NULL;
        right &= strstr(dray_last_error(), "hardware is required") != NULL;
    }
    options.require = DRAY_REQUIRE_ANY;
    options.full_queue = 99;
    right &= dray_open_channels(&options, &mover) < 0;
    return result(mover, "channels", right);
}
