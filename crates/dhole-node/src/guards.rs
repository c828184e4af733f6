//! Guards of locks and read-write locks, and which of them were dropped unreleased.

use std::rc::Rc;

use dhole_model::CallSite;

use crate::error::Result;
use crate::holding::{Dropped, Holding};
use crate::sync_error::SyncError;
use crate::worker::Worker;

/// A holding that counts as dropped when it goes out of scope unreleased.
#[derive(Debug)]
pub(crate) struct Guard {
    pub holding: Holding,
    pub site: CallSite,
    dropped: Dropped,
    released: bool,
}

impl Guard {
    pub fn new(w: &Worker<'_>, holding: Holding, site: CallSite) -> Guard {
        Guard {
            holding,
            site,
            dropped: Rc::clone(&w.link.dropped),
            released: false,
        }
    }

    /// Runs `f`, then gives the holding back. An error of `f` comes before one of giving back,
    /// which may only say that the run has ended.
    pub fn during<R>(
        self,
        w: &mut Worker<'_>,
        site: CallSite,
        f: impl FnOnce(&mut Worker<'_>) -> Result<R>,
    ) -> Result<R> {
        let result = f(w);
        let released = self.release(w, site);
        let value = result?;
        released?;
        Ok(value)
    }

    /// Gives the holding back.
    pub fn release(self, w: &mut Worker<'_>, site: CallSite) -> Result<(), SyncError> {
        let holding = self.let_go(w, site)?;
        w.local(Some(holding.release(site)), site)
    }

    /// Leaves it to the caller to give the holding back, on the worker that acquired it.
    pub fn let_go(mut self, w: &Worker<'_>, site: CallSite) -> Result<Holding, SyncError> {
        if !Rc::ptr_eq(&self.dropped, &w.link.dropped) {
            return Err(SyncError::NotHere {
                holding: self.holding,
                node: w.node(),
                site,
                acquired: self.site,
            });
        }
        self.released = true;
        Ok(self.holding)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.released {
            self.dropped.borrow_mut().push((self.holding, self.site));
        }
    }
}

/// A type of what a program holds: a guard that is released once.
macro_rules! held {
    ($(#[$what:meta])* $name:ident) => {
        $(#[$what])*
        #[must_use = "a lock is held until it is released"]
        #[derive(Debug)]
        pub struct $name(Guard);

        impl $name {
            /// Releases the lock.
            ///
            /// # Errors
            /// [`SyncError::NotHere`] when `w` is not the worker that acquired it; the lock then
            /// counts as dropped by the worker that did.
            #[track_caller]
            pub fn release(self, w: &mut Worker<'_>) -> Result<(), SyncError> {
                self.0.release(w, CallSite::caller())
            }
        }
    };
}

pub(crate) use held;
