/* CREATE in a program with shared stacks: each share hands out addresses of its locals, also the
 * share of the thread that creates. */
#define _GNU_SOURCE
#include <dhole.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SHARES 4
#define NUMBERS 64

static long lock, all, next;
static long *locals[SHARES], *results;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static long *of_once;

/* Takes addresses before the process joins the run. */
__attribute__((constructor)) static void takes(void)
{
    const char *taken = getenv("TAKEN");
    while (taken != NULL && *taken != 0) {
        char *behind;
        void *at = (void *)strtoul(taken, &behind, 16);
        if (mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != at)
            abort();
        taken = *behind == ',' ? behind + 1 : behind;
    }
}

/* The C library calls it on a private stack, with addresses in a shared one. */
static int by_value(const void *one, const void *other)
{
    long here = 0, a = *(const long *)one, b = *(const long *)other;
    unsigned long apart = (unsigned long)&here - (unsigned long)locals[0];
    if (apart < 1UL << 40 || -apart < 1UL << 40)
        results[5 * SHARES] = 1;
    return (a > b) - (a < b);
}

static void initialises(void)
{
    long local = 7;
    of_once = &local;
    dh_barrier(&all, SHARES);
    dh_barrier(&all, SHARES);
    results[4 * SHARES] = local;
}

static void share(void)
{
    long own[NUMBERS], sorted[NUMBERS], sum = 0, me, number, *other;

    dh_lock(&lock);
    me = next++;
    dh_unlock(&lock);
    for (number = 0; number < NUMBERS; number++)
        own[number] = (me + 1) * (number * 37 % NUMBERS);
    locals[me] = own;
    dh_barrier(&all, SHARES);
    memcpy(sorted, own, sizeof own);
    qsort(sorted, NUMBERS, sizeof *sorted, by_value);
    results[3 * SHARES + me] = 1;
    for (number = 0; number < NUMBERS; number++)
        if (sorted[number] != (me + 1) * number)
            results[3 * SHARES + me] = 0;
    other = locals[(me + 1) % SHARES];
    for (number = 0; number < NUMBERS; number++)
        sum += other[number];
    results[me] = sum == ((me + 1) % SHARES + 1) * NUMBERS * (NUMBERS - 1) / 2;
    dh_barrier(&all, SHARES);
    other[me] = 1000 + me;
    dh_barrier(&all, SHARES);
    number = (me + SHARES - 1) % SHARES;
    results[SHARES + me] = own[number] == 1000 + number;
    results[2 * SHARES + me] = 1;
    /* One of them runs it, and all others write its local. */
    if (me == 0) {
        pthread_once(&once, initialises);
    } else {
        dh_barrier(&all, SHARES);
        dh_lock(&lock);
        ++*of_once;
        dh_unlock(&lock);
        dh_barrier(&all, SHARES);
    }
}

static long count(const long *of)
{
    long number, sum = 0;
    for (number = 0; number < SHARES; number++)
        sum += of[number];
    return sum;
}

int main(void)
{
    long local[5 * SHARES + 1];

    memset(local, 0, sizeof local);
    results = local;
    dh_create(share, SHARES);
    dh_wait_for_end();
    printf("%d shares: own %ld others %ld creator %ld\n", SHARES, count(local + SHARES),
           count(local), count(local + 2 * SHARES));
    printf("callbacks %ld private %d\n", count(local + 3 * SHARES), local[5 * SHARES] ? 0 : SHARES);
    printf("once %d\n", local[4 * SHARES] == 7 + SHARES - 1);
    return 0;
}
