//! Jackal's home-based protocol with several writers (Jackal, section 3.1; HLRC).
//!
//! Each object has a *home*, which always has a valid copy and writes it in place. Any other node
//! fetches a copy from there, takes a *twin* at its first write, and puts the object on its *flush
//! list*. Before it releases, acquires or meets others, the list is flushed: the differences
//! between copies and twins go home, in one message for each home, and are acknowledged once they
//! are part of the object there. So whoever acquires later finds them at home. At an acquire all
//! copies of objects at home elsewhere are dropped. There are no write notices.
//!
//! Who is home is written in an object's version: `held().node` of every copy.

use std::collections::VecDeque;

use dhole_model::{NodeId, Oid};
use smallvec::SmallVec;

use crate::command::{Command, Commands, ProtocolError, WorkerIs};
use crate::object_table::ObjectTable;
use crate::{Flushed, Message};

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Home {
    /// The flush list: objects written since the last flush.
    written: Vec<Oid>,
    /// Valid copies of objects whose home is elsewhere.
    cached: Vec<Oid>,
    /// Counts the flushes.
    flush: u32,
    /// The homes that have not acknowledged it yet.
    awaited: Vec<NodeId>,
    /// Flushes that wait for a call of the worker that owns the token; at most one of each node.
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiting {
    from: NodeId,
    number: u32,
    flushed: SmallVec<[Flushed; 1]>,
}

impl Home {
    /// A copy of an object at home elsewhere has come.
    pub fn cache(&mut self, oid: Oid) {
        self.cached.push(oid);
    }

    /// The worker begins to write an object. Elsewhere than at home that takes a twin.
    pub fn write_fault(
        &mut self,
        me: NodeId,
        oid: Oid,
        objects: &mut ObjectTable,
        out: &mut Commands,
    ) {
        let object = objects.get_mut(oid);
        if !object.dirty {
            object.dirty = true;
            self.written.push(oid);
            let twin = object.held().is_some_and(|version| version.node != me);
            out.push(Command::MakeWritable {
                oid,
                pre_image: twin,
            });
        }
    }

    /// An object was freed.
    pub fn forget(&mut self, oid: Oid) {
        self.written.retain(|other| *other != oid);
        self.cached.retain(|other| *other != oid);
    }

    /// Whether the flush list has anything on it.
    pub fn has_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Sends home what was written since the last flush; done when all homes have acknowledged.
    pub fn flush(&mut self, me: NodeId, objects: &mut ObjectTable, out: &mut Commands) {
        let mut by_home: Vec<(NodeId, Oid)> = Vec::with_capacity(self.written.len());
        for oid in self.written.drain(..) {
            let object = objects.get_mut(oid);
            object.dirty = false;
            by_home.extend(object.held().map(|version| (version.node, oid)));
        }
        by_home.sort_unstable();
        self.flush = self.flush.wrapping_add(1);
        for of_home in by_home.chunk_by(|one, next| one.0 == next.0) {
            let to = of_home[0].0;
            if to != me {
                let number = self.flush;
                let objects = of_home.iter().map(|(_, oid)| *oid).collect();
                out.push(Command::Flush {
                    to,
                    number,
                    objects,
                });
                self.awaited.push(to);
            }
            out.extend(of_home.iter().map(|(_, oid)| Command::MakeClean(*oid)));
        }
        if self.awaited.is_empty() {
            out.push(Command::Done);
        }
    }

    /// A home has made what was flushed part of its objects.
    pub fn acknowledged(
        &mut self,
        from: NodeId,
        number: u32,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        let place = self.awaited.iter().position(|home| *home == from);
        let Some(place) = place.filter(|_| number == self.flush) else {
            let what = "an acknowledgement of what was not flushed there";
            return Err(ProtocolError::BadMessage { from, what });
        };
        self.awaited.remove(place);
        if self.awaited.is_empty() {
            out.push(Command::Done);
        }
        Ok(())
    }

    /// At home: another node flushes. While references of the worker may live, that waits.
    pub fn flushed(
        &mut self,
        from: NodeId,
        number: u32,
        flushed: SmallVec<[Flushed; 1]>,
        worker: WorkerIs,
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        if self.waiting.iter().any(|other| other.from == from) {
            let what = "a second flush while its first one is open";
            return Err(ProtocolError::BadMessage { from, what });
        }
        let waiting = Waiting {
            from,
            number,
            flushed,
        };
        if worker == WorkerIs::InCall {
            merge(waiting, false, out);
        } else {
            self.waiting.push_back(waiting);
            out.push(Command::Hold { from });
            out.push(Command::Deferred);
        }
        Ok(())
    }

    /// Whether a flush waits for the worker.
    pub fn has_deferred(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the flushes that waited for the worker.
    pub fn serve(&mut self, worker: WorkerIs, out: &mut Commands) {
        if worker == WorkerIs::InCall {
            self.waiting
                .drain(..)
                .for_each(|waiting| merge(waiting, true, out));
        }
    }

    /// At an acquire: others may have flushed, so what is cached here may be old.
    pub fn drop_cached(&mut self, objects: &mut ObjectTable, out: &mut Commands) {
        for oid in self.cached.drain(..) {
            let object = objects.get_mut(oid);
            debug_assert!(!object.dirty, "{oid}: an acquire begins with a flush");
            if object.is_valid() {
                out.push(Command::Invalidate(oid));
            }
            object.drop_copy();
        }
    }
}

fn merge(waiting: Waiting, held: bool, out: &mut Commands) {
    let Waiting {
        from,
        number,
        flushed,
    } = waiting;
    out.push(Command::Merge {
        from,
        flushed,
        held,
    });
    let message = Message::FlushAck { number };
    out.push(Command::Send { to: from, message });
}
