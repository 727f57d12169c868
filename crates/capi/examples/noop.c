/* Does nothing, which takes its time. */
#include "example.h"

int main(int argc, char **argv) {

    struct dray_mover *mover = open_mover(argc, argv);
    struct dray_completion done;

    check("noop", dray_noop(mover, 7));
    done = finish(mover);
    return result(mover, "noop", done.status == 1 && done.user_data == 7);
}
