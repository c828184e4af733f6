/* Threads write every other element of arrays in turns, and read those of the others behind a
 * barrier; then they add to one number under a mutex. Each prints what its node has counted. None
 * releases in a turn before all have written: they meet by files of a folder, which dhole does not
 * know. */
#include <dhole.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define NUMBERS 4096
#define TURNS 10
static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int threads, *numbers;
static char *bytes;
static long sum, wrong;
static char folder[256];
static void meet(int turn, int me) {
    char own[300];
    snprintf(own, sizeof own, "%s/%d-%d", folder, turn, me);
    close(open(own, O_CREAT | O_WRONLY, 0600));
    for (int other = 0; other < threads; other++) {
        snprintf(own, sizeof own, "%s/%d-%d", folder, turn, other);
        while (access(own, F_OK)) sched_yield();
    }
}
static void *run(void *number) {
    int me = (int)(long)number;
    for (int turn = 1; turn <= TURNS; turn++) {
        for (int pass = 0; pass < 20; pass++)
            for (int i = me; i < NUMBERS; i += threads) {
                numbers[i]++;
                bytes[i] = (char)(turn + pass);
            }
        meet(turn, me);
        pthread_barrier_wait(&barrier);
        long seen = 0;
        for (int i = 0; i < NUMBERS; i++)
            seen += numbers[i] != 20 * turn || bytes[i] != (char)(turn + 19);
        pthread_mutex_lock(&mutex);
        wrong += seen;
        sum += numbers[me];
        pthread_mutex_unlock(&mutex);
        pthread_barrier_wait(&barrier);
    }
    pthread_mutex_lock(&mutex);
    dh_stats(stdout);
    pthread_mutex_unlock(&mutex);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t all[8];
    if (argc < 3) return 2;
    threads = atoi(argv[1]);
    snprintf(folder, sizeof folder, "%s", argv[2]);
    numbers = calloc(NUMBERS, sizeof *numbers);
    bytes = calloc(NUMBERS, 1);
    pthread_barrier_init(&barrier, NULL, threads);
    for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, run, (void *)i);
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
    printf("wrong %ld sum %ld\n", wrong, sum);
    free(numbers);
    free(bytes);
    return 0;
}
