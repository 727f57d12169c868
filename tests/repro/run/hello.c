/* A program of another C library, which no library made for glibc can be loaded into. */
#include <stdio.h>

int main(void)
{
	puts("hello");
	return 0;
}
