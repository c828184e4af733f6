/* Functions that the C library's headers call by other names, with options that make them do so:
 * paths, blocks and results are shared, and another node has had them last. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

static char name[4096];
static struct stat found, linked, opened;
static struct rlimit limit;
static char *line;
static size_t room;

static void cleaned(void *name) { printf("cleaned up %s\n", (char *)name); }

static void *writes(void *unused) {
    memset(&found, 1, sizeof found);
    memset(&linked, 1, sizeof linked);
    memset(&opened, 1, sizeof opened);
    memset(&limit, 1, sizeof limit);
    strcpy(name, "/tmp/dhole-large-XXXXXX");
    close(mkstemp(name));
    pthread_cleanup_push(cleaned, "the thread");
    pthread_exit(unused);
    pthread_cleanup_pop(0);
}

int main(void) {
    pthread_t thread;
    FILE *file;
    int copy;
    pthread_create(&thread, NULL, writes, NULL);
    pthread_join(thread, NULL);
    copy = creat(name, 0600);
    printf("truncated %d\n", truncate(name, 7));
    printf("stat %d lstat %d ", stat(name, &found), lstat(name, &linked));
    printf("fstat %d ", fstat(copy, &opened));
    printf("%ld %ld %ld\n", (long)found.st_size, (long)linked.st_size, (long)opened.st_size);
    printf("limit %d %d\n", getrlimit(RLIMIT_NOFILE, &limit), limit.rlim_cur <= limit.rlim_max);
    file = freopen(name, "w+", fdopen(copy, "w"));
    fputs("a line\nanother\n", file);
    rewind(file);
    line = malloc(room = 1);
    printf("%ld ", (long)getline(&line, &room, file));
    line = realloc(line, 10000);
    printf("%s", line);
    free(line);
    unlink(name);
    return 0;
}
