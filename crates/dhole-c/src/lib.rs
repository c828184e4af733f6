//! dhole for programs in C: the library that `dhole cc` links into them.
//!
//! A program in C or with POSIX threads runs unchanged on several machines. Its own globals and
//! what it allocates are raw shared memory at the same addresses on all nodes (`dhole::memory`).
//! Node 0 runs the program's `main`; the threads that it starts run on all nodes in turn.
//!
//! `dhole cc` renames names of the C library in the program's own object files, as `malloc` to
//! `dh_malloc`. The functions of this crate have these names. Those that a program may call itself
//! are in `include/dhole.h`, the macros of SPLASH's programs in `include/c.m4.dhole`.
//!
//! | module | what it holds |
//! |---|---|
//! | `entry` | `main`: the run, and the program's own `main` within it |
//! | `globals` | where the program's globals lie |
//! | `heap` | `malloc` and its kin |
//! | `mapped` | `mmap` and its kin |
//! | `program_break` | `sbrk` and `brk` |
//! | `process_state` | what a program sets in its process, and other nodes take over |
//! | `bounce` | calls of the system that read or write shared memory |
//! | `paths` | calls of the system that take a path |
//! | `sync` | locks, barriers, conditions, semaphores |
//! | `threads` | starting threads, and waiting for them |
//! | `thread` | what a thread has from its beginning to its end |
//! | `running` | the threads of the program on this node |
//! | `calls` | calls about threads of any node |
//! | `cancel` | cancellation of threads, and sleeping |
//! | `scheduling` | how threads are scheduled, and their attributes |
//! | `keys` | keys of values that each thread has |
//! | `posix` | POSIX names for threads, mutexes, conditions, barriers |
//! | `rwlock` | read-write locks of POSIX |
//! | `semaphore` | semaphores of POSIX |
//! | `named` | semaphores by names |
//! | `c11` | the names of C11's threads |
//! | `timed` | waits of POSIX that end at a moment |
//! | `signals` | calls about signals |
//! | `signal_set` | sets of signals |
//! | `signal_exchange` | signals of a process that go on to threads of other nodes |
//! | `deferred` | handlers of signals that interrupt this library |
//! | `stacks` | stacks of the program in shared memory |
//! | `site` | where in the program a function was called |
//! | `stats` | what the node has counted |
//! | `ending` | the end of this process, where all end at once |
//! | `exit` | how a program ends |
//! | `failure` | words about what cannot be done |
//!
//! Only Linux on x86-64 has what this needs; elsewhere the crate is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![allow(
    clippy::missing_safety_doc,
    reason = "C has no safe functions: a caller follows the header, and the manual page of libc's"
)]

mod bounce;
mod c11;
mod calls;
mod cancel;
mod deferred;
mod ending;
mod entry;
mod exit;
mod failure;
mod globals;
mod heap;
mod keys;
mod mapped;
mod named;
mod paths;
mod posix;
mod process_state;
mod program_break;
mod running;
mod rwlock;
mod scheduling;
mod semaphore;
mod signal_exchange;
mod signal_set;
mod signals;
mod site;
mod stacks;
mod stats;
mod stray;
mod sync;
mod thread;
mod threads;
mod timed;
