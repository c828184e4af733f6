/* What a program maps itself: memory, and files that its threads divide. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 4
#define SLOTS 4096

static unsigned char *bytes;
static long size, part[THREADS];

static void *sum_part(void *index) {
    long k = (long)index, sum = 0;
    for (long i = k * (size / THREADS); i < (k + 1) * (size / THREADS); i++) sum += bytes[i];
    part[k] = sum;
    return NULL;
}

static void run(void *(*f)(void *)) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, f, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void sum(void) {
    size = 8 << 20;
    bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(bytes, 1, size);
    run(sum_part);
    long all = 0;
    for (int i = 0; i < THREADS; i++) all += part[i];
    printf("%ld of %ld\n", all, size);
}

/* Counts words as map-reduce programs do: each thread its part of a file that is mapped, then main
 * adds up what they have found. */
struct word {
    const char *text;
    long length, count;
};
static const char *file;
static long file_size;
static struct word *found[THREADS];

static struct word *look(struct word *table, const char *text, long length) {
    unsigned long hash = 5381;
    for (long i = 0; i < length; i++) hash = hash * 33 + (unsigned char)text[i];
    struct word *at = &table[hash % SLOTS];
    while (at->text && (at->length != length || memcmp(at->text, text, length)))
        if (++at == table + SLOTS) at = table;
    at->text = text;
    at->length = length;
    return at;
}

static int in_word(long at) { return at >= 0 && at < file_size && isalpha((unsigned char)file[at]); }

static void *count_part(void *index) {
    long k = (long)index, at = file_size * k / THREADS, end = file_size * (k + 1) / THREADS;
    struct word *table = calloc(SLOTS, sizeof *table);
    if (in_word(at - 1))
        while (in_word(at)) at++;
    while (at < end) {
        long from = at;
        while (in_word(at)) at++;
        if (at > from) look(table, file + from, at - from)->count++;
        if (at == from) at++;
    }
    found[k] = table;
    return NULL;
}

static int most_first(const void *a, const void *b) {
    const struct word *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    long least = x->length < y->length ? x->length : y->length;
    int order = x->text && y->text ? memcmp(x->text, y->text, least) : 0;
    return order ? order : (int)(x->length - y->length);
}

static void words(const char *path, int flags) {
    struct stat status;
    int open_file = open(path, O_RDONLY);
    fstat(open_file, &status);
    file_size = status.st_size;
    file = mmap(NULL, file_size + 1, PROT_READ, flags, open_file, 0);
    close(open_file);
    if (file == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    run(count_part);
    struct word *all = calloc(SLOTS, sizeof *all);
    long total = 0, distinct = 0;
    for (int k = 0; k < THREADS; k++)
        for (int i = 0; i < SLOTS; i++)
            if (found[k][i].text) {
                look(all, found[k][i].text, found[k][i].length)->count += found[k][i].count;
                total += found[k][i].count;
            }
    for (int i = 0; i < SLOTS; i++) distinct += all[i].text != NULL;
    qsort(all, SLOTS, sizeof *all, most_first);
    printf("%ld words, %ld distinct\n", total, distinct);
    for (int i = 0; i < 5; i++) printf("%ld %.*s\n", all[i].count, (int)all[i].length, all[i].text);
    munmap((void *)file, file_size + 1);
}

static unsigned char *shared;
static void *look_at(void *index) {
    long k = (long)index;
    part[k] = shared[0] + shared[4096] + shared[3 * 4096 - 1];
    return NULL;
}

static void say(const char *what, long result) {
    printf("%s %ld%s%s\n", what, result < 0 ? -1 : result, result < 0 ? " " : "",
           result < 0 ? strerror(errno) : "");
}

static void calls(const char *path) {
    int both = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    shared = mmap(NULL, 3 * 4096, both, flags, -1, 0);
    say("zero", shared[0] + shared[12287]);
    shared[0] = 1, shared[4096] = 2, shared[3 * 4096 - 1] = 3;
    run(look_at);
    say("seen", part[0] + part[1] + part[2] + part[3]);
    say("protect", mprotect(shared, 4096, PROT_READ));
    say("protect", mprotect(shared, 4096, both));
    say("sequential", madvise(shared, 12288, MADV_SEQUENTIAL));
    say("willneed", posix_madvise(shared, 12288, POSIX_MADV_WILLNEED));
    say("dontneed", madvise(shared + 4096, 4096, MADV_DONTNEED));
    run(look_at);
    say("seen", part[0] + part[1] + part[2] + part[3]);
    shared = mremap(shared, 3 * 4096, 64 * 4096, MREMAP_MAYMOVE);
    say("grown", shared[0] + shared[12287] + shared[64 * 4096 - 1]);
    shared = mremap(shared, 64 * 4096, 3 * 4096, MREMAP_MAYMOVE);
    say("shrunk", shared[0] + shared[12287]);
    say("over", mmap(shared, 4096, both, flags | MAP_FIXED, -1, 0) == shared);
    run(look_at);
    say("seen", part[0] + part[1] + part[2] + part[3]);
    say("sync", msync(shared, 12288, MS_SYNC));
    say("part", munmap(shared + 8192, 4096));
    say("unmap", munmap(shared, 8192));
    say("none", (long)mmap(NULL, 0, both, flags, -1, 0));
    say("no file", (long)mmap(NULL, 4096, both, MAP_PRIVATE, -1, 0));
    say("odd", (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 5));
    int out = open(path, O_WRONLY);
    say("only written", (long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, out, 0));
    close(out);
    int in = open(path, O_RDONLY);
    char *copy = mmap(NULL, 4096, both, MAP_PRIVATE, in, 0), first;
    copy[0]++;
    say("read", pread(in, &first, 1, 0));
    say("own", copy[0] - first);
    close(in);
    int zeros = open("/dev/zero", O_RDWR);
    unsigned char *zero = mmap(NULL, 4096, both, MAP_PRIVATE, zeros, 0);
    say("device", zero[0] + zero[4095]);
    char *end = sbrk(100000);
    memset(end, 7, 100000);
    bytes = (unsigned char *)end, size = 100000;
    run(sum_part);
    say("break", part[0] + part[1] + part[2] + part[3]);
    say("back", sbrk(-100000) == end + 100000 && sbrk(0) == end);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "sum", *path = count > 2 ? arguments[2] : "";
    if (!strcmp(what, "sum"))
        sum();
    else if (!strcmp(what, "words"))
        words(path, MAP_PRIVATE);
    else if (!strcmp(what, "sharedwords"))
        words(path, MAP_SHARED);
    else if (!strcmp(what, "calls"))
        calls(path);
    else if (!strcmp(what, "written")) {
        int open_file = open(path, O_RDWR);
        void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open_file, 0);
        say("written", (long)at);
    } else if (!strcmp(what, "free"))
        free(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return 0;
}
