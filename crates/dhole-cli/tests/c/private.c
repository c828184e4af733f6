/* Memory that a call of the system maps, past the C library: another node has none of it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned char *bytes;

static void *look(void *none) {
    if (bytes[1 << 30] == 0) puts("zero");
    return none;
}

int main(void) {
    pthread_t thread;
    long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    bytes = (void *)syscall(SYS_mmap, 0, 2L << 30, PROT_READ | PROT_WRITE, flags, -1L, 0L);
    bytes[1 << 30] = 1;
    printf("%p\n", (void *)(bytes + (1 << 30)));
    fflush(stdout);
    pthread_create(&thread, NULL, look, NULL);
    pthread_join(thread, NULL);
    return 0;
}
