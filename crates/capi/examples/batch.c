/* Three operations as one batch; the last starts when the others have ended. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char first[4096], second[4096], third[4096];
    struct dray_completion all[3];
    int ended = 0, count;
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(first, sizeof first);
    present(second, sizeof second);
    check("begin", dray_batch_begin(mover));
    check("fill", dray_fill(mover, first, 0x0101010101010101, sizeof first, 1));
    check("noop", dray_noop(mover, 2));
    check("fence", dray_batch_fence(mover));
    check("copy", dray_copy(mover, second, first, sizeof first, 3));
    check("end", dray_batch_end(mover));
    while (ended < 3) {
        count = dray_wait(mover, all + ended, 3 - (size_t)ended, DRAY_WAIT_POLICY_YIELD, 0);
        check("wait", count);
        ended += count;
    }
    memset(third, 1, sizeof third);
    done = all[2];
    return result(mover, "batch", done.status == 1 && all[0].status == 1 && memcmp(second, third, sizeof second) == 0);
}
