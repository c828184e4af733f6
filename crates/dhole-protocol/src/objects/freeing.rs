//! Objects that are given back. That is ordered with their operations: what was ordered before
//! takes effect, and whoever comes later is told who freed the object. Of what was freed only
//! ranges of numbers are kept.

use std::sync::Arc;

use dhole_model::{IdSet, NodeId, ObjectCounters, ObjectId, SortedMap};

use super::bytes::Bytes;
use super::call::{CallId, Refusal, Waiting};
use super::entry::{Deferred, Place};
use super::host::Host;
use super::message::Ordered;
use super::{Objects, ObjectsCommand, Out};

/// Which objects were freed, and by whom.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Freed {
    /// By creator and by who freed them, how many objects the creator had made before each.
    numbers: SortedMap<(NodeId, NodeId), IdSet>,
    /// How often this node used them.
    accesses: ObjectCounters,
}

impl Freed {
    fn add(&mut self, object: ObjectId, nodes: usize, by: NodeId) {
        let number = object.0 / nodes.max(1) as u64;
        let of = (object.creator(nodes), by);
        self.numbers.get_or_default(of).add(number..number + 1);
    }

    /// Who freed an object.
    pub fn by(&self, object: ObjectId, nodes: usize) -> Option<NodeId> {
        let (number, creator) = (object.0 / nodes.max(1) as u64, object.creator(nodes));
        let of_creator = self.numbers.range((creator, NodeId(0))..);
        let mut of_creator = of_creator.take_while(|((of, _), _)| *of == creator);
        let found = of_creator.find(|(_, numbers)| numbers.covers(number..number + 1));
        found.map(|((_, by), _)| *by)
    }

    /// How many ranges of numbers are kept.
    pub fn kept(&self) -> usize {
        self.numbers.values().map(|it| it.ranges().len()).sum()
    }

    /// How often this node used objects that were freed.
    pub fn accesses(&self) -> ObjectCounters {
        self.accesses
    }
}

impl Objects {
    /// Why there is nothing here where an object should be.
    pub(super) fn why_not(&self, object: ObjectId) -> Refusal {
        let by = self.freed.by(object, self.nodes);
        by.map_or(Refusal::Unknown, Refusal::Freed)
    }

    /// The object is freed from here on.
    pub(super) fn free(
        &mut self,
        sequence: u64,
        (by, object): (CallId, ObjectId),
        body: &Arc<Ordered>,
        host: &mut dyn Host,
        out: Out<'_>,
    ) {
        if self.freed.by(object, self.nodes).is_some() {
            let why = self.why_not(object);
            return self.over(by, Err(why), out);
        }
        if let Some(entry) = self.table.get_mut(&object)
            && matches!(entry.place, Place::Coming | Place::Spreading(_))
        {
            let body = Deferred::Ordered(Arc::clone(body));
            entry.deferred.push_back((sequence, body));
            return;
        }
        let entry = self.table.remove(&object);
        let unheard_of = entry.as_ref().is_none_or(|it| it.place == Place::Unknown);
        if unheard_of && object.creator(self.nodes) == self.me {
            // Nobody has made it. The others do not know that, and only remember a number.
            self.freed.add(object, self.nodes, by.node);
            return self.over(by, Err(Refusal::Unknown), out);
        }
        self.freed.add(object, self.nodes, by.node);
        host.discard(object);
        self.over(by, Ok(Bytes::default()), out);
        let Some(entry) = entry else {
            return;
        };
        self.freed.accesses.reads += entry.accesses.reads;
        self.freed.accesses.writes += entry.accesses.writes;
        let why = Refusal::Freed(by.node);
        if entry.place == Place::Monitored {
            self.dissolve(object, &why, out);
        }
        for Waiting { call, .. } in entry.blocked {
            match entry.place {
                Place::Here => self.finish(call.id, Err(why.clone()), out),
                _ => self.over(call.id, Err(why.clone()), out),
            }
        }
        for call in entry.postponed {
            let (call, outcome) = (call.id.number, Err(why.clone()));
            out.push(ObjectsCommand::Finished { call, outcome });
        }
        out.push(ObjectsCommand::Freed(object));
    }

    /// How many objects this node knows, and how many ranges of freed ones.
    pub fn records_kept(&self) -> [usize; 2] {
        [self.table.len(), self.freed.kept()]
    }

    /// How often this node used objects that were freed.
    pub fn accesses_of_freed(&self) -> ObjectCounters {
        self.freed.accesses()
    }
}
