// Copies of one size from one place, and fills of another.
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) void copy_pages(char *to, const char *from) {
    memcpy(to, from, 65536);
}
__attribute__((noinline)) void clear(char *to) { memset(to, 0, 3000); }
int main(void) {
    char *a = aligned_alloc(4096, 65536), *b = aligned_alloc(4096, 1 << 20);
    for (int i = 0; i < 500; i++) copy_pages(b, a);
    for (int i = 0; i < 70; i++) clear(b + 1);
    return a[77] + b[5];
}
