/* dhole for programs in C: threads on several machines that share globals and allocated memory.
 * `dhole cc` compiles and links programs; `dhole run -n N -- ./program` runs them on N processes.
 * docs/c.md says what is shared, and what is not. C89 to C23, and C++. */
#ifndef DHOLE_H
#define DHOLE_H

#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a program declares to wait by. The address alone counts: two copies are two locks. */
typedef struct { long dh_unused; } dh_lock_t;
typedef struct { long dh_unused; } dh_barrier_t;
typedef struct { long dh_unused; } dh_cond_t;
typedef struct { long dh_unused; } dh_sem_t;

/* A thread that was started; 0 is none. */
typedef unsigned long dh_thread_t;

/* The number of this node, from 0, and how many there are. */
int dh_me(void);
int dh_nodes(void);

/* What the last call of this thread was refused, in words. */
const char *dh_error(void);

/* Shared memory, as malloc and its kin (whose names do the same in a program of dhole's). */
void *dh_malloc(size_t bytes);
void *dh_calloc(size_t count, size_t bytes);
void *dh_realloc(void *block, size_t bytes);
void *dh_aligned_alloc(size_t align, size_t bytes);
void *dh_valloc(size_t bytes);
void dh_free(void *block);

/* So many blocks of one size that this thread allocates, one after the other, are one unit that
 * moves between nodes, as far as they fit on a page. Returns the number before, which is 1 at first. */
size_t dh_chunk(size_t blocks);
/* An array of zeros whose elements lie on pages of their own, `*stride` bytes apart. One block for
 * dh_free. */
void *dh_malloc_each(size_t count, size_t bytes, size_t *stride);

/* Waits until this node has a copy of so many bytes. 0, or -1 with words in dh_error(). */
int dh_fetch(const volatile void *at, size_t bytes);
/* read and write, for memory that may be shared, of programs that call the system otherwise. */
long dh_read(int file, void *at, size_t bytes);
long dh_write(int file, const void *at, size_t bytes);

/* Hints, for speed: asks for memory that this node reads soon, and sends all others a copy of what
 * this node wrote. 0, or -1 with words in dh_error(). */
int dh_prefetch(const volatile void *at, size_t bytes);
int dh_push(const volatile void *at, size_t bytes);

/* Starts a thread on a node, without waiting for it; 0 where that cannot be done. */
dh_thread_t dh_start(int node, void *(*entry)(void *), void *argument);
/* Waits for a thread's end, and takes what it returned unless `value` is null. 0, or -1. */
int dh_join(dh_thread_t thread, void **value);

/* Each returns 0, or -1 with words in dh_error(), unless said otherwise. */
#define dh_lock(lock) dh_lock_at((lock), __FILE__, __LINE__)
/* 1 if the lock was free and is this thread's, 0 if another thread has it. */
#define dh_trylock(lock) dh_trylock_at((lock), __FILE__, __LINE__)
int dh_unlock(const volatile void *lock);
/* Waits until so many threads are there: 1 for one of them, 0 for the others. */
#define dh_barrier(barrier, threads) dh_barrier_at((barrier), (threads), __FILE__, __LINE__)
/* Waits for a signal, and releases the lock meanwhile. */
#define dh_cond_wait(cond, lock) dh_cond_wait_at((cond), (lock), __FILE__, __LINE__)
int dh_cond_signal(const volatile void *cond);
int dh_cond_broadcast(const volatile void *cond);
int dh_sem_set(const volatile void *sem, unsigned count);
#define dh_sem_acquire(sem) dh_sem_acquire_at((sem), __FILE__, __LINE__)
int dh_sem_release(const volatile void *sem);

int dh_lock_at(const volatile void *lock, const char *file, int line);
int dh_trylock_at(const volatile void *lock, const char *file, int line);
int dh_barrier_at(const volatile void *barrier, long threads, const char *file, int line);
int dh_cond_wait_at(const volatile void *cond, const volatile void *lock, const char *file,
                    int line);
int dh_sem_acquire_at(const volatile void *sem, const char *file, int line);

/* In a loop that waits for another node's store: the process ends where the run has ended. */
void dh_pause(void);

/* Prints what this node has counted: accesses that waited, messages. 0, or -1. */
int dh_stats(FILE *file);
/* Has a function called with words before the process ends because of a mistake of the program's,
 * or because an access to memory cannot be made; in that case in a handler of a signal. */
void dh_on_error(void (*told)(const char *words));

/* Microseconds of a clock of this machine. */
unsigned long dh_clock_us(void);

/* The macros CREATE and WAIT_FOR_END of SPLASH's programs: a function runs in so many threads, of
 * which the caller is one; and the caller waits for the others. */
void dh_create(void (*entry)(void), long threads);
void dh_wait_for_end(void);

#ifdef __cplusplus
}
#endif
#endif
