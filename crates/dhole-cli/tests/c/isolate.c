/* Mistakes that isolated allocations find, and what is none. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dhole.h"

static char *block;
static void (*does)(void);

static void writes_past(void)
{
    memset(block + 100, 1, 3);
}

static void frees(void)
{
    free(block);
}

static void writes_all(void)
{
    memset(block, 2, 100);
}

static void *elsewhere(void *ignored)
{
    if (dh_me() != 0)
        does();
    return ignored;
}

/* On another node, by one of two threads. */
static void on_another_node(void (*what)(void))
{
    int thread;
    does = what;
    for (thread = 0; thread < 2; thread++) {
        pthread_t id;
        pthread_create(&id, NULL, elsewhere, NULL);
        pthread_join(id, NULL);
    }
}

static pthread_barrier_t both;

/* The second thread writes past the block's end; then all read it, at once. */
static void *reads_after(void *number)
{
    if ((long)number == 1)
        writes_past();
    pthread_barrier_wait(&both);
    (void)*(volatile char *)block;
    pthread_barrier_wait(&both);
    return NULL;
}

static void all_at_once(void)
{
    pthread_t threads[4];
    long thread;
    pthread_barrier_init(&both, NULL, 4);
    for (thread = 0; thread < 4; thread++)
        pthread_create(&threads[thread], NULL, reads_after, (void *)thread);
    for (thread = 0; thread < 4; thread++)
        pthread_join(threads[thread], NULL);
}

static long sum(const char *from, size_t bytes)
{
    long all = 0;
    while (bytes-- > 0)
        all += *from++;
    return all;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    block = malloc(100);
    memset(block, 7, 100);
    if (!strcmp(what, "overflow")) {
        on_another_node(writes_past);
        printf("%d\n", block[0]);
    } else if (!strcmp(what, "all")) {
        all_at_once();
    } else if (!strcmp(what, "own")) {
        writes_past();
        free(block);
    } else if (!strcmp(what, "end")) {
        writes_past();
    } else if (!strcmp(what, "large")) {
        /* The compiler leaves out what it sees that nobody reads. */
        volatile char *large = malloc(3 * 4096);
        large[3 * 4096] = 1;
        free((char *)large);
    } else if (!strcmp(what, "freed")) {
        on_another_node(frees);
        printf("%d\n", block[0]);
    } else if (!strcmp(what, "twice")) {
        frees();
        frees();
    } else if (!strcmp(what, "right")) {
        char *large = calloc(3, 4096);
        on_another_node(writes_all);
        block = realloc(block, 5000);
        memset(block + 100, 1, 4900);
        memset(large, 1, 3 * 4096);
        printf("%ld %ld\n", sum(block, 5000), sum(large, 3 * 4096));
        on_another_node(frees);
        free(large);
    }
    return 0;
}
