//! What a node holds and has to give back.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use dhole_model::CallSite;
use dhole_protocol::{Event, LockId, SyncObject};

/// Something that a node holds and has to give back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holding {
    /// A lock.
    Lock(LockId),
    /// A read-write lock, to read or to write.
    SyncObject(SyncObject),
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holding::Lock(lock) => lock.fmt(f),
            Holding::SyncObject(sync_object) => sync_object.fmt(f),
        }
    }
}

impl Holding {
    /// What gives it back.
    pub(crate) fn release(self, site: CallSite) -> Event {
        match self {
            Holding::Lock(lock) => Event::Release { lock },
            Holding::SyncObject(sync_object) => Event::Leave { sync_object, site },
        }
    }
}

/// What was dropped unreleased, with the place where it was acquired.
pub(crate) type Dropped = Rc<RefCell<Vec<(Holding, CallSite)>>>;
