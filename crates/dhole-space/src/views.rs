//! Three views of a node's page store: one that may not be touched, one that may be read, and one
//! that may be written (DOSA, section 3.4). All are the same memory, a file without a name that is
//! mapped several times, so an object is protected for itself: its handle selects the view, and no
//! protection is changed after the start.
//!
//! The first view needs no file behind it: it is a reservation, as untouchable. So a node takes
//! two of the mappings that the system allows a process, 65,530 as a rule, and its neighbours are
//! kept apart by reservations.

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
mod map;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri))))]
#[path = "views/absent.rs"]
mod map;

pub use map::{Views, view_of};

/// What the worker may do with what it sees through a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// Nothing.
    Nothing = 0,
    /// Read.
    Read = 1,
    /// Read and write.
    Write = 2,
}
