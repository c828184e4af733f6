//! Object ids to bytes: handle tables, storage, pre-images, and the token that makes access to
//! shared objects safe.
//!
//! A [`Cluster`] reserves address space and object ids for its nodes. A [`Monitor`] is one node:
//! a lock over the node's heap and over the state of the engine above, and one [`Token`] that it
//! lends to the node's worker. With the token the worker reaches an object in one load and one
//! null test ([`Ref::get`], [`Ref::get_mut`]); what it does not find there is a [`Miss`], which
//! the engine answers through the [`HeapMut`] of the monitor.
//!
//! | module | knows |
//! |---|---|
//! | `geometry` | the sizes on which all agree |
//! | `cluster`, `parts`, `directory`, `binding`, `foreign`, `allocator` | a cluster's ids, and what type each allocated id is bound to |
//! | `multiprocess`, `catalog_log`, `catalog_sync` | nodes in several processes: who has which ids, and what processes announce of their objects |
//! | `share`, `share::type_map`, `owned_ref`, `layout`, `validity` | which types may be shared, and where their bytes are |
//! | `reference`, `row`, `plain`, `access`, `miss`, `target`, `cursor`, `borrow`, `named` | what the user holds, how to follow it |
//! | `array`, `array2`, `array_access`, `array_store`, `array_free`, `local_array`, `retained_elements`, `extent` | shared arrays, and their storage by blocks |
//! | `value`, `decoding` | single values as bytes, for those that travel beside objects |
//! | `global` | where objects lie that lie at the same place on every node |
//! | `pages`, `paged`, `paged_arrays`, `page_diff`, `page_diffs` | pages that are valid, twinned and compared as a whole |
//! | `token`, `presence`, `monitor`, `readers`, `on_thread` | who may touch bytes, and when; on which thread |
//! | `published`, `neighbour` | what a node publishes of its objects, and one-sided reads of it |
//! | `remote` | one-sided reads where the memory of others is reached through a port |
//! | `heap`, `alloc`, `in_place`, `free`, `transfer`, `handle`, `chunk`, `residency`, `pre_image`, `diff` | one node's objects |
//!
//! The memory itself, its addresses and what faults there are below: `dhole-space`.
//!
//! # Invariants
//!
//! All of the crate's unsafe code stands on these; safe code outside cannot break them.
//!
//! 1. *A set handle points to a valid object.* Where the read handle of id `i` is not null it
//!    points to initialised storage of the type and the length to which `i` is bound. The write
//!    handle is null or equal to the read handle. Under the detector `vm` one handle says both: it
//!    leads to a view of such storage that the worker may read, or write, only where the object is
//!    valid, or writable; and it is followed only after a touch that finds out (`dhole-space`,
//!    `touch`).
//! 2. *An id has one type in the whole process.* Only allocation binds ids, in the directory of
//!    the cluster that owns them; every reference that comes as bytes is checked against that
//!    directory before it becomes a reference. Ids are never reused, and the type of freed ones
//!    is known until no node has a record of them. So a `Ref<T>` is always of an id that was
//!    allocated as a `T`, or that is null in every table for ever; and below the size of every
//!    table.
//! 3. *Handles change only while the worker cannot look.* See the [`monitor`] module: handles are
//!    written by anybody under the node lock while the worker is in a call with `&mut Token`,
//!    and by the worker's own thread at the end of a call with `&Token`.
//! 4. *Storage never moves and is never handed out twice* while the cluster lives.
//!
//! ```
//! use dhole_heap::{Cluster, Monitor};
//! use dhole_model::NodeId;
//!
//! let cluster = Cluster::new(1).unwrap();
//! let node = Monitor::new(&cluster, NodeId(0), ());
//! let sum = node.lend(|mut token| {
//!     let numbers = node
//!         .exclusive_call(&mut token, |call| call.split().0.alloc_range(10, |i| i))
//!         .unwrap();
//!     numbers.iter().map(|r| *token.get(r).unwrap()).sum::<u64>()
//! });
//! assert_eq!(sum.unwrap(), 45);
//! ```
#![warn(unreachable_pub)]

#[cfg(test)]
extern crate self as dhole_heap;

mod access;
mod alloc;
mod allocator;
mod around;
mod array;
mod array2;
mod array_access;
mod array_bulk;
mod array_free;
mod array_store;
mod bad_indices;
mod binding;
mod borrow;
mod catalog_log;
mod catalog_sync;
mod chunk;
mod cluster;
mod combine;
mod cursor;
mod decoding;
mod diff;
mod directory;
mod expected;
mod extent;
mod foreign;
mod free;
mod gates;
mod geometry;
mod global;
mod handle;
mod heap;
mod in_place;
mod layout;
mod local_array;
mod miss;
pub mod monitor;
mod multiprocess;
mod named;
mod neighbour;
mod noted;
mod nursery;
mod on_thread;
mod owned_ref;
pub mod page_diff;
mod page_diffs;
mod paged;
mod paged_arrays;
mod pages;
mod parts;
mod pending_elements;
mod plain;
mod pre_image;
mod presence;
mod published;
mod published_blocks;
mod put;
mod reachable;
mod readers;
mod reference;
mod remote;
mod residency;
mod retained_elements;
mod row;
mod section;
mod serial;
mod set_aside;
mod shapes;
mod share;
mod tag;
mod target;
mod token;
mod transfer;
mod twin;
mod validity;
mod value;

pub use access::Access;
pub use alloc::AllocError;
pub use array::{Array, ArrayError, ArrayMiss, ArrayRange, OutOfBounds};
pub use array_store::{ElementsRefusal, ElementsRefused};
pub use array2::{Array2, NotRows};
pub use bad_indices::BadIndices;
pub use binding::{ArrayBinding, BindError, Binding};
pub use borrow::{Borrow, BorrowError, Read, Write};
pub use catalog_log::{LearnError, MOST_LEARNT};
pub use catalog_sync::Announcement;
pub use cluster::Cluster;
pub use combine::{Bits, Combinable, Combines, Combining, Operator, bits_of};
pub use cursor::{Link, ObjectCursor};
pub use decoding::{decode_next, decode_whole};
pub use dhole_macros::Share;
pub use dhole_space::{PAGE_BYTES, ReserveError};
pub use diff::{DiffError, diff_ranges};
pub use foreign::{Foreign, ForeignKind};
#[doc(hidden)]
pub use heap::{HeapMut, ObjectRefusal, ObjectRefused};
pub use layout::{DataRange, Grain, ReferenceForm};
pub use miss::Miss;
pub use monitor::{AlreadyLent, Guard, Monitor, MonitorCall, Within};
pub use named::{Name, Names};
pub use neighbour::{PublishedObject, READS_NEIGHBOURS, SeenBy};
pub use noted::NotedWrite;
pub use on_thread::{ANodesWorker, OnAnyThread, OnThread};
pub use owned_ref::Own;
pub use page_diff::PageDiffError;
pub use paged::{PageRefusal, PageRefused, Paged};
pub use presence::Presence;
pub use published_blocks::PublishedBlock;
pub use put::PutError;
pub use reachable::NamedObject;
pub use readers::{Absent, Readers, readers};
pub use reference::{Ref, Refs};
pub use remote::{RemoteObject, RemoteRead};
pub use row::{Row, Rows, Scalar};
pub use share::type_map::{Invalid, ReferenceSlot, TypeInfo, TypeMap, TypeRef};
pub use share::{MAX_ALIGN, Nullable, Share};
pub use tag::Tag;
pub use token::Token;
pub use transfer::{GatherError, InstallError};
pub use validity::{Leaf, LeafTest};
pub use value::{UnpackError, copy_of, pack, pack_scalars, unpack_scalars};

/// What the code that `#[derive(Share)]` writes refers to; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::{MAX_ALIGN, Nullable, Share, TypeMap};
}
