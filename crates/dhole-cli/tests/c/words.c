/* A queue of work with lists and strings that threads allocate and free for each other; getline,
 * qsort with a callback on shared data, getenv, strtok, open_memstream. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { struct item *next; char *word; int count; };
static struct { pthread_mutex_t lock; struct item *first; int open; pthread_cond_t more;
    } todo = {
    PTHREAD_MUTEX_INITIALIZER, NULL, 1, PTHREAD_COND_INITIALIZER };
static struct item *table[64];
static pthread_mutex_t locks[64];
static int words;
static unsigned hash(const char *s) {
    unsigned h = 5381;
    while (*s) h = h * 33 + (unsigned char)*s++;
    return h % 64;
}

static void count_word(const char *w) {
    unsigned h = hash(w);
    struct item *i;
    pthread_mutex_lock(&locks[h]);
    for (i = table[h]; i && strcmp(i->word, w); i = i->next) ;
    if (!i) {
        i = calloc(1, sizeof *i);
        i->word = strdup(w);
        i->next = table[h];
        table[h] = i;
        __atomic_fetch_add(&words, 1, __ATOMIC_SEQ_CST);
    }
    i->count++;
    pthread_mutex_unlock(&locks[h]);
}
static void *worker(void *unused) {
    (void)unused;
    for (;;) {
        struct item *i;
        char *rest, *w;
        pthread_mutex_lock(&todo.lock);
        while (!todo.first && todo.open) pthread_cond_wait(&todo.more, &todo.lock);
        i = todo.first;
        if (i) todo.first = i->next;
        pthread_mutex_unlock(&todo.lock);
        if (!i) return NULL;
        for (w = strtok_r(i->word, " ,.\n", &rest); w; w = strtok_r(NULL, " ,.\n", &rest))
            count_word(w);
        free(i->word);
        free(i);
    }
}
static int by_count(const void *a, const void *b) {
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    return x->count != y->count ? y->count - x->count : strcmp(x->word, y->word);
}
int main(int argc, char **argv) {
    pthread_t t[8];
    int threads = argc > 1 ? atoi(argv[1]) : 4, n = 0;
    char *line = NULL;
    size_t room = 0;
    FILE *f = tmpfile();
    for (int i = 0; i < 300; i++)
        fprintf(f, "the quick brown fox %d jumps, over the lazy dog. %d\n", i % 7, i % 3);
    rewind(f);
    for (int i = 0; i < 64; i++) pthread_mutex_init(&locks[i], NULL);
    for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, worker, NULL);
    while (getline(&line, &room, f) > 0) {
        struct item *i = malloc(sizeof *i);
        i->word = strdup(line);
        pthread_mutex_lock(&todo.lock);
        i->next = todo.first;
        todo.first = i;
        pthread_cond_signal(&todo.more);
        pthread_mutex_unlock(&todo.lock);
    }
    pthread_mutex_lock(&todo.lock);
    todo.open = 0;
    pthread_cond_broadcast(&todo.more);
    pthread_mutex_unlock(&todo.lock);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    struct item **all = malloc(words * sizeof *all);
    for (int i = 0; i < 64; i++) for (struct item *j = table[i]; j; j = j->next) all[n++] = j;
    qsort(all, n, sizeof *all, by_count);
    for (int i = 0; i < n; i++) printf("%s %d\n", all[i]->word, all[i]->count);
    char *text; size_t size;
    FILE *m = open_memstream(&text, &size);
    fprintf(m, "%d words %s", n, getenv("NOT_THERE") ? "?" : "none");
    fclose(m);
    puts(text);
    free(text);
    printf("%ld %d %d %d %d %d %d %d %d %d %g %s\n", 1L, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1.5, "end");
    free(line);
    fclose(f);
    return 0;
}
