/* Memory that the kernel has not supplied yet is copied by whoever executes, unless a policy says otherwise. */
#include "example.h"
#include <sys/mman.h>

enum { BYTES = 1 << 20 };

/* Pages that nothing has touched. */
static unsigned char *fresh(void) {
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return (unsigned char *)memory;
}

int main(int argc, char **argv) {
    struct dray_mover *mover = open_mover(argc, argv);
    unsigned char *source = fresh(), *target = fresh(), *filled = fresh();
    struct dray_completion done;
    int right;

    check("copy", dray_copy(mover, target, source, BYTES, 1));
    done = finish(mover);
    right = done.status == 1 && target[BYTES - 1] == 0;
    check("fill", dray_fill(mover, filled, 0x0707070707070707, BYTES, 2));
    done = finish(mover);
    right &= done.status == 1 && filled[0] == 7 && memcmp(filled, filled + 1, BYTES - 1) == 0;
    check("compare", dray_compare(mover, filled, source, BYTES, 3));
    done = finish(mover);
    right &= done.status == 1 && done.result == 1 && done.bytes_completed == 0;
    munmap(source, BYTES);
    munmap(target, BYTES);
    munmap(filled, BYTES);
    return result(mover, "fresh_pages", right);
}
