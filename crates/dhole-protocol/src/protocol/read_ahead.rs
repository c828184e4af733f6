//! What is read ahead with a missed object.

use dhole_model::OidRange;

use super::Protocol;
use crate::WantedList;
use crate::command::Unread;
use crate::read_ahead::ReadAhead;

impl Protocol {
    /// The objects around a missed one that are worth reading ahead: so many of them came from its
    /// last writer before. `ahead` says of which ids all name objects that were allocated as the
    /// missed one was.
    pub fn dense_around(&self, missed: &Unread, ahead: &ReadAhead) -> Option<OidRange> {
        self.coherence.dense_around(missed, ahead)
    }

    /// Those of a [dense](Protocol::dense_around) range that this node lacks and may read where it
    /// reads the missed one, each with the version that it needs.
    pub fn wants_ahead(&mut self, missed: &Unread, range: OidRange) -> WantedList {
        self.coherence.wants_ahead(missed, range)
    }

    /// The next [`Event::ReadMiss`](crate::Event::ReadMiss) asks for these objects too, as far as
    /// this node lacks them and the node has them that is asked. Up to
    /// [`MOST_BESIDE`](crate::MOST_BESIDE) of them.
    pub fn reads_ahead(&mut self, range: OidRange) {
        self.coherence.reads_ahead(range);
    }
}
