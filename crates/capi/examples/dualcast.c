/* Copies a buffer to two destinations, alike in address bits 11:0. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char source[5000], pages[4 * 4096];
    unsigned char *first = (unsigned char *)(((uintptr_t)pages + 4095) & ~(uintptr_t)4095);
    unsigned char *second = first + 2 * 4096;
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(pages, sizeof pages);
    memset(source, 3, sizeof source);
    /* Two pages each would overlap the array's end: 4000 bytes fit. */
    check("dualcast", dray_dualcast(mover, first, second, source, 4000, 0));
    done = finish(mover);
    return result(mover, "dualcast", done.status == 1 && memcmp(first, source, 4000) == 0 && memcmp(second, source, 4000) == 0);
}
