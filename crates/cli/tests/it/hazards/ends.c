// Children end in all ways while their pages move: what their parent is told.
#include "hazard.h"

enum { CHILDREN = 12 };

static void *spins(void *nothing) {
	for (;;)
		wrong();
	return nothing;
}

static void *ends_all(void *code) {
	usleep(20000);
	_exit((int)(long)code);
}

static void *faults(void *nothing) {
	usleep(20000);
	*(volatile int *)16 = 1;
	return nothing;
}

int main(void) {
	int told[8] = { 0 }, bad = 0, strangers = 0, status;
	alarm(100);
	fill();
	for (int child = 0; child < CHILDREN; child++) {
		int how = child % 6;
		pid_t pid = fork();
		if (pid == 0) {
			pthread_t thread;
			number_pages();
			settle();
			pthread_create(&thread, NULL, spins, NULL);
			pthread_create(&thread, NULL, spins, NULL);
			if (how == 0)
				pthread_create(&thread, NULL, ends_all, (void *)7);
			if (how == 1)
				abort();
			if (how == 2)
				pthread_create(&thread, NULL, faults, NULL);
			if (how == 3)
				kill(getpid(), SIGKILL);
			if (how == 4)
				return 5;
			if (how == 5)
				execl("/bin/true", "true", NULL);
			spins(NULL);
		}
		pid_t waited = waitpid(-1, &status, 0);
		while (waited > 0 && waited != pid) {
			strangers++;
			waited = waitpid(-1, &status, 0);
		}
		told[how] += status & ~0x80;
	}
	usleep(200000);
	while (waitpid(-1, &status, WNOHANG) > 0)
		strangers++;
	for (int how = 0; how < 6; how++)
		printf("%x ", told[how]);
	printf(": %d strangers, %d bad, %d pages wrong\n", strangers, bad, wrong());
	return 0;
}
