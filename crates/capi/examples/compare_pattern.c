/* Compares a buffer with an 8-byte pattern. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char source[4096];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    memset(source, 0x11, sizeof source);
    check("compare_pattern", dray_compare_pattern(mover, source, 0x1111111111111111, sizeof source, 0));
    done = finish(mover);
    return result(mover, "compare_pattern", done.status == 1 && done.result == 0);
}
