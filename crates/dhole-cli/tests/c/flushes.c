/* A thread on node 1 writes beside a copy of node 0, and releases that once a file is there. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int *numbers;
static char go[256];
static void *writes(void *ignored) {
    pthread_mutex_lock(&mutex);
    numbers[1] = 2;
    if (!access(go, F_OK)) return NULL;
    printf("written %d\n", (int)getpid());
    fflush(stdout);
    while (access(go, F_OK)) sched_yield();
    pthread_mutex_unlock(&mutex);
    return ignored;
}
int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 2) return 2;
    snprintf(go, sizeof go, "%s", argv[1]);
    numbers = calloc(2048, sizeof *numbers);
    numbers[0] = 1;
    printf("main %d\n", (int)getpid());
    fflush(stdout);
    pthread_create(&thread, NULL, writes, NULL);
    pthread_join(thread, NULL);
    printf("sum %d\n", numbers[0] + numbers[1]);
    return 0;
}
