//! What a node's protocols remember of one kind of regions.

use dhole_model::OidRange;

use crate::coherence::home::Home;
use crate::coherence::inbox::Inbox;
use crate::coherence::kind::Kind;
use crate::coherence::update::CopySets;
use crate::command::Commands;

/// What protocols remember of regions of one kind.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Remembered<R: Kind> {
    /// What was pushed here.
    pub inbox: Inbox<R>,
    /// The nodes that get each version of what this node writes.
    pub copysets: CopySets<R>,
    /// The nodes that get what is written in this interval, without having read it.
    pub next: CopySets<R>,
    pub home: Home<R>,
}

impl<R: Kind> Default for Remembered<R> {
    fn default() -> Self {
        Remembered {
            inbox: Inbox::default(),
            copysets: CopySets::default(),
            next: CopySets::default(),
            home: Home::default(),
        }
    }
}

impl<R: Kind> Remembered<R> {
    /// A region is kept consistent otherwise from now on: nothing of it is pushed.
    pub fn forget_pushes(&mut self, region: R, out: &mut Commands) {
        self.copysets.forget(region);
        self.next.forget(region);
        self.inbox.forget(region, out);
    }

    /// The regions with these ids were freed: nothing of them is pushed.
    pub fn freed_pushes(&mut self, ids: OidRange, out: &mut Commands) {
        self.copysets.freed(ids);
        self.next.freed(ids);
        self.inbox.freed(ids, out);
    }
}
