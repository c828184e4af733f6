/* Threads that are cancelled where they sleep, wait or ask: `dhole cc --shared-stacks` and `cc -pthread`
 * build it, and it prints the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t ready, nothing;
static int cleaned, runs;
static volatile int goes_on, signalled;

static void clean(void *what) { cleaned += *(int *)what; }
static void unlocks(void *what) {
    clean(what);
    /* A thread that is cancelled while it waits has the mutex. */
    cleaned += pthread_mutex_unlock(&lock) == 0 ? 1 : 1000;
}

static void *sleeps(void *what) {
    pthread_cleanup_push(clean, what);
    sem_post(&ready);
    sleep(1000);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *pauses(void *what) {
    pthread_cleanup_push(clean, what);
    sem_post(&ready);
    for (;;) pause();
    pthread_cleanup_pop(0);
    return NULL;
}
static void *waits(void *what) {
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlocks, what);
    sem_post(&ready);
    for (;;) pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *waits_with_a_limit(void *what) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += 1000;
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlocks, what);
    sem_post(&ready);
    for (;;) pthread_cond_timedwait(&never, &lock, &time);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *takes(void *what) {
    pthread_cleanup_push(clean, what);
    sem_post(&ready);
    sem_wait(&nothing);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *asks(void *what) {
    pthread_cleanup_push(clean, what);
    sem_post(&ready);
    for (;;) pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}
/* It is cancelled where it says that it may be, and not before. */
static void *refuses(void *what) {
    int old;
    struct timespec moment = {0, 1000000};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    sem_post(&ready);
    while (!goes_on) nanosleep(&moment, NULL);
    pthread_testcancel();
    cleaned += *(int *)what;
    pthread_setcancelstate(old, NULL);
    pthread_testcancel();
    return NULL;
}
static void run_once(void) {
    runs++;
    if (runs > 1) return;
    sem_post(&ready);
    sleep(1000);
}
static void *runs_once(void *what) {
    pthread_cleanup_push(clean, what);
    pthread_once(&once, run_once);
    pthread_cleanup_pop(0);
    return NULL;
}

static void handle(int signal) { signalled = signal; }
static void *is_signalled(void *what) {
    struct sigaction action = {0};
    action.sa_handler = handle;
    sigaction(SIGUSR1, &action, NULL);
    sem_post(&ready);
    while (!signalled) usleep(1000);
    return what;
}

static const char *cancelled(void *(*run)(void *), int what) {
    pthread_t thread;
    void *value;
    pthread_create(&thread, NULL, run, &what);
    sem_wait(&ready);
    /* Whoever has the mutex knows that the thread waits. */
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    if (pthread_cancel(thread) != 0) return "not to be cancelled";
    goes_on = 1;
    pthread_join(thread, &value);
    return value == PTHREAD_CANCELED ? "cancelled" : "returned";
}

int main(void) {
    pthread_t thread;
    int what = 0;
    sem_init(&ready, 0, 0);
    sem_init(&nothing, 0, 0);
    printf("sleeps %s ", cancelled(sleeps, 1 << 1));
    printf("pauses %s ", cancelled(pauses, 1 << 3));
    printf("waits %s ", cancelled(waits, 1 << 5));
    printf("with a limit %s ", cancelled(waits_with_a_limit, 1 << 7));
    printf("takes %s ", cancelled(takes, 1 << 9));
    printf("asks %s ", cancelled(asks, 1 << 11));
    goes_on = 0;
    printf("refuses %s ", cancelled(refuses, 1 << 13));
    printf("once %s\n", cancelled(runs_once, 1 << 15));
    pthread_once(&once, run_once);
    printf("cleaned %d runs %d\n", cleaned, runs);
    pthread_create(&thread, NULL, is_signalled, &what);
    sem_wait(&ready);
    printf("kill %d %d ", pthread_kill(thread, 0), pthread_kill(thread, 12345) == EINVAL);
    printf("%d ", pthread_kill(thread, SIGUSR1));
    pthread_join(thread, NULL);
    printf("signalled %d\n", signalled == SIGUSR1);
    printf("state %d type %d\n", pthread_setcancelstate(77, NULL) == EINVAL,
           pthread_setcanceltype(77, NULL) == EINVAL);
    return 0;
}
