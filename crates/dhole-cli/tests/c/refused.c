/* Threads until the system gives no more. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int is_over, ended;

static void *wait_for_end(void *value) {
    pthread_mutex_lock(&lock);
    while (!is_over) pthread_cond_wait(&over, &lock);
    ended++;
    pthread_mutex_unlock(&lock);
    return value;
}

int main(void) {
    pthread_t threads[MOST];
    int begun = 0, error = 0, wrong = 0;
    while (begun < MOST && !error) {
        error = pthread_create(&threads[begun], NULL, wait_for_end, (void *)(long)begun);
        begun += !error;
    }
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&over);
    pthread_mutex_unlock(&lock);
    for (long i = 0; i < begun; i++) {
        void *value;
        wrong += pthread_join(threads[i], &value) != 0 || value != (void *)i;
    }
    printf("%s threads, then %s; %s\n", begun > 0 && begun < MOST ? "some" : "no or all",
           error ? strerror(error) : "none", ended == begun && !wrong ? "joined" : "not joined");
    return 0;
}
