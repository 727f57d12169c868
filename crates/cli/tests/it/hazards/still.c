// A program that is refused: without a dynamic linker, or with privileges of its own.
#include <stdio.h>

int main(void) {
	puts("it runs");
	return 0;
}
