/* Calls that _FORTIFY_SOURCE checks: the compiler turns them into __memcpy_chk, __memmove_chk and __memset_chk.
   Prints "right"; with the name of a call it overflows that call's destination by one byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (1u << 20)

static unsigned char to[ROOM], from[ROOM + 1];

static void check(int right, int line) {
    if (!right) {
        fprintf(stderr, "line %d\n", line);
        exit(1);
    }
}

int main(int argc, char **argv) {
    /* The compiler knows the room at the destination, not the length. */
    size_t len = ROOM + (argc > 1);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 7 + (i >> 8));
    if (argc == 1 || strcmp(argv[1], "memcpy") == 0) {
        memcpy(to, from, len);
        for (size_t i = 0; i < len; i++) check(to[i] == from[i], __LINE__);
    }
    if (argc == 1 || strcmp(argv[1], "memmove") == 0) {
        memmove(to, from + 1, len);
        for (size_t i = 0; i < len; i++) check(to[i] == from[i + 1], __LINE__);
    }
    if (argc == 1 || strcmp(argv[1], "memset") == 0) {
        memset(to, argc + 40, len);
        for (size_t i = 0; i < len; i++) check(to[i] == 41, __LINE__);
    }
    puts("right");
    return 0;
}
