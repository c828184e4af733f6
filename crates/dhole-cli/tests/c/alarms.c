/* A timer's signals: what one thread takes by a handler, and what main waits for. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sem_t wake;
static volatile int rings;

static void rung(int signal) {
    (void)signal;
    rings++;
    sem_post(&wake);
}

/* The one thread that takes the signal. */
static void *taker(void *none) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (rings < 20) usleep(1000);
    return none;
}

static void start_timer(void) {
    struct itimerval every = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void handled(void) {
    pthread_t thread;
    sem_init(&wake, 0, 0);
    signal(SIGALRM, rung);
    pthread_create(&thread, NULL, taker, NULL);
    start_timer();
    for (int i = 0; i < 20; i++)
        while (sem_wait(&wake)) {
        }
    pthread_join(thread, NULL);
    puts("20 alarms");
}

static void waited_for(const sigset_t *set) {
    int got;
    start_timer();
    for (int i = 0; i < 20; i++) sigwait(set, &got);
    puts("20 alarms waited for");
}

int main(int count, char **words) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (count > 1 && !strcmp(words[1], "handler"))
        handled();
    else
        waited_for(&set);
    return 0;
}
