//! Raw shared memory in units of any size (MultiView and Millipage).
//!
//! A program allocates memory, and reads and writes it by ordinary instructions. Each allocation is
//! a *minipage*, or several. One node may write a minipage, or several nodes may read it. An access
//! that a node may not make faults; the handler of the fault asks for the minipage and waits, and
//! the access is made again. So a hit costs what an access to private memory costs.
//!
//! A minipage may be smaller than a page, because one memory object is mapped several times: each
//! mapping is a *view*, and the minipages of one page lie in different views. Every view has a
//! protection of its own for the page. The runtime itself reads and writes through one more view,
//! the *privileged* one, which is always open.
//!
//! | module | what it holds |
//! |---|---|
//! | `access_error` | why an access cannot be made |
//! | `arena` | the memory object and its views |
//! | `attempt` | accesses to single numbers that return an error |
//! | `borrowed` | which line of the program borrowed an address |
//! | `coarse` | many rows read in the order of the memory object |
//! | `checked_access` | the instructions of those, and where to go on behind them |
//! | `fault` | the signal handlers |
//! | `program` | memory at the same addresses in all processes, globals included |
//! | `domain_holds` | what nodes of one domain hold, where no protocol runs |
//! | `held` | rows as slices, held while a closure has them |
//! | `here` | the thread that calls, of its node |
//! | `domain_locks` | the locks of threads, where all nodes are one domain |
//! | `lock_waits` | how a thread waits for one of them |
//! | `memory` | a node's part: the protocol's machine, its effects, and threads that fault |
//! | `context` | which node a thread belongs to, and how it waits |
//! | `minipage_diff` | what a node wrote into a minipage together with others |
//! | `node_sync` | a node's part of what threads wait for beside pages |
//! | `page_words` | an atomic for each page of each view |
//! | `places` | where a memory can lie that has the same addresses in all processes |
//! | `red_zones` | what is behind allocations that are isolated, and whether it was written |
//! | `shared` | what programs see |
//! | `sites` | where minipages were allocated and freed, in words |
//! | `sizes` | how large the numbers on each page are |
//! | `sync` | locks, barriers, conditions and semaphores of threads |
//! | `threads` | threads of a node beside its program's |
//! | `twins` | copies of minipages from before nodes wrote them together |
//! | `waiters` | those of them that wait |
//!
//! Only Linux on x86-64 has what this needs; elsewhere the crate is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]

mod access_error;
mod arena;
mod attempt;
mod borrowed;
mod checked_access;
mod coarse;
mod context;
mod domain_holds;
mod domain_locks;
mod fault;
mod held;
mod held_locks;
mod here;
mod interrupts;
mod lock_waits;
mod memory;
mod minipage_diff;
mod node_sync;
mod number;
mod page_words;
mod places;
mod program;
mod red_zones;
mod settings;
mod shared;
mod sites;
mod sizes;
pub mod sync;
mod thread_error;
pub mod threads;
mod twins;
mod waiters;

pub use access_error::{MemoryAccessError, MemoryAccessFailure};
pub use attempt::TryAccess;
pub use coarse::HeldRows;
pub use fault::{CANNOT_ACCESS, name_faults_by, on_failed_access};
pub use held::hold;
pub use number::{AtomicF32, AtomicF64, SharedNumber};
pub use program::{ProgramMemory, RawMemory};
pub use settings::MemorySettings;
pub use shared::{
    MemoryError, MemoryUsage, SharedCell, SharedRange, SharedRow, SharedRows, alloc, alloc_chunks,
    alloc_contiguous, alloc_groups, alloc_rows, usage, with_consistency,
};
