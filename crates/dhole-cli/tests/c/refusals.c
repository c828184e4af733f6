/* What functions on threads and locks refuse, as they are: `dhole cc --shared-stacks` and
 * `cc -pthread` build it, and it prints the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER, robust;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_key_t key;
static sem_t slots, goes_on[2];
static int destroyed;

static const char *what(int code) {
    switch (code) {
    case 0: return "done";
    case EDEADLK: return "EDEADLK";
    case EINVAL: return "EINVAL";
    case ESRCH: return "ESRCH";
    case EBUSY: return "EBUSY";
    case EPERM: return "EPERM";
    case EEXIST: return "EEXIST";
    case ENOENT: return "ENOENT";
    case EAGAIN: return "EAGAIN";
    case EOVERFLOW: return "EOVERFLOW";
    case ENAMETOOLONG: return "ENAMETOOLONG";
    default: return "?";
    }
}
static const char *said(int code) { return what(code == 0 ? 0 : errno); }
static const char *opened(sem_t *semaphore) { return said(semaphore == SEM_FAILED ? -1 : 0); }

static void destroy(void *value) { destroyed += *(int *)value; }

static void *waits(void *until) {
    sem_wait(until);
    return NULL;
}
static void *has_a_value(void *value) {
    pthread_setspecific(key, value);
    return NULL;
}
static void *reads(void *into) {
    *(const char **)into = what(pthread_rwlock_tryrdlock(&rwlock));
    return NULL;
}
static void *ends_with_it(void *unused) {
    pthread_mutex_lock(&robust);
    return unused;
}

static void locks(void) {
    pthread_t thread;
    const char *read;
    pthread_rwlock_wrlock(&rwlock);
    printf("rwlock %s ", what(pthread_rwlock_wrlock(&rwlock)));
    printf("%s ", what(pthread_rwlock_rdlock(&rwlock)));
    printf("%s ", what(pthread_rwlock_trywrlock(&rwlock)));
    pthread_create(&thread, NULL, reads, &read);
    pthread_join(thread, NULL);
    printf("%s ", read);
    pthread_rwlock_unlock(&rwlock);
    printf("%s\n", what(pthread_rwlock_rdlock(&rwlock)));
    pthread_mutex_lock(&held);
    printf("mutex %s ", what(pthread_mutex_destroy(&held)));
    pthread_mutex_unlock(&held);
    printf("%s\n", what(pthread_mutex_destroy(&held)));
}

/* A mutex that is not to be had as robust is no robust mutex. */
static void robust_ones(void) {
    pthread_mutexattr_t how;
    pthread_t thread;
    int is = 1;
    pthread_mutexattr_init(&how);
    if (pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST) == 0) {
        pthread_mutex_init(&robust, &how);
        pthread_create(&thread, NULL, ends_with_it, NULL);
        pthread_join(thread, NULL);
        is = pthread_mutex_lock(&robust) == EOWNERDEAD;
    }
    printf("robust %d stalled %s %s\n", is,
           what(pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_STALLED)),
           what(pthread_mutexattr_setrobust(&how, 77)));
}

static void threads(void) {
    pthread_attr_t how;
    pthread_t thread;
    struct sched_param param = {0};
    int policy = 77;
    printf("join %s ", what(pthread_join(pthread_self(), NULL)));
    pthread_create(&thread, NULL, waits, &goes_on[0]);
    printf("%s ", what(pthread_getschedparam(thread, &policy, &param)));
    printf("%d %d ", policy == SCHED_OTHER, param.sched_priority);
    printf("%s ", what(pthread_setschedparam(thread, SCHED_OTHER, &param)));
    param.sched_priority = 5;
    printf("%s ", what(pthread_setschedparam(thread, SCHED_OTHER, &param)));
    printf("%s ", what(pthread_detach(thread)));
    printf("%s ", what(pthread_join(thread, NULL)));
    printf("%s ", what(pthread_detach(thread)));
    sem_post(&goes_on[0]);
    pthread_attr_init(&how);
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &how, waits, &goes_on[1]);
    printf("%s\n", what(pthread_join(thread, NULL)));
    sem_post(&goes_on[1]);
}

static void keys(void) {
    pthread_t thread;
    int value = 1, many = 0;
    pthread_key_t one;
    pthread_key_create(&key, destroy);
    pthread_setspecific(key, &value);
    pthread_create(&thread, NULL, has_a_value, &value);
    pthread_join(thread, NULL);
    printf("key %d destroyed %d ", pthread_getspecific(key) == &value, destroyed);
    printf("%s ", what(pthread_key_delete(key)));
    printf("%d ", pthread_getspecific(key) == NULL);
    printf("%s ", what(pthread_setspecific(key, &value)));
    printf("%s ", what(pthread_key_delete(key)));
    while (pthread_key_create(&one, NULL) == 0) many++;
    printf("enough %d %s\n", many >= 128, what(pthread_key_create(&one, NULL)));
}

static void semaphores(void) {
    sem_t *one, *two;
    char name[40];
    int has = -1;
    sem_init(&slots, 0, 7);
    sem_wait(&slots);
    printf("semaphore %s ", said(sem_getvalue(&slots, &has)));
    printf("%d ", has);
    printf("%s ", said(sem_init(&slots, 0, (unsigned)SEM_VALUE_MAX + 1)));
    sem_init(&slots, 0, SEM_VALUE_MAX - 1);
    printf("%s ", said(sem_post(&slots)));
    printf("%s\n", said(sem_post(&slots)));
    snprintf(name, sizeof name, "/dhole-%p", (void *)&one);
    sem_unlink(name);
    printf("named %s ", opened(sem_open(name, 0)));
    one = sem_open(name, O_CREAT, 0600, 3);
    two = sem_open(name, O_CREAT, 0600, 9);
    printf("%d ", one == two);
    printf("%s ", opened(sem_open(name, O_CREAT | O_EXCL, 0600, 1)));
    sem_post(one);
    sem_getvalue(two, &has);
    printf("%d ", has);
    printf("%s ", said(sem_close(two)));
    printf("%s ", said(sem_unlink(name)));
    printf("%s ", said(sem_trywait(one)));
    printf("%s ", opened(sem_open(name, 0)));
    printf("%s ", said(sem_unlink(name)));
    printf("%s ", said(sem_close(one)));
    printf("%s\n", opened(sem_open("/", O_CREAT, 0600, 1)));
}

int main(void) {
    sem_init(&goes_on[0], 0, 0);
    sem_init(&goes_on[1], 0, 0);
    locks();
    robust_ones();
    threads();
    keys();
    semaphores();
    return 0;
}
