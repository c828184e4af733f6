/* A program with POSIX threads, as it is: `dhole cc` and `cc -pthread` build it, and it prints the
 * same. The first argument is the number of threads. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, recursive;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static sem_t slots;
static int threads, onces, serial, spun, written, queue[4], head, length;
static long taken, deep;

static void first(void) { onces++; }

static void put(int value) {
    pthread_mutex_lock(&lock);
    while (length == 4) pthread_cond_wait(&emptied, &lock);
    queue[(head + length++) % 4] = value;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

static int take(void) {
    int value;
    pthread_mutex_lock(&lock);
    while (length == 0) pthread_cond_wait(&filled, &lock);
    value = queue[head];
    head = (head + 1) % 4;
    length--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&lock);
    return value;
}

static void recurse(int levels) {
    pthread_mutex_lock(&recursive);
    deep++;
    if (levels) recurse(levels - 1);
    pthread_mutex_unlock(&recursive);
}

static void *work(void *argument) {
    int me = *(int *)argument, i, value;
    long sum = 0;
    pthread_once(&once, first);
    pthread_setspecific(key, argument);
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) serial++;
    while ((value = take()) >= 0) sum += value;
    for (i = 0; i < 50; i++) {
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
        recurse(2);
        pthread_rwlock_rdlock(&rwlock);
        value = written;
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_wrlock(&rwlock);
        written++;
        if (written <= value) printf("%d was %d before\n", written, value);
        pthread_rwlock_unlock(&rwlock);
        sem_wait(&slots);
        sem_post(&slots);
    }
    if (pthread_getspecific(key) != argument) printf("another thread's value\n");
    pthread_mutex_lock(&lock);
    taken += sum;
    pthread_mutex_unlock(&lock);
    if (me == 1) pthread_exit((void *)100L);
    return (void *)(long)(me * me);
}

int main(int count, char **words) {
    pthread_t *all;
    pthread_mutexattr_t kind;
    struct timespec soon;
    int *numbers, i;
    long values = 0;
    threads = count > 1 ? atoi(words[1]) : 2;
    all = malloc(threads * sizeof *all);
    numbers = malloc(threads * sizeof *numbers);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &kind);
    pthread_barrier_init(&barrier, NULL, threads);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_key_create(&key, NULL);
    sem_init(&slots, 0, 2);
    for (i = 0; i < threads; i++) {
        numbers[i] = i;
        if (pthread_create(&all[i], NULL, work, &numbers[i])) return 1;
    }
    for (i = 0; i < 500; i++) put(i);
    for (i = 0; i < threads; i++) put(-1);
    for (i = 0; i < threads; i++) {
        void *value;
        if (pthread_join(all[i], &value)) return 2;
        values += (long)value;
    }
    printf("threads %d values %ld taken %ld ", threads, values, taken);
    printf("once %d serial %d\n", onces, serial);
    printf("spun %d deep %ld written %d\n", spun, deep, written);
    pthread_mutex_lock(&lock);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_nsec += 2000000;
    if (soon.tv_nsec >= 1000000000) {
        soon.tv_nsec -= 1000000000;
        soon.tv_sec++;
    }
    do i = pthread_cond_timedwait(&filled, &lock, &soon); while (i == 0);
    printf("%d ", i == ETIMEDOUT);
    printf("%d ", pthread_mutex_unlock(&lock));
    printf("%d ", pthread_mutex_trylock(&lock));
    sem_wait(&slots);
    sem_wait(&slots);
    i = sem_trywait(&slots);
    printf("%d %d\n", i, errno == EAGAIN);
    return 0;
}
