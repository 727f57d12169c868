/* Calls that a library in front of the C library must get right; prints "right". */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST (3u << 20)
#define CHECK(what)                                              \
    do {                                                         \
        if (!(what)) {                                           \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);   \
            abort();                                             \
        }                                                        \
    } while (0)

/* Before this program or any library is initialized. */
static char early_from[200000], early_to[200000];
static int early_done;
static int real_answer(void) { return 42; }
static void *resolve(void) {
    for (size_t i = 0; i < sizeof early_from; i++) ((volatile char *)early_from)[i] = (char)i;
    memcpy(early_to, early_from, sizeof early_to);
    memmove(early_to + 1, early_to, 100);
    early_done = memcmp(early_to + 200, early_from + 200, sizeof early_to - 200) == 0;
    return (void *)real_answer;
}
static int answer(void) __attribute__((ifunc("resolve")));
static void __attribute__((constructor(101))) first(void) {
    memset(early_from, 3, sizeof early_from);
    CHECK(early_from[sizeof early_from - 1] == 3);
}

static uint64_t state = 88172645463325252ull;
static uint64_t next(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return state;
}
static void scribble(unsigned char *at, size_t len) {
    for (size_t i = 0; i < len; i++) ((volatile unsigned char *)at)[i] = (unsigned char)next();
}

static void sizes(unsigned char *a, unsigned char *b, unsigned char *plain) {
    static const size_t all[] = {0, 1, 63, 4095, 4096, 65535, 65536, 65537, 100001, 1 << 20,
                                 (2 << 20) + 1, MOST - 4096};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t len = all[i], x = next() % 4096, y = next() % 4096;
        scribble(a + x, len);
        a[x + len] = 0x5a;
        b[y + len] = 0xa5;
        errno = 77;
        CHECK(memcpy(b + y, a + x, len) == b + y);
        CHECK(errno == 77);
        for (size_t k = 0; k < len; k++) CHECK(b[y + k] == a[x + k]);
        CHECK(b[y + len] == 0xa5);
        CHECK(memcmp(b + y, a + x, len) == 0);
        if (len) {
            size_t k = next() % len;
            b[y + k] = (unsigned char)(a[x + k] + 1);
            int expected = (int)a[x + k] - (int)b[y + k];
            int found = memcmp(a + x, b + y, len);
            CHECK((found < 0) == (expected < 0) && found != 0);
        }
        CHECK(memset(b + y, 0xc3, len) == b + y);
        for (size_t k = 0; k < len; k++) CHECK(b[y + k] == 0xc3);
        CHECK(b[y + len] == 0xa5);
        /* Overlapping, both ways. */
        size_t shift = 1 + next() % 5000;
        if (len > shift) {
            scribble(a, len);
            for (size_t k = 0; k < len; k++) plain[k] = a[k];
            CHECK(memmove(a + shift, a, len - shift) == a + shift);
            for (size_t k = 0; k < len - shift; k++) CHECK(a[shift + k] == plain[k]);
            for (size_t k = 0; k < len; k++) plain[k] = a[k];
            CHECK(memmove(a, a + shift, len - shift) == a);
            for (size_t k = 0; k < len - shift; k++) CHECK(a[k] == plain[k + shift]);
        }
    }
}

/* A handler that copies while a copy is interrupted. */
static unsigned char *of_handler, *to_handler;
static volatile sig_atomic_t handled;
static void on_alarm(int number) {
    (void)number;
    memcpy(to_handler, of_handler, 1 << 18);
    if (memcmp(to_handler, of_handler, 1 << 18)) abort();
    handled++;
}

static void *thread(void *unused) {
    (void)unused;
    unsigned char *a = malloc(1 << 20), *b = malloc(1 << 20);
    for (int turn = 0; turn < 20; turn++) {
        size_t len = 65536 + (size_t)turn * 40000;
        memset(a, turn, len);
        memcpy(b, a, len);
        CHECK(memcmp(a, b, len) == 0);
        CHECK(b[len - 1] == (unsigned char)turn);
    }
    free(a);
    free(b);
    return NULL;
}

static void in_child(unsigned char *a, unsigned char *b) {
    memcpy(b, a, 1 << 20);
    _exit(memcmp(a, b, 1 << 20) ? 9 : 0);
}
static void wait_for(pid_t pid) {
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static sigjmp_buf back;
static void *volatile fault;
static void on_fault(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    fault = info->si_addr;
    siglongjmp(back, 1);
}

int main(void) {
    CHECK(answer() == 42 && early_done);
    unsigned char *a = malloc(MOST), *b = malloc(MOST), *plain = malloc(MOST);
    sizes(a, b, plain);
    /* Pages that are not there yet, on both sides. */
    unsigned char *fresh = mmap(NULL, 2 * MOST, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    scribble(a, 1 << 20);
    memcpy(fresh, a, 1 << 20);
    CHECK(memcmp(fresh, a, 1 << 20) == 0);
    memcpy(b, fresh + MOST, 1 << 20);
    for (size_t k = 0; k < 1 << 20; k++) CHECK(b[k] == 0);
    /* Children, however they are made. */
    pid_t pid;
    if ((pid = fork()) == 0) {
        if ((pid = fork()) == 0) in_child(a, b);
        wait_for(pid);
        in_child(a, b);
    }
    wait_for(pid);
    if ((pid = vfork()) == 0) in_child(a, b);
    wait_for(pid);
    if ((pid = _Fork()) == 0) in_child(a, b);
    wait_for(pid);
    if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0) in_child(a, b);
    wait_for(pid);
    /* Signals. */
    of_handler = malloc(1 << 18);
    to_handler = malloc(1 << 18);
    memset(of_handler, 9, 1 << 18);
    signal(SIGALRM, on_alarm);
    struct itimerval timer = {{0, 0}, {0, 0}};
    for (int turn = 0; turn < 50 || handled < 5; turn++) {
        timer.it_value.tv_usec = 1 + 20 * (turn % 10);
        setitimer(ITIMER_REAL, &timer, NULL);
        memset(b, turn, 1 << 20);
        memcpy(plain, b, 1 << 20);
        CHECK(memcmp(plain, b, 1 << 20) == 0);
    }
    timer.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    /* Threads. */
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) CHECK(pthread_create(&threads[i], NULL, thread, NULL) == 0);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    /* A page that may not be written: the program gets its fault, and goes on. */
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    mprotect(fresh + (1 << 20), 4096, PROT_READ);
    for (int turn = 0; turn < 3; turn++) {
        if (!sigsetjmp(back, 1)) {
            memset(fresh, 7, 2 << 20);
            CHECK(!"no fault");
        }
        CHECK((unsigned char *)fault >= fresh + (1 << 20) &&
              (unsigned char *)fault < fresh + (1 << 20) + 4096);
    }
    memcpy(b, a, 1 << 20);
    CHECK(memcmp(a, b, 1 << 20) == 0);
    puts("right");
    return 0;
}
