// A program gives its rights up in the ways that daemons do, and nobody keeps them on its memory.
#include "hazard.h"
#include <grp.h>
#include <dirent.h>
#include <linux/capability.h>

// Processes that share this memory, and have the user or a capability that was given up.
static int keepers(void) {
	int found = 0;
	DIR *all = opendir("/proc");
	for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
		char path[300], line[300], name[64] = "";
		unsigned long capabilities = 0;
		unsigned user = 1;
		snprintf(path, sizeof path, "/proc/%s/status", entry->d_name);
		FILE *status = fopen(path, "r");
		while (status && fgets(line, sizeof line, status)) {
			sscanf(line, "Name: %63s", name);
			sscanf(line, "Uid: %u", &user);
			sscanf(line, "CapPrm: %lx", &capabilities);
		}
		if (status)
			fclose(status);
		found += !strcmp(name, "dray-tier") && (user == 0 || capabilities != 0);
	}
	closedir(all);
	return found;
}

static int keep_only(int capability) {
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	data[0].effective = data[0].permitted = 1u << capability;
	return syscall(SYS_capset, &header, data);
}

static void *sleeps(void *nothing) {
	pause();
	return nothing;
}

int main(int count, char **words) {
	const char *how = count > 1 ? words[1] : "daemon";
	fill();
	settle();
	if (getuid() != 0) {
		puts("not root");
		return 0;
	}
	if (!strcmp(how, "undumpable") || !strcmp(how, "root")) {
		printf("%d", *how == 'u' ? prctl(PR_SET_DUMPABLE, 0) : chroot(".") || chdir("/"));
		settle();
		pid_t pid = fork();
		if (pid == 0)
			_exit(wrong() != 0);
		int status = -1;
		waitpid(pid, &status, 0);
		printf(": child %d, %d pages wrong\n", status, wrong());
		return 0;
	}
	int dumpable = prctl(PR_GET_DUMPABLE);
	if (!strcmp(how, "threads")) {
		pthread_t thread;
		for (int number = 0; number < 4; number++)
			pthread_create(&thread, NULL, sleeps, NULL);
	}
	if (!strcmp(how, "capabilities")) {
		printf("%d", prctl(PR_SET_KEEPCAPS, 1));
		printf(" %d", setresuid(65534, 65534, 65534));
		printf(" %d", keep_only(CAP_SETGID));
		printf(" %d", setgroups(0, NULL));
		printf(" %d", setresgid(65534, 65534, 65534));
	} else {
		printf("%d", setgroups(0, NULL));
		printf(" %d", setgid(65534));
		printf(" %d", setuid(65534));
	}
	printf(" %d", setuid(0) == -1 && errno == EPERM);
	settle();
	printf(": dumpable %d, user %d, %d keepers, %d pages wrong\n", dumpable, getuid(), keepers(), wrong());
	fflush(stdout);
	_exit(0);
}
