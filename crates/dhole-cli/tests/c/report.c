/* Waits that a report names: for a lock, a condition, a semaphore, a barrier, and pages. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 100, PAGE = 4096 / sizeof(long) };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static sem_t turns[2];
static long turn, sum, *numbers;

static void locks(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 10000; i++) sum += i & 1;
    pthread_mutex_unlock(&lock);
}

static void waits_for_turn(long me) {
    pthread_mutex_lock(&lock);
    while (turn % 2 != me) pthread_cond_wait(&changed, &lock);
    turn++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void touches(long round) { numbers[round * PAGE]++; }

static void *works(void *part) {
    long me = (long)part;
    for (int round = 0; round < ROUNDS; round++) {
        locks();
        waits_for_turn(me);
        sem_wait(&turns[me]);
        touches(round);
        sem_post(&turns[!me]);
        pthread_barrier_wait(&both);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    numbers = calloc(ROUNDS * PAGE, sizeof *numbers);
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++) sem_init(&turns[i], 0, !i);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, works, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < ROUNDS; i++) sum += numbers[i * PAGE];
    printf("%ld\n", sum);
    return 0;
}
