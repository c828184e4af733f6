/* A program with the threads of C11, as it is. The first argument is the number of threads. */
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

static mtx_t lock, twice;
static cnd_t turned;
static once_flag flag = ONCE_FLAG_INIT;
static tss_t key;
static int threads, turn, onces, sum;

static void first(void) { onces++; }

static int work(void *argument) {
    int me = *(int *)argument, i;
    call_once(&flag, first);
    tss_set(key, argument);
    for (i = 0; i < 20; i++) {
        mtx_lock(&lock);
        while (turn % threads != me) cnd_wait(&turned, &lock);
        turn++;
        cnd_broadcast(&turned);
        mtx_unlock(&lock);
        mtx_lock(&twice);
        mtx_lock(&twice);
        sum += me;
        mtx_unlock(&twice);
        mtx_unlock(&twice);
        thrd_yield();
    }
    if (tss_get(key) != argument) printf("another thread's value\n");
    if (me == 1) thrd_exit(-7);
    return me;
}

int main(int count, char **words) {
    int i, value, values = 0, *numbers;
    thrd_t *all;
    threads = count > 1 ? atoi(words[1]) : 2;
    all = malloc(threads * sizeof *all);
    numbers = malloc(threads * sizeof *numbers);
    mtx_init(&lock, mtx_plain);
    mtx_init(&twice, mtx_recursive);
    cnd_init(&turned);
    tss_create(&key, NULL);
    for (i = 0; i < threads; i++) {
        numbers[i] = i;
        if (thrd_create(&all[i], work, &numbers[i]) != thrd_success) return 1;
    }
    for (i = 0; i < threads; i++) {
        if (thrd_join(all[i], &value) != thrd_success) return 2;
        values += value;
    }
    printf("turns %d once %d sum %d values %d ", turn, onces, sum, values);
    printf("%d\n", mtx_trylock(&lock) == thrd_success);
    mtx_destroy(&lock);
    return 0;
}
