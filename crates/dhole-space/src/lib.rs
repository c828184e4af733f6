//! Addresses and memory that is mapped: what lies below objects, and below raw memory.
//!
//! All memory that dhole maps for what is shared is mapped here. The heap above gives it types;
//! nothing here knows of objects more than their ids, places and bytes.
//!
//! | module | knows |
//! |---|---|
//! | `geometry` | the sizes on which all agree |
//! | [`space`], `reservation` | the process's one reservation, its slots, and which object ids went to which cluster |
//! | `page_store` | where in a store which bytes are free |
//! | `apart` | addresses for what the process maps for itself, away from what the system gives out |
//! | `mapping`, `shared_file` | memory that is mapped as a whole, and files without a name behind it |
//! | `visible`, `domain_file` | the memory of a process that others of its machine map |
//! | [`publication`], [`gate`], `publications` | what a node publishes of its objects, and where its neighbours find it |
//! | `window` | what a node publishes where others reach its memory through a port alone |
//! | [`touch`], `views`, `fault` | the detector `vm`: what may not be touched faults |
//! | `catcher`, `protection`, `store_fence` | raw memory: views of a file that are opened and closed page by page |
//! | [`runtime_thread`] | threads that dhole starts for itself, and the signals that they block |
//! | `variable` | what a variable of the environment says |
//! | [`exception_table`], [`signal`] | instructions that may fault, and handlers of signals |
//! | `lock_words`, `domain_locks` | locks of the threads of several processes, each a word in a file that all map |
//!
//! # Invariants
//!
//! 1. *A slot is one cluster's.* [`space::take_slots`] hands a slot out to one caller, until that
//!    one gives it back. Its tables hold nulls then.
//! 2. *Ids are never reused.* [`space::take_ids`] and [`space::take_window`] hand out ids that no
//!    cluster of the process had before, but parts of one cluster the same.
//! 3. *What is mapped stays mapped.* The reservation and the arena of views stay as long as the
//!    process; a [`Mapping`] as long as it lives. A file behind any of them never becomes shorter.
#![warn(unreachable_pub)]
#![cfg_attr(
    all(test, target_os = "linux", target_arch = "x86_64", not(miri)),
    expect(
        clippy::disallowed_macros,
        reason = "tests count the calls of their own thread"
    )
)]

#[cfg(not(miri))]
mod apart;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod catcher;
mod domain_file;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
mod domain_locks;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub mod exception_table;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod fault;
pub mod gate;
mod geometry;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod lock_words;
mod mapping;
mod page_store;
mod protection;
pub mod publication;
mod publications;
mod reservation;
pub mod runtime_thread;
mod shared_file;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub mod signal;
pub mod space;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod store_fence;
pub mod touch;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod variable;
mod views;
mod visible;
mod window;

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub use catcher::{Catcher, CatcherKind, ProtectionError};
pub use domain_file::DomainFile;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
pub use domain_locks::DomainLocks;
pub use geometry::{HUGE_BYTES, IDS_PER_PAGE, PAGE_BYTES};
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub use lock_words::LockAttempt;
pub use mapping::{Mapping, keep_from_children, map_at};
pub use page_store::{PageStore, Reserved};
pub use protection::Protection;
pub use publications::{IDS_OF_GATES, Neighbour, Neighbours, OwnPublications, Publications};
pub use reservation::{ReserveError, map_over};
pub use shared_file::SharedFile;
pub use views::{View, Views, view_of};
pub use visible::{StorePlace, VisibleMemory};
pub use window::{
    Put, ReadRoom, RemoteMemory, Reservation, Unreached, WindowMaker, WindowPublications,
    WindowRead, Windows,
};
