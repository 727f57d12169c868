/* Compares two buffers. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char first[4096], second[4096];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(first, sizeof first);
    present(second, sizeof second);
    second[100] = 1;
    check("compare", dray_compare(mover, first, second, sizeof first, 0));
    done = finish(mover);
    return result(mover, "compare", done.status == 1 && done.result == 1 && done.bytes_completed == 100);
}
