//! Where a heap publishes its objects.

use dhole_model::Elements;
use dhole_space::{IDS_PER_PAGE, OwnPublications, WindowPublications};

/// The blocks of arrays that were made unpublished since the engine asked.
#[derive(Default)]
pub(crate) struct Unpublished {
    /// The blocks; those that follow on each other are joined.
    pub(crate) blocks: Vec<Elements>,
    /// Those of them that nodes may have read, and which nodes, one bit each.
    pub(crate) read: Vec<(Elements, u64)>,
}

/// Where a heap publishes.
pub(crate) enum Published {
    /// In memory that neighbours map.
    Mapped(OwnPublications),
    /// In a window, which neighbours reach through a port.
    Window(WindowPublications),
}

impl Published {
    /// Where it publishes in memory that neighbours map.
    pub(crate) fn mapped(&self) -> Option<&OwnPublications> {
        match self {
            Published::Mapped(own) => Some(own),
            Published::Window(_) => None,
        }
    }

    /// Nothing is published any more.
    pub(crate) fn clear(&mut self) {
        match self {
            Published::Mapped(own) => own.records.clear(),
            Published::Window(own) => own.clear(),
        }
    }

    /// Gives the memory of the records of a page of handles back; nothing is published there.
    pub(crate) fn release(&self, first: u64) {
        match self {
            Published::Mapped(own) => own.records.release(first, IDS_PER_PAGE),
            // A record there is another object's next.
            Published::Window(_) => (),
        }
    }
}
