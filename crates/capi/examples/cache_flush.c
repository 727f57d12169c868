/* Evicts a buffer from the caches. */
#include "example.h"

int main(int argc, char **argv) {
    static unsigned char buffer[4096];
    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    present(buffer, sizeof buffer);
    check("cache_flush", dray_cache_flush(mover, buffer, sizeof buffer, 0));
    done = finish(mover);
    return result(mover, "cache_flush", done.status == 1);
}
