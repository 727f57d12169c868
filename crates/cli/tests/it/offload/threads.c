/* Threads that copy, fill and compare at the same time; prints "right". */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES (200u << 10)

static int rounds;

static void *work(void *number) {
    unsigned char *a = malloc(BYTES), *b = malloc(BYTES);
    uintptr_t wrong = 0;
    for (int round = 0; round < rounds; round++) {
        unsigned char byte = (unsigned char)(round * 31 + (intptr_t)number);
        memset(a, byte, BYTES);
        a[round % BYTES] ^= 1;
        memset(b, (unsigned char)~byte, BYTES);
        memcpy(b, a, BYTES);
        for (size_t i = 0; i < BYTES; i++) {
            wrong += b[i] != (unsigned char)(byte ^ (i == round % BYTES));
        }
        b[BYTES - 1] ^= 2;
        wrong += memcmp(a, b, BYTES) == 0;
    }
    free(a);
    free(b);
    return (void *)wrong;
}

int main(int count, char **arguments) {
    pthread_t threads[64];
    int used = atoi(arguments[1]);
    rounds = atoi(arguments[2]);
    uintptr_t wrong = count != 3 || used > 64;
    /* The queue is open when they start. */
    static unsigned char first[BYTES];
    memset(first, 1, sizeof first);
    for (int n = 0; n < used; n++) pthread_create(&threads[n], NULL, work, (void *)(intptr_t)n);
    for (int n = 0; n < used; n++) {
        void *found;
        pthread_join(threads[n], &found);
        wrong += (uintptr_t)found;
    }
    puts(wrong ? "wrong" : "right");
    return wrong != 0;
}
