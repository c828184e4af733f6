/* What main sets in its process before it starts threads, and they find. */
#define _GNU_SOURCE
#include <locale.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread sigjmp_buf back;
static __thread volatile int stage;

static void faulted(int signal) { siglongjmp(back, signal); }

static int prepared, in_parent;
static void prepare(void) { prepared++; }
static void parent(void) { in_parent++; }
static void child(void) { stage += 5; }

static void *look(void *none) {
    char hour[32], *name = getenv("STATE");
    time_t when = 0;
    struct tm local;
    localtime_r(&when, &local);
    strftime(hour, sizeof hour, "%H:%M %Z", &local);
    mode_t mask = umask(0);
    umask(mask);
    int got = sigsetjmp(back, 1);
    if (!got) *(volatile int *)8 = 1;
    int zero = sigsetjmp(back, 1);
    if (!zero) raise(SIGUSR1);
    printf("%s %s %s mask %03o locale %s fault %d signal %d\n", name ? name : "none",
           getenv("GONE") ? "there" : "gone", hour, (unsigned)mask, setlocale(LC_ALL, NULL),
           got == SIGSEGV, zero == SIGUSR1);
    fflush(stdout);
    stage = 1;
    pid_t forked = fork();
    if (!forked) _exit(stage);
    int status;
    waitpid(forked, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    return none;
}

int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = faulted;
    sigaction(SIGSEGV, &action, NULL);
    signal(SIGUSR1, faulted);
    setenv("STATE", "set", 1);
    putenv(strdup("TZ=XYZ-3"));
    tzset();
    setenv("GONE", "1", 1);
    unsetenv("GONE");
    umask(027);
    setlocale(LC_ALL, "C.UTF-8");
    pthread_atfork(prepare, parent, child);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) {
            pthread_t thread;
            pthread_create(&thread, NULL, look, NULL);
            pthread_join(thread, NULL);
        }
        setenv("STATE", "set again", 1);
        umask(022);
    }
    printf("prepared %d parent %d\n", prepared, in_parent);
    return 0;
}
