/* What a program in C shares, by dhole's own names: one case a run, which the first argument names.
 * Threads are one a node, started by dh_create, unless a second argument says how many. */
#include <dhole.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long threads, counter, with_value = 40;
static double table[5000];
static char name_of_file[256];
static dh_lock_t lock, many[100];
static dh_barrier_t barrier, other;
static dh_cond_t condition;
static dh_sem_t semaphore;
struct node { struct node *next; long value; };
static struct node *list;
static long next_thread;
static __thread long own;

static long number(void) {
    long mine;
    dh_lock(&lock);
    mine = next_thread++;
    dh_unlock(&lock);
    own = mine;
    return mine;
}

/* Globals with and without values, static ones of a function, a list from all nodes' malloc. */
static void globals(void) {
    static long calls = 7;
    long i, me = number();
    dh_barrier(&barrier, threads);
    if (dh_prefetch(table, sizeof table) || dh_push(&calls, sizeof calls)) puts(dh_error());
    for (i = me; i < 5000; i += threads) table[i] = i * 0.5;
    for (i = 0; i < 50; i++) {
        struct node *node = malloc(sizeof *node);
        dh_lock(&lock);
        counter++;
        with_value++;
        calls++;
        node->value = me;
        node->next = list;
        list = node;
        dh_unlock(&lock);
    }
    dh_barrier(&barrier, threads);
    if (me == 0) printf("calls %ld\n", calls);
    if (dh_push(&i, sizeof i) != -1) printf("a variable on the stack is shared\n");
    if (own != me) printf("a thread's own variable is another's\n");
}

static void run_globals(void) {
    double sum = 0;
    long i, count = 0, values = 0;
    struct node *node, *next;
    dh_create(globals, threads);
    dh_wait_for_end();
    for (i = 0; i < 5000; i++) sum += table[i];
    for (node = list; node; node = next) {
        next = node->next;
        count++;
        values += node->value;
        free(node);
    }
    printf("counter %ld with_value %ld sum %g list %ld %ld\n", counter, with_value, sum, count,
           values);
}

/* Each thread counts under each of many locks; then a ring of threads passes a number by a
 * condition, and another one by semaphores. */
static long turn, passed, given;

static void sync_all(void) {
    long i, me = number();
    for (i = 0; i < 1000; i++) {
        dh_lock(&many[i % 100]);
        table[i % 100] += 1;
        dh_unlock(&many[i % 100]);
    }
    dh_barrier(&other, threads);
    for (i = 0; i < 10; i++) {
        dh_lock(&lock);
        while (turn % threads != me) dh_cond_wait(&condition, &lock);
        turn++;
        passed += me;
        dh_cond_broadcast(&condition);
        dh_unlock(&lock);
    }
    for (i = 0; i < 10; i++) {
        dh_sem_acquire(&semaphore);
        given++;
        dh_sem_release(&semaphore);
    }
    if (dh_barrier(&barrier, threads) == 1) printf("one of %ld\n", threads);
}

static void run_sync(void) {
    long i;
    double sum = 0;
    dh_sem_set(&semaphore, 1);
    dh_create(sync_all, threads);
    dh_wait_for_end();
    for (i = 0; i < 100; i++) sum += table[i];
    printf("locked %g turns %ld passed %ld given %ld\n", sum, turn, passed, given);
}

/* Allocation: zeros, alignment, growth, and what another node has allocated. */
static void *taken[64];

static void allocates(void) {
    long i, me = number();
    for (i = 0; i < 64; i++) {
        if (i % threads != me) continue;
        taken[i] = malloc(i * 97 + 1);
        memset(taken[i], (int)i, i * 97 + 1);
    }
    dh_barrier(&barrier, threads);
    for (i = 0; i < 64; i++) {
        char *bytes;
        long at;
        if ((i + 1) % threads != me) continue;
        bytes = realloc(taken[i], i * 300 + 200);
        for (at = 0; at < i * 97 + 1; at++)
            if (bytes[at] != (char)i) printf("block %ld is %d at %ld\n", i, bytes[at], at);
        free(bytes);
    }
    for (i = 1; i < 5000; i = i * 3) {
        char *zeros = calloc(i, 3);
        long at;
        for (at = 0; at < i * 3; at++)
            if (zeros[at]) printf("%d in zeros\n", zeros[at]);
        memset(zeros, 9, i * 3);
        free(zeros);
    }
    for (i = 16; i <= 65536; i *= 2) {
        char *aligned = dh_aligned_alloc(i, i);
        if ((unsigned long)aligned % i) printf("%p %% %ld\n", (void *)aligned, i);
        aligned[i - 1] = 1;
        free(aligned);
    }
}

static void run_heap(void) {
    char *text = strdup("a string"), *line = NULL;
    size_t room = 0;
    FILE *file = tmpfile();
    long i;
    for (i = 16; i <= 65536; i *= 2) {
        void *aligned = dh_aligned_alloc(i, i);
        unsigned long was = (unsigned long)aligned;
        free(aligned);
        aligned = dh_aligned_alloc(i, i);
        if ((unsigned long)aligned != was) printf("%ld bytes are not given out again\n", i);
        free(aligned);
    }
    dh_create(allocates, threads);
    dh_wait_for_end();
    fputs("first line\nsecond\n", file);
    rewind(file);
    printf("%ld ", (long)getline(&line, &room, file));
    printf("%s%s %d\n", line, text, malloc((size_t)1 << 50) == NULL);
    printf("%s\n", dh_error());
    fclose(file);
}

/* Calls of the system with shared buffers and paths, on the node that has them last. */
static char buffer[10000];

static void reads(void) {
    int file;
    long i, me = number();
    if (me != threads - 1) return;
    file = open(name_of_file, O_RDONLY);
    printf("read %ld\n", (long)read(file, buffer, 10000));
    close(file);
    for (i = 0; i < 10000; i++) counter += buffer[i];
    memset(buffer, 'z', sizeof buffer);
}

static void run_io(void) {
    char *block = malloc(10000), *copy = malloc(10000);
    FILE *file;
    int temporary;
    strcpy(name_of_file, "/tmp/dhole-c-XXXXXX");
    temporary = mkstemp(name_of_file);
    memset(block, 'a', 10000);
    printf("wrote %ld\n", (long)write(temporary, block, 10000));
    fflush(stdout);
    dh_create(reads, threads);
    dh_wait_for_end();
    printf("sum %ld buffer %c%c\n", counter, buffer[0], buffer[9999]);
    file = fopen(name_of_file, "r+");
    printf("%ld ", (long)fwrite(buffer, 1, 5000, file));
    rewind(file);
    printf("%ld ", (long)fread(copy, 2, 5000, file));
    printf("%c%c\n", copy[4999], copy[5000]);
    fclose(file);
    printf("pread %ld ", (long)pread(temporary, copy + 9, 1, 9999));
    printf("%c unlinked %d\n", copy[9], unlink(name_of_file));
    memset(buffer, 'x', 9999);
    buffer[9999] = 0;
    puts(buffer);
}

static void last(void) { printf("at exit %ld\n", counter); }

static unsigned long wrong = 8;

static void faults(void) {
    if (dh_me() == 1) *(volatile int *)wrong = 1;
    dh_barrier(&barrier, threads);
}

static void exits(void) { counter = 5; }

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    threads = count > 2 ? atoi(words[2]) : dh_nodes();
    if (!strcmp(what, "globals")) run_globals();
    else if (!strcmp(what, "sync")) run_sync();
    else if (!strcmp(what, "heap")) run_heap();
    else if (!strcmp(what, "io")) run_io();
    else if (!strcmp(what, "exit")) {
        atexit(last);
        dh_create(exits, threads);
        dh_wait_for_end();
        exit(3);
    } else if (!strcmp(what, "twice")) {
        char *block = dh_malloc(100);
        dh_free(block);
        dh_free(block);
    } else if (!strcmp(what, "middle")) {
        dh_free((char *)dh_malloc(100) + 32);
    } else if (!strcmp(what, "fault")) {
        dh_create(faults, threads);
    } else if (!strcmp(what, "stray")) {
        wrong = 0x7ffbffa00000; /* between all stacks and what else is mapped */
        dh_create(faults, threads);
    } else if (!strcmp(what, "noncanonical")) {
        wrong = 1UL << 63;
        dh_create(faults, threads);
    } else if (!strcmp(what, "fork")) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit((int)counter);
        waitpid(child, &status, 0);
        printf("child: signal %d\n", WTERMSIG(status));
    } else if (!strcmp(what, "full")) {
        long blocks = 0;
        while (malloc((size_t)1 << 30)) blocks++;
        printf("blocks %ld of %d: %s\n", blocks, dh_nodes(), strerror(errno));
        printf("%s\n", dh_error());
    }
    return 0;
}
