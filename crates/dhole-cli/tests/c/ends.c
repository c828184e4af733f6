/* What runs before `main` and after the run: it allocates, prints and locks, on every process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begins(void) {
    char *block = malloc(100);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    free(block);
}

__attribute__((destructor)) static void ends(void) {
    char *block = malloc(100), *grown;
    const char *kept = getenv("KEPT");
    void *shared = NULL;
    pthread_mutex_lock(&lock);
    strcpy(block, "the end");
    grown = realloc(block, 10000);
    puts(grown);
    pthread_mutex_unlock(&lock);
    free(grown);
    if (kept && sscanf(kept, "%p", &shared) == 1) free(shared);
    if (shared) puts("freed");
}

int main(void) {
    char text[40];
    snprintf(text, sizeof text, "%p", malloc(10));
    return setenv("KEPT", text, 1);
}
