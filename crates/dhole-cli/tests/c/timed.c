/* Waits with a limit, by both clocks, as they are: `dhole cc` and `cc -pthread` build it, and it
 * prints the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t days = PTHREAD_COND_INITIALIZER, ticks;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;
static sem_t slots;
static int turn;

static const struct timespec *in(clockid_t clock, long ms) {
    static __thread struct timespec time;
    clock_gettime(clock, &time);
    /* Negative: the time is over. */
    time.tv_sec -= ms < 0;
    time.tv_nsec += ms < 0 ? 0 : ms * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return &time;
}

static const char *what(int code) {
    return code == 0 ? "done" : code == ETIMEDOUT ? "late" : code == EINVAL ? "no time" : "?";
}

static const char *said(int code) { return what(code == 0 ? 0 : errno); }

/* Another thread holds everything until the turn is 1, and signals that it is 2. */
static void *holds(void *unused) {
    (void)unused;
    pthread_mutex_lock(&other);
    pthread_rwlock_wrlock(&rwlock);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&lock);
    while (turn != 1) pthread_cond_wait(&days, &lock);
    pthread_mutex_unlock(&lock);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_unlock(&other);
    sem_post(&slots);
    pthread_mutex_lock(&lock);
    turn = 2;
    pthread_cond_broadcast(&ticks);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_condattr_t kind;
    struct timespec none = {1, -1};
    int code;
    pthread_condattr_init(&kind);
    pthread_condattr_setclock(&kind, CLOCK_MONOTONIC);
    pthread_cond_init(&ticks, &kind);
    pthread_barrier_init(&both, NULL, 2);
    sem_init(&slots, 0, 0);
    pthread_create(&thread, NULL, holds, NULL);
    pthread_barrier_wait(&both);
    printf("%s ", what(pthread_mutex_timedlock(&other, in(CLOCK_REALTIME, 3))));
    printf("%s ", what(pthread_mutex_clocklock(&other, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, 3))));
    printf("%s ", what(pthread_rwlock_timedrdlock(&rwlock, in(CLOCK_REALTIME, 3))));
    printf("%s ", what(pthread_rwlock_timedwrlock(&rwlock, in(CLOCK_REALTIME, 3))));
    printf("%s ", what(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC,
                                                  in(CLOCK_MONOTONIC, 3))));
    printf("%s ", what(pthread_rwlock_clockwrlock(&rwlock, CLOCK_REALTIME, in(CLOCK_REALTIME, 3))));
    printf("%s ", said(sem_timedwait(&slots, in(CLOCK_REALTIME, 3))));
    printf("%s\n", said(sem_clockwait(&slots, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, 3))));
    pthread_mutex_lock(&lock);
    /* The time is over: the mutex is given up all the same, so that the other thread goes on. */
    turn = 1;
    pthread_cond_signal(&days);
    while (turn != 2) {
        code = pthread_cond_timedwait(&ticks, &lock, in(CLOCK_MONOTONIC, -1));
        if (code != 0 && code != ETIMEDOUT) break;
    }
    printf("turn %d ", turn);
    do code = pthread_cond_clockwait(&days, &lock, CLOCK_MONOTONIC, in(CLOCK_MONOTONIC, -1));
    while (code == 0);
    printf("%s ", what(code));
    printf("%s\n", what(pthread_cond_timedwait(&days, &lock, &none)));
    /* Nobody signals, so that no wait ends before its time. */
    printf("%s ", what(pthread_cond_timedwait(&days, &lock, in(CLOCK_REALTIME, 20))));
    printf("%s\n", what(pthread_cond_timedwait(&ticks, &lock, in(CLOCK_MONOTONIC, 20))));
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    printf("%s ", what(pthread_mutex_timedlock(&other, in(CLOCK_REALTIME, -1))));
    printf("%s ", what(pthread_rwlock_timedwrlock(&rwlock, in(CLOCK_REALTIME, 3))));
    printf("%s\n", said(sem_timedwait(&slots, in(CLOCK_REALTIME, 3))));
    return 0;
}
