/* Fills a buffer with an 8-byte pattern. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char target[1000];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(target, sizeof target);
    check("fill", dray_fill(mover, target, 0x0807060504030201, sizeof target, 0));
    done = finish(mover);
    return result(mover, "fill", done.status == 1 && target[0] == 1 && target[999] == 8);
}
