//! What each node runs by itself, as tasks: no call in it waits for all nodes.

use std::ops::{Deref, DerefMut};

use dhole_model::CallSite;

use crate::sync_error::SyncError;
use crate::worker::Worker;

/// A worker that refuses calls which wait for all nodes, until it is dropped.
#[doc(hidden)]
pub struct ByItself<'w, 'id>(&'w mut Worker<'id>);

impl<'id> Worker<'id> {
    /// The worker for what each node runs by itself, as tasks. A call of it that waits for all
    /// nodes is refused.
    ///
    /// # Errors
    /// [`SyncError::InTask`] if this call, `what`, is within another one.
    #[doc(hidden)]
    pub fn by_itself(
        &mut self,
        what: &'static str,
        site: CallSite,
    ) -> Result<ByItself<'_, 'id>, SyncError> {
        self.only_the_program(what, site)?;
        self.link.by_itself = Some(site);
        Ok(ByItself(self))
    }
}

impl<'id> Deref for ByItself<'_, 'id> {
    type Target = Worker<'id>;
    fn deref(&self) -> &Worker<'id> {
        self.0
    }
}

impl DerefMut for ByItself<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}

impl Drop for ByItself<'_, '_> {
    fn drop(&mut self) {
        self.0.link.by_itself = None;
    }
}
