/* Programs that make mistakes, and ends of programs: the first argument says which. */
#define _GNU_SOURCE
#include <dhole.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int counter;
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *crash(void *p) { (void)p; counter++; *(volatile int *)8 = 1; return 0; }
static int deep(int n) { char room[512]; room[n % 512] = n;
    return n == -1 ? 0 : deep(n + 1) + room[3]; }
static void *recurse(void *p) { (void)p; return (void *)(long)deep(0); }
static void *leave(void *p) { counter++; printf("leaving\n"); exit((int)(long)p); }
static void *forever(void *p) {
    (void)p;
    while (counter >= 0) {
        counter++;
        usleep(1000);
    }
    return 0;
}
static void *spin(void *p) {
    (void)p;
    while (counter >= 0) dh_pause();
    return 0;
}
static int touched[8];
/* Ends by nothing of its own: it computes, on what threads of other nodes write too. */
static void *computes(void *p) {
    printf("runs %d\n", (int)getpid());
    fflush(stdout);
    pthread_mutex_lock(&a);
    counter++;
    pthread_mutex_unlock(&a);
    for (;;) ((volatile int *)touched)[(long)p]++;
    return 0;
}
static void *leave_computing(void *p) {
    pthread_mutex_lock(&a);
    while (counter < 4) {
        pthread_mutex_unlock(&a);
        usleep(1000);
        pthread_mutex_lock(&a);
    }
    pthread_mutex_unlock(&a);
    exit((int)(long)p);
    return 0;
}
static void *late(void *p) { (void)p; usleep(100000); printf("late %d\n", ++counter); return 0; }
static void *ab(void *p) { (void)p; pthread_mutex_lock(&a); pthread_barrier_wait(&both);
    pthread_mutex_lock(&b); return 0; }
static void *ba(void *p) { (void)p; pthread_mutex_lock(&b); pthread_barrier_wait(&both);
    pthread_mutex_lock(&a); return 0; }
static void *blocked(void *p) {
    sigset_t all, old;
    (void)p;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < 2000; i++) __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
    printf("masked %d %d\n", sigismember(&old, SIGUSR1), sigismember(&old, SIGBUS));
    return 0;
}
static volatile sig_atomic_t seen;
static void on_usr1(int s) { seen = s; }
static void *aborts(void *p) { (void)p; abort(); }
static void said(const char *w) { write(2, "told: ", 6); write(2, w, strlen(w));
    write(2, "\n", 1); }
static void leaves(const char *w) { said(w); exit(9); }
static char alternate[65536];
static void on_alternate(int s) { char here; (void)s;
    seen = &here < alternate || &here >= alternate + sizeof alternate; }
static void *at_alternate(void *p) {
    stack_t own, old; struct sigaction act;
    (void)p; memset(&own, 0, sizeof own); memset(&act, 0, sizeof act);
    own.ss_sp = alternate; own.ss_size = sizeof alternate;
    if (sigaltstack(&own, 0) != 0) { printf("%s\n", dh_error()); return 0; }
    act.sa_handler = on_alternate; act.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &act, 0); raise(SIGUSR1);
    sigaltstack(0, &old);
    printf("private %d of %d\n", (int)seen, (int)(old.ss_size == sizeof alternate));
    return 0;
}
static void on_timer(union sigval of) { (void)of; pthread_mutex_lock(&a); }
/* What is printed here cannot be written when the process ends: the pipe is full. */
static void *stuck(void *p) {
    char block[4096]; int ends[2] = {0, 0}; FILE *file;
    (void)p; memset(block, 1, sizeof block);
    if (pipe(ends) != 0) return 0;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], block, sizeof block) > 0) {}
    fcntl(ends[1], F_SETFL, 0);
    file = fdopen(ends[1], "w"); fputs("left", file);
    counter = 1;
    while (counter >= 0) usleep(1000);
    return file;
}
static void gone(void) { printf("at exit %d\n", counter); }
int main(int argc, char **argv) {
    pthread_t t, u;
    const char *what = argc > 1 ? argv[1] : "";
    dh_on_error(said);
    if (!strcmp(what, "crash")) { pthread_create(&t, 0, crash, 0); pthread_join(t, 0);
        printf("joined\n"); }
    else if (!strcmp(what, "recurse")) {
        pthread_create(&t, 0, recurse, 0);
        pthread_join(t, 0);
    }
    else if (!strcmp(what, "recursemain")) { return deep(0); }
    else if (!strcmp(what, "exit0")) {
        atexit(gone);
        pthread_create(&t, 0, leave, (void *)0);
        pthread_join(t, 0);
        sleep(100);
    }
    else if (!strcmp(what, "exit5")) {
        atexit(gone);
        pthread_create(&u, 0, forever, 0);
        pthread_create(&t, 0, leave, (void *)5L);
        for (;;) sleep(1);
    }
    else if (!strcmp(what, "child3")) {
        pid_t child = fork();
        if (child == 0)
            exit(3);
        waitpid(child, NULL, 0);
        exit(5);
    }
    else if (!strcmp(what, "exit6")) {
        pthread_create(&t, 0, leave, (void *)6L);
        for (;;) sleep(1);
    }
    else if (!strcmp(what, "pool")) {
        pthread_create(&t, 0, forever, 0);
        pthread_create(&u, 0, spin, 0);
        printf("main ends\n");
        return 4;
    }
    else if (!strcmp(what, "computes")) {
        for (long i = 0; i < 4; i++) pthread_create(&t, 0, computes, (void *)i);
        leave_computing((void *)3L);
    }
    else if (!strcmp(what, "computes there")) {
        for (long i = 0; i < 4; i++) pthread_create(&t, 0, computes, (void *)i);
        pthread_create(&u, 0, leave_computing, (void *)3L);
        for (;;) touched[4]++;
    }
    else if (!strcmp(what, "pexit")) {
        pthread_create(&t, 0, late, 0);
        pthread_detach(t);
        pthread_exit(0);
    }
    else if (!strcmp(what, "deadlock")) {
        pthread_barrier_init(&both, 0, 2);
        pthread_create(&t, 0, ab, 0);
        pthread_create(&u, 0, ba, 0);
        pthread_join(t, 0);
    }
    else if (!strcmp(what, "nonode")) {
        struct sigevent event; struct itimerspec when; timer_t timer;
        memset(&event, 0, sizeof event); memset(&when, 0, sizeof when);
        memset(&timer, 0, sizeof timer);
        event.sigev_notify = SIGEV_THREAD; event.sigev_notify_function = on_timer;
        when.it_value.tv_nsec = 1000000;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return 1;
        if (timer_settime(timer, 0, &when, 0) != 0) return 2;
        sleep(60);
    }
    else if (!strcmp(what, "stuck")) {
        pthread_create(&t, 0, stuck, 0);
        while (!counter) dh_pause();
        alarm(60);
        return 7;
    }
    else if (!strcmp(what, "mask")) {
        pthread_create(&t, 0, blocked, 0);
        blocked(0);
        pthread_join(t, 0);
        printf("%d\n", counter);
    }
    else if (!strcmp(what, "signal")) {
        struct sigaction act; memset(&act, 0, sizeof act); act.sa_handler = on_usr1;
        sigfillset(&act.sa_mask);
        printf("%d ", sigaction(SIGUSR1, &act, 0)); raise(SIGUSR1);
        printf("%d %d ", seen == SIGUSR1, sigaction(SIGBUS, &act, 0));
        printf("%s\n", dh_error()); printf("%d\n", signal(SIGUSR2, on_usr1) == SIG_DFL); }
    else if (!strcmp(what, "abort")) { pthread_create(&t, 0, aborts, 0); pthread_join(t, 0); }
    else if (!strcmp(what, "leaves")) {
        dh_on_error(leaves); printf("before\n");
        pthread_mutex_lock(&a); pthread_mutex_lock(&a);
    }
    else if (!strcmp(what, "alternate")) {
        pthread_create(&t, 0, at_alternate, 0); pthread_join(t, 0); at_alternate(0);
    }
    else if (!strcmp(what, "recursive")) {
        pthread_mutexattr_t kind; pthread_mutex_t m; int tried[4];
        pthread_mutexattr_init(&kind); pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(&m, &kind);
        tried[0] = pthread_mutex_trylock(&m); tried[1] = pthread_mutex_trylock(&m);
        tried[2] = pthread_mutex_lock(&m);
        pthread_mutex_unlock(&m); pthread_mutex_unlock(&m); pthread_mutex_unlock(&m);
        tried[3] = pthread_mutex_unlock(&m);
        printf("tried %d %d %d %d\n", tried[0], tried[1], tried[2], tried[3] == EPERM);
    }
    else if (!strcmp(what, "locksinchild")) {
        int st; pid_t c; pthread_mutex_lock(&b); fflush(stdout);
        if ((c = fork()) == 0) {
            /* The parent has one of them. Nothing waits here. */
            pthread_mutex_lock(&a); pthread_mutex_lock(&b); pthread_mutex_unlock(&b);
            _exit(pthread_mutex_trylock(&a) + 3);
        }
        waitpid(c, &st, 0);
        printf("child %d parent %d\n", WEXITSTATUS(st), pthread_mutex_trylock(&a));
    }
    else if (!strcmp(what, "twice")) { char *volatile p = malloc(100); free(p); free(p); }
    else if (!strcmp(what, "stack")) { char x[64]; char *volatile p = x; free(p); }
    else if (!strcmp(what, "const")) { char *volatile p = (char *)"abc"; free(p); }
    else if (!strcmp(what, "global")) { char *volatile p = (char *)&counter; free(p); }
    else if (!strcmp(what, "huge")) {
        void *p = malloc((size_t)1 << 50);
        printf("%p %s\n", p, strerror(errno));
        p = malloc((size_t)200 << 30);
        printf("%s\n", p ? "got" : strerror(errno));
    }
    else if (!strcmp(what, "fork")) {
        int st; pid_t c; fflush(stdout);
        if ((c = fork()) == 0) { int local = 3; pthread_mutex_lock(&a); char *m = malloc(10);
        strcpy(m, "x"); free(m); exit(local + 4); }
        waitpid(c, &st, 0); printf("child %d\n", WEXITSTATUS(st)); fflush(stdout);
        if ((c = fork()) == 0) { execl("/bin/echo", "echo", "from exec", (char *)0); _exit(9); }
        waitpid(c, &st, 0); printf("exec %d\n", WEXITSTATUS(st)); fflush(stdout);
        if ((c = fork()) == 0) return 6;
        waitpid(c, &st, 0); printf("return %d\n", WEXITSTATUS(st));
        pthread_create(&t, 0, late, 0); pthread_join(t, 0); }
    else if (!strcmp(what, "wild")) {
        char *p = malloc(10);
        *(volatile char *)(p + ((size_t)1 << 35)) = 1;
    }
    else if (!strcmp(what, "unlock")) {
        printf("%d\n", pthread_mutex_unlock(&a) != 0);
        pthread_mutex_lock(&a);
        pthread_mutex_lock(&a);
    }
    else if (!strcmp(what, "sleep")) {
        pthread_create(&t, 0, forever, 0);
        pthread_create(&u, 0, forever, 0);
        pthread_join(t, 0);
    }
    else if (!strcmp(what, "dh")) {
        size_t stride; char *e = dh_malloc_each(10, 100, &stride); e[9 * stride] = 1;
        printf("stride %lu ", (unsigned long)stride);
        printf("chunk %lu ", (unsigned long)dh_chunk(4));
        char *x = malloc(100), *y = malloc(100); printf("apart %ld ", (long)(y - x));
        dh_chunk(1); free(x); free(y);
        printf("fetch %d stats %d\n", dh_fetch(e, 10 * stride), dh_stats(stderr)); free(e); }
    return 0;
}
