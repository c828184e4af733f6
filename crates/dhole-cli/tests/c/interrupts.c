/* Handlers of signals that interrupt functions on locks, memory and threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define RINGS 300
#define PLACES 4096

static sem_t wake, never;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t both;
static int rings, stop, handled, release;
static long sum, parts[THREADS], *touched;

static void rung(int signal) {
    int ring = __atomic_fetch_add(&rings, 1, __ATOMIC_SEQ_CST);
    (void)signal;
    __atomic_fetch_add(&touched[ring * 64 % PLACES], 1, __ATOMIC_SEQ_CST);
    sem_post(&wake);
}

static void ring_each_millisecond(int is_on) {
    struct itimerval every = {{0, is_on * 1000}, {0, is_on * 1000}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void *works(void *part) {
    long own = 0;
    ring_each_millisecond(1);
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        long *block = malloc(64 + own % 1000);
        *block = 1;
        pthread_mutex_lock(&lock);
        sum += *block;
        pthread_cond_signal(&turn);
        pthread_mutex_unlock(&lock);
        free(block);
        pthread_rwlock_rdlock(&rw);
        pthread_rwlock_unlock(&rw);
        own++;
    }
    parts[(long)part] = own;
    return NULL;
}

static void many(void) {
    pthread_t threads[THREADS];
    long all = 0, taken = 0, places = 0;
    int left;
    touched = calloc(PLACES, sizeof *touched);
    sem_init(&wake, 0, 0);
    signal(SIGALRM, rung);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, works, (void *)i);
    ring_each_millisecond(1);
    for (; taken < RINGS; taken++) {
        while (sem_wait(&wake)) {
        }
        pthread_mutex_lock(&lock);
        if (taken % 8 == 0) pthread_cond_wait(&turn, &lock);
        pthread_mutex_unlock(&lock);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += parts[i];
    }
    /* The other processes' timers are on: what they post is taken until none comes any more. */
    signal(SIGALRM, SIG_IGN);
    ring_each_millisecond(0);
    for (int quiet = 0; quiet < 50; quiet++) {
        for (; !sem_trywait(&wake); taken++) quiet = 0;
        sem_getvalue(&wake, &left);
        for (int i = places = 0; i < PLACES; i++) places += __atomic_load_n(&touched[i], __ATOMIC_SEQ_CST);
        if (left == 0 && taken == rings && places == taken) break;
        usleep(10000);
    }
    printf("sum %s, rings %s\n", sum == all ? "right" : "wrong", taken == rings && places == taken ? "right" : "wrong");
    if (taken != rings || places != taken) printf("%ld taken of %d, %ld places\n", taken, rings, places);
}

static void handle(int signal) {
    (void)signal;
    __atomic_store_n(&handled, 1, __ATOMIC_SEQ_CST);
}

static int is_handled(void) { return __atomic_load_n(&handled, __ATOMIC_SEQ_CST); }

/* Has another thread's handler run while that thread waits, and ends the wait only then. */
static pthread_t waiter;
static int is_locked;

static void *interrupts(void *how) {
    int kind = (int)(long)how;
    if (kind == 0) pthread_mutex_lock(&lock);
    if (kind == 1) pthread_rwlock_wrlock(&rw);
    __atomic_store_n(&is_locked, 1, __ATOMIC_SEQ_CST);
    usleep(20000);
    pthread_kill(waiter, SIGUSR1);
    while (!is_handled()) usleep(1000);
    if (kind == 0) pthread_mutex_unlock(&lock);
    if (kind == 1) pthread_rwlock_unlock(&rw);
    if (kind == 2) pthread_barrier_wait(&both);
    while (kind == 3 && !__atomic_load_n(&release, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    return NULL;
}

static void waits(long kind) {
    static const char *names[] = {"mutex", "read-write lock", "barrier", "condition", "join"};
    struct sigaction action;
    pthread_t thread;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(SIGUSR1, &action, NULL);
    handled = is_locked = release = 0;
    waiter = pthread_self();
    pthread_create(&thread, NULL, interrupts, (void *)kind);
    while (!__atomic_load_n(&is_locked, __ATOMIC_SEQ_CST)) usleep(100);
    if (kind == 0) pthread_mutex_lock(&lock);
    if (kind == 1) pthread_rwlock_rdlock(&rw);
    if (kind == 2) pthread_barrier_wait(&both);
    if (kind == 3) {
        pthread_mutex_lock(&lock);
        while (!is_handled()) pthread_cond_wait(&turn, &lock);
        pthread_mutex_unlock(&lock);
        __atomic_store_n(&release, 1, __ATOMIC_SEQ_CST);
    }
    if (kind == 0) pthread_mutex_unlock(&lock);
    if (kind == 1) pthread_rwlock_unlock(&rw);
    pthread_join(thread, NULL);
    printf("%s: handled %d\n", names[kind], is_handled());
}

static void *waits_all(void *none) {
    for (long kind = 0; kind < 5; kind++) waits(kind);
    return none;
}

static void ring_once(int flags) {
    struct sigaction action;
    struct itimerval once = {{0, 0}, {0, 20000}};
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &once, NULL);
}

static void semaphores(void) {
    struct timespec limit;
    sem_init(&never, 0, 0);
    ring_once(0);
    int waited = sem_wait(&never);
    printf("sem_wait %d %s\n", waited, errno == EINTR ? "EINTR" : "other");
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 100;
    ring_once(SA_RESTART);
    waited = sem_timedwait(&never, &limit);
    printf("sem_timedwait %d %s\n", waited, errno == EINTR ? "EINTR" : "other");
}

/* Two signals of the process, each of which is sent again once its handler has run. */
static sem_t answers[2];
static const int asks[2] = {SIGUSR1, SIGUSR2};

static void answer(int signal) { sem_post(&answers[signal == SIGUSR2]); }

static void *sends(void *which) {
    long me = (long)which;
    for (int i = 0; i < 100; i++) {
        kill(getpid(), asks[me]);
        while (sem_wait(&answers[me])) {
        }
    }
    return NULL;
}

static void *takes(void *set) {
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
    while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void two(void) {
    static sigset_t set;
    struct sigaction action;
    pthread_t taker, senders[2];
    memset(&action, 0, sizeof action);
    action.sa_handler = answer;
    sigemptyset(&set);
    for (int i = 0; i < 2; i++) {
        sem_init(&answers[i], 0, 0);
        sigaction(asks[i], &action, NULL);
        sigaddset(&set, asks[i]);
    }
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&taker, NULL, takes, &set);
    for (long i = 0; i < 2; i++) pthread_create(&senders[i], NULL, sends, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(senders[i], NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(taker, NULL);
    puts("200 answers");
}

int main(int count, char **words) {
    pthread_t thread;
    if (count > 1 && !strcmp(words[1], "many")) {
        many();
        return 0;
    }
    if (count > 1 && !strcmp(words[1], "two")) {
        two();
        return 0;
    }
    pthread_barrier_init(&both, NULL, 2);
    waits_all(NULL);
    /* A thread of each node waits. */
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread, NULL, waits_all, NULL);
        pthread_join(thread, NULL);
    }
    semaphores();
    return 0;
}
