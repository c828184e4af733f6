/* Takes addresses on one node before it joins the run. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((constructor)) static void takes(void)
{
    const char *node = getenv("DHOLE_NODE"), *taken = getenv("TAKEN");
    if (node == NULL || taken == NULL || strcmp(node, "1"))
        return;
    while (*taken != 0) {
        char *behind;
        void *at = (void *)strtoul(taken, &behind, 16);
        if (mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != at)
            abort();
        taken = *behind == ',' ? behind + 1 : behind;
    }
}

static void *writes(void *block)
{
    ++*(int *)block;
    return NULL;
}

int main(void)
{
    int thread, *block = malloc(sizeof *block);
    *block = 0;
    for (thread = 0; thread < 2; thread++) {
        pthread_t id;
        pthread_create(&id, NULL, writes, block);
        pthread_join(id, NULL);
    }
    printf("%lx %d\n", (unsigned long)block >> 40, *block);
    return 0;
}
