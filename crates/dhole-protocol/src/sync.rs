//! Synchronisation: intervals and what is told of them, locks, sync objects, barriers, collectives
//! and the wait-for graph.
//!
//! An interval says what was written and freed in it, and carries what protocols have attached.
//! Nothing here reads that, or knows a coherence protocol: this module imports nothing of
//! `coherence`. The names of what nodes synchronise with ([`LockId`](crate::LockId),
//! [`BarrierId`](crate::BarrierId) and others) lie beside it: errors and messages have them too.

pub(crate) mod barrier;
pub(crate) mod collection;
pub(crate) mod collective;
pub(crate) mod compaction;
pub(crate) mod interval;
pub(crate) mod interval_log;
pub(crate) mod intervals;
pub(crate) mod lock;
pub(crate) mod notice_delta;
pub(crate) mod probes;
pub(crate) mod sections;
pub(crate) mod sync_objects;
pub(crate) mod traffic;
pub(crate) mod wait_for;
pub(crate) mod written_pages;
