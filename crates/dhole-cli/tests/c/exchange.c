/* Signals of a process that another node's thread takes: main blocks them all, and one thread after the other takes
   what comes, in each way that there is. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int handled, begun;
static pthread_t handled_by;

static void handle(int signal) {
    handled = signal;
    handled_by = pthread_self();
}

static sigset_t set_of(int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    return set;
}

static sigset_t all_but(int signal) {
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, signal);
    return set;
}

static void say(const char *how, int is_right) { printf("%s: %s\n", how, is_right ? "taken" : "wrong"); }

static void say_handled(const char *how, int signal) {
    say(how, handled == signal && pthread_equal(handled_by, pthread_self()));
    handled = 0;
}

static void *waits(void *none) {
    sigset_t set = set_of(SIGUSR1);
    int got = 0;
    begun = 1;
    sigwait(&set, &got);
    say("sigwait", got == SIGUSR1);
    return none;
}

static void *waits_to_end(void *none) {
    sigset_t set = set_of(SIGTERM);
    int got = 0;
    begun = 1;
    sigwait(&set, &got);
    say("sigwait of SIGTERM", got == SIGTERM);
    return none;
}

static void *waits_for_info(void *none) {
    sigset_t set = set_of(SIGRTMIN + 1);
    siginfo_t info;
    begun = 1;
    for (int i = 0; i < 20; i++) {
        int got = sigwaitinfo(&set, &info);
        if (got != SIGRTMIN + 1 || info.si_code != SI_QUEUE || info.si_value.sival_int != 100 + i) say("sigwaitinfo", 0);
    }
    say("sigwaitinfo of 20 in order", 1);
    return none;
}

static void *waits_for_a_time(void *none) {
    sigset_t set = set_of(SIGUSR2);
    struct timespec none_left = {0, 1000000}, long_time = {100, 0};
    errno = 0;
    say("sigtimedwait of nothing", sigtimedwait(&set, NULL, &none_left) == -1 && errno == EAGAIN);
    begun = 1;
    say("sigtimedwait", sigtimedwait(&set, NULL, &long_time) == SIGUSR2);
    return none;
}

static void *suspends(void *none) {
    sigset_t set = all_but(SIGUSR1);
    begun = 1;
    sigsuspend(&set);
    say_handled("sigsuspend", SIGUSR1);
    return none;
}

static void *polls(void *none) {
    sigset_t set = all_but(SIGUSR1);
    begun = 1;
    int polled = ppoll(NULL, 0, NULL, &set);
    say("ppoll is interrupted", polled == -1 && errno == EINTR);
    say_handled("ppoll", SIGUSR1);
    return none;
}

static void *selects(void *none) {
    sigset_t set = all_but(SIGUSR1);
    begun = 1;
    pselect(0, NULL, NULL, NULL, NULL, &set);
    say_handled("pselect", SIGUSR1);
    return none;
}

static void *pauses(void *none) {
    sigset_t set = set_of(SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    begun = 1;
    while (!handled) usleep(1000);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    say_handled("an open mask", SIGUSR1);
    return none;
}

/* What is pending already when a thread opens its mask. */
static void *opens(void *none) {
    sigset_t set = set_of(SIGUSR1);
    while (!begun) usleep(1000);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (!handled) usleep(1000);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    say_handled("a mask that is opened later", SIGUSR1);
    return none;
}

static void *dies(void *none) {
    sigset_t set = set_of(SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    begun = 1;
    for (;;) usleep(1000);
    return none;
}

static void send_one(int signal) { kill(getpid(), signal); }

static void send_from_outside(int signal) {
    pid_t child = fork();
    if (child == 0) {
        kill(getppid(), signal);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void send_timer(int signal) {
    struct sigevent event;
    struct itimerspec once = {{0, 0}, {0, 1000000}};
    timer_t timer;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = signal;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) abort();
    timer_settime(timer, 0, &once, NULL);
}

static void queue_20(int signal) {
    for (int i = 0; i < 20; i++) {
        union sigval value = {.sival_int = 100 + i};
        if (sigqueue(getpid(), signal, value)) abort();
    }
}

static void run(void *(*takes)(void *), void (*sends)(int), int signal) {
    pthread_t thread;
    begun = 0;
    pthread_create(&thread, NULL, takes, NULL);
    if (takes == opens) {
        sends(signal);
        begun = 1;
    } else {
        while (!begun) usleep(1000);
        sends(signal);
    }
    pthread_join(thread, NULL);
}

int main(int count, char **words) {
    sigset_t set;
    struct sigaction action;
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (count > 1 && !strcmp(words[1], "dies")) {
        run(dies, send_one, SIGUSR2);
        return 0;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(SIGUSR1, &action, NULL);
    void (*sends[])(int) = {send_one, send_from_outside, send_timer};
    /* Each is run on all of two nodes, and of three. */
    for (int i = 0; i < 6; i++) {
        void (*send)(int) = sends[i % 3];
        run(waits, send, SIGUSR1);
        run(waits_to_end, send, SIGTERM);
        run(waits_for_a_time, send, SIGUSR2);
        run(suspends, send, SIGUSR1);
        run(polls, send, SIGUSR1);
        run(selects, send, SIGUSR1);
        run(pauses, send, SIGUSR1);
        run(opens, send, SIGUSR1);
    }
    /* The threads of two nodes take turns, and each has begun when the other node has not yet heard that the last one
       has ended. */
    for (int i = 0; i < 40; i++) run(waits_for_info, queue_20, SIGRTMIN + 1);
    return 0;
}
