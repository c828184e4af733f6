/* A pipeline of stages with bounded queues and condition variables, whose queues and arguments are
 * locals of main and whose items are strings. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ctype.h>
#include <time.h>
typedef struct { pthread_mutex_t m; pthread_cond_t ne, nf; char *q[8]; int h, n; } queue;
typedef struct { queue *in, *out; int kind; long done; } stage;
static void q_init(queue *q) {
    pthread_condattr_t a;
    memset(q, 0, sizeof *q);
    pthread_mutex_init(&q->m, NULL);
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&q->ne, &a);
    pthread_cond_init(&q->nf, NULL);
}
static void put(queue *q, char *s) {
    pthread_mutex_lock(&q->m);
    while (q->n == 8) pthread_cond_wait(&q->nf, &q->m);
    q->q[(q->h + q->n++) % 8] = s;
    pthread_cond_signal(&q->ne);
    pthread_mutex_unlock(&q->m);
}
static char *take(queue *q) {
    char *s;
    pthread_mutex_lock(&q->m);
    while (q->n == 0) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec += 5;
        pthread_cond_timedwait(&q->ne, &q->m, &t);
    }
    s = q->q[q->h];
    q->h = (q->h + 1) % 8;
    q->n--;
    pthread_cond_signal(&q->nf);
    pthread_mutex_unlock(&q->m);
    return s;
}
static void *run(void *p) {
    stage *s = p;
    char *in;
    while ((in = take(s->in))) {
        char *out;
        size_t n = strlen(in);
        if (s->kind == 0) {
            out = strdup(in);
            for (size_t i = 0; i < n; i++) out[i] = toupper((unsigned char)in[i]);
        } else {
            out = malloc(2 * n + 2);
            sprintf(out, "%s-", in);
            for (size_t i = 0; i < n; i++) out[n + 1 + i] = in[n - 1 - i];
            out[2 * n + 1] = 0;
        }
        free(in);
        s->done++;
        put(s->out, out);
    }
    put(s->out, NULL);
    return NULL;
}
int main(int argc, char **argv) {
    queue q[3];
    stage s[2];
    pthread_t t[2];
    int items = argc > 1 ? 40 * atoi(argv[1]) : 50, count = 0;
    unsigned long sum = 0;
    char *got;
    for (int i = 0; i < 3; i++) q_init(&q[i]);
    for (int i = 0; i < 2; i++) {
        s[i].in = &q[i]; s[i].out = &q[i + 1]; s[i].kind = i; s[i].done = 0;
        pthread_create(&t[i], NULL, run, &s[i]);
    }
    int sent = 0, ended = 0;
    while (!ended) {
        while (sent <= items && q[0].n < 8 && sent - count < 12) {
            char b[64];
            snprintf(b, sizeof b, "item %d of %d", sent, items);
            put(&q[0], sent < items ? strdup(b) : NULL);
            sent++;
        }
        got = take(&q[2]);
        if (!got) { ended = 1; break; }
        for (char *c = got; *c; c++) sum = sum * 31 + (unsigned char)*c;
        count++;
        free(got);
    }
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    printf("%d items %lu, %ld and %ld\n", count, sum, s[0].done, s[1].done);
    pthread_mutex_lock(&q[0].m);
    struct timespec past;
    clock_gettime(CLOCK_MONOTONIC, &past);
    past.tv_sec--;
    printf("past %d\n", pthread_cond_timedwait(&q[0].ne, &q[0].m, &past) == ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &past);
    past.tv_nsec += 3000000;
    if (past.tv_nsec >= 1000000000) past.tv_nsec -= 1000000000, past.tv_sec++;
    int r;
    while ((r = pthread_cond_timedwait(&q[0].ne, &q[0].m, &past)) == 0) ;
    printf("soon %d\n", r == ETIMEDOUT);
    pthread_mutex_unlock(&q[0].m);
    return 0;
}
