//! Names: values that any node finds under a text (VOTE, section 3.3).
//!
//! A name leads to a value that travels by value: a handle of an object, a client, a reference, a
//! lock, a number. The calls are methods of [`Worker`](crate::Worker):
//!
//! | call | what it does | messages |
//! |---|---|---|
//! | [`bind`](crate::Worker::bind) | binds a value to a name that is free | an ordered write |
//! | [`lookup`](crate::Worker::lookup) | the value that is bound to a name | none |
//! | [`await_name`](crate::Worker::await_name) | the same, as soon as there is one | none |
//! | [`bind_or_get`](crate::Worker::bind_or_get) | the same; the first node that asks makes it | none, or two ordered writes |
//! | [`unbind`](crate::Worker::unbind) | takes a name back | an ordered write |
//! | [`names`](crate::Worker::names) | the names that are bound | none |
//!
//! ```
//! use dhole::{Config, JobQueue};
//!
//! let run = Config::nodes(3).run(|w| {
//!     let jobs = w.bind_or_get("jobs", |w| Ok(JobQueue::<u64, u64>::of(w, 1..=10)?))?;
//!     jobs.work(w, |_, n| Ok(n * n))?;
//!     Ok(jobs.results(w)?.into_iter().sum::<u64>())
//! })?;
//! assert_eq!(run.value, 385);
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! Every node has a replica of the table of names. So a binding has a place in the order of all
//! operations, and what the value leads to is visible to the node that looks it up. A node that
//! waits for a name waits as at a guard: if no node can bind the name any more, the run is a
//! deadlock that says so. In a run that [survives](crate::Config::survive), names live on. A name
//! keeps nothing alive: what it leads to may be freed or lost, and its first use says so.
//!
//! A name has at most [`LONGEST_NAME`] bytes, a value [`LARGEST_VALUE`]. A run has at most
//! [`MOST_NAMES`] names.

pub use dhole_node::names::{LARGEST_VALUE, LONGEST_NAME, MOST_NAMES, NameError};
