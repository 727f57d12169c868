// A program executes itself with arguments that lie on pages that move, also from a thread that is not its first.
#include "hazard.h"

enum { WORDS_OF = 20, LEN = 20 * PAGE };

static char **made;
static char *own;

static void *executes(void *nothing) {
	settle();
	execv(own, made);
	return nothing;
}

int main(int count, char **words) {
	int from_thread = count > 1 && !strcmp(words[1], "thread");
	alarm(60);
	own = words[0];
	if (count > WORDS_OF) {
		long bad = count != WORDS_OF + 2;
		for (int word = 2; word < count; word++)
			for (int at = 0; at < LEN - 1; at++)
				bad += words[word][at] != 'a' + (word + at / 100) % 26;
		fill();
		settle();
		printf("%d words, %ld bad, thread %d, %d pages wrong\n", count, bad, from_thread, wrong());
		return 0;
	}
	fill();
	char *text = mmap(NULL, (size_t)WORDS_OF * LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	made = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	made[0] = own;
	made[1] = from_thread ? "thread" : "first";
	for (int word = 0; word < WORDS_OF; word++) {
		made[word + 2] = text + word * LEN;
		for (int at = 0; at < LEN - 1; at++)
			text[word * LEN + at] = 'a' + (word + 2 + at / 100) % 26;
	}
	if (from_thread) {
		pthread_t thread;
		pthread_create(&thread, NULL, executes, NULL);
		for (;;)
			wrong();
	}
	executes(NULL);
	return 1;
}
