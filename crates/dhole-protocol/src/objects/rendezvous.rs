//! Where all nodes meet, in a run that survives the loss of some: barriers, values that one node
//! makes for all, and the end.
//!
//! Who arrives says so in a multicast, so nobody manages a rendezvous who could be lost. All
//! deliver the same arrivals and losses in the same order, and all find at the same place in it
//! that everybody is there who is left.

use std::sync::Arc;

use dhole_model::{CallSite, NodeId, ObjectId};

use super::bytes::Bytes;
use super::call::{CallId, Outcome, Refusal};
use super::entry::{Entry, Place};
use super::host::Host;
use super::message::{Ordered, Rendezvous};
use super::{Objects, ObjectsCommand, Out};

/// A node that has come to where all are to meet.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub by: CallId,
    pub place: Rendezvous,
    pub site: CallSite,
    pub value: Option<Bytes>,
}

impl Objects {
    /// The node that makes values for all: the first that is left.
    pub fn maker(&self) -> NodeId {
        let mut left = self.left();
        left.next().unwrap_or(self.me)
    }

    /// The nodes that are not gone.
    fn left(&self) -> impl Iterator<Item = NodeId> {
        let all = (0..self.nodes).map(NodeId::at);
        all.filter(|node| !self.gone.contains_key(node))
    }

    pub(super) fn meet(
        &mut self,
        call: u64,
        place: Rendezvous,
        site: CallSite,
        value: Option<Bytes>,
        host: &dyn Host,
        out: Out<'_>,
    ) {
        let meet = Ordered::Meet {
            by: self.own(call),
            place,
            site,
            value,
            news: host.news_since(&self.told),
        };
        out.push(ObjectsCommand::Broadcast(Arc::new(meet)));
    }

    /// Lets the worker go on if all have come that are left.
    pub(super) fn go_if_all_met(&mut self, out: Out<'_>) {
        if !self.left().all(|node| self.arrived.contains_key(&node)) {
            return;
        }
        let arrived = std::mem::take(&mut self.arrived);
        let Some(mine) = arrived.get(&self.me) else {
            return;
        };
        let there = || {
            let all = arrived.iter();
            all.filter(|(node, _)| !self.gone.contains_key(node))
        };
        let outcome: Outcome = if there().any(|(_, other)| other.place != mine.place) {
            let each = there().map(|(node, at)| format!("{node} at {}", at.words()));
            let each: Vec<String> = each.collect();
            Err(Refusal::Apart(each.join(", ").into()))
        } else if mine.place == Rendezvous::Once {
            // Of a node that is gone since it told it, too.
            let mut values = arrived.values().filter_map(|at| at.value.clone());
            values.next().ok_or(Refusal::Unmade)
        } else {
            Ok(Bytes::default())
        };
        let by = mine.by;
        self.over(by, outcome, out);
    }

    /// Tells all nodes that the only copy of a new object is here, so that none has to ask its
    /// creator, which may be lost.
    pub(super) fn tell_place(
        &mut self,
        by: CallId,
        object: ObjectId,
        comes_back: Bytes,
        out: Out<'_>,
    ) {
        let at = self.me;
        let placed = match comes_back.is_empty() {
            true => Ordered::Placed { by, object, at },
            false => Ordered::Constructed {
                by,
                object,
                at,
                comes_back,
            },
        };
        out.push(ObjectsCommand::Broadcast(Arc::new(placed)));
    }

    /// The only copy of a new object is on this node.
    pub(super) fn placed(
        &mut self,
        sequence: u64,
        by: CallId,
        (object, at): (ObjectId, NodeId),
        comes_back: Bytes,
        out: Out<'_>,
    ) {
        let entry = self.table.entry(object).or_insert_with(Entry::unknown);
        entry.since = sequence;
        if at != self.me {
            entry.place = Place::At(at);
        }
        self.over(by, Ok(comes_back), out);
    }
}

impl Arrived {
    fn words(&self) -> String {
        match self.place {
            Rendezvous::Barrier => format!("the barrier at {}", self.site),
            Rendezvous::Once => format!("once at {}", self.site),
            Rendezvous::End => self.site.to_string(),
        }
    }
}
