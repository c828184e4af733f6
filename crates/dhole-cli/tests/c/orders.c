/* Each way to acquire and release orders the accesses to a number of its own, on one page; and what
 * is run once is seen by all that call for it. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <threads.h>
#define TURNS 25
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag flag = ONCE_FLAG_INIT;
static pthread_spinlock_t spin;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static mtx_t plain;
static struct { int made, other, wrong[8], counts[7]; } all;
static void makes(void) { all.made += 7; }
static void makes_other(void) { all.other += 9; }
static void *run(void *number) {
    long me = (long)number;
    int *counts = all.counts;
    /* Each node has a copy from before. */
    all.wrong[me] = all.made != 0;
    pthread_barrier_wait(&barrier);
    pthread_once(&once, makes);
    all.wrong[me] += all.made != 7;
    call_once(&flag, makes_other);
    all.wrong[me] += all.other != 9;
    for (int turn = 0; turn < TURNS; turn++) {
        pthread_spin_lock(&spin);
        counts[0]++;
        pthread_spin_unlock(&spin);
        while (pthread_spin_trylock(&spin)) sched_yield();
        counts[1]++;
        pthread_spin_unlock(&spin);
        while (pthread_mutex_trylock(&mutex)) sched_yield();
        counts[2]++;
        pthread_mutex_unlock(&mutex);
        while (pthread_rwlock_trywrlock(&rwlock)) sched_yield();
        counts[3]++;
        pthread_rwlock_unlock(&rwlock);
        while (sem_trywait(&semaphore)) sched_yield();
        counts[4]++;
        sem_post(&semaphore);
        while (mtx_trylock(&plain) != thrd_success) sched_yield();
        counts[5]++;
        mtx_unlock(&plain);
        pthread_rwlock_wrlock(&rwlock);
        counts[6]++;
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[4];
    int wrong = 0;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&semaphore, 0, 1);
    mtx_init(&plain, mtx_plain);
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) wrong += all.wrong[i];
    printf("wrong %d counts", wrong);
    for (int i = 0; i < 7; i++) printf(" %d", all.counts[i]);
    printf("\n");
    return 0;
}
