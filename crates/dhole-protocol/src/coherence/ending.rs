//! The end of an interval: what was written in it gets a version, and others are to hear of it.

use dhole_model::{OidRange, Version};

use super::Protocols;
use crate::coherence::object_table::Ended;
use crate::coherence::rules::PROTOCOLS;
use crate::command::{Command, Commands};
use crate::sync::compaction::joined;
use crate::sync::interval::Attached;
use crate::{Interval, RegionCommand};

impl Protocols {
    /// From now on others may read what is clean here without a message. What is written here
    /// alone so many intervals in a row is exclusive.
    pub fn publish(&mut self, exclusive_after: u8) {
        self.lazy.publishes = true;
        self.lazy.exclusive_after = exclusive_after;
    }

    /// Ends the current interval: everything written in it gets the interval's version, and a write
    /// notice unless nobody else has it. An interval of which nobody is told has no number; one
    /// that flushed what races are looked for by has one, and nothing to say.
    pub fn end_interval(&mut self, out: &mut Commands) {
        let (mut tells, mut attached) = (false, Attached::Nothing);
        for protocol in PROTOCOLS {
            tells |= protocol.ends_interval(self, &mut attached, out);
        }
        if self.lazy.dirty.is_empty() && !self.arrays.is_dirty() && !tells {
            return;
        }
        let version = self.intervals.open_version();
        let [written, mut freed] = self.end_objects(version, out);
        let elements = self.arrays.end_interval(version, &mut self.races, out);
        for protocol in PROTOCOLS {
            protocol.written(self, version, (&elements, &written), out);
        }
        freed.extend(self.arrays.end_freeing(version, &mut self.races));
        let freed = joined(freed);
        if written.is_empty() && elements.is_empty() && freed.is_empty() && !tells {
            return;
        }
        let (index, version) = self.intervals.end();
        let interval = Interval {
            node: self.me,
            first: index,
            index,
            lamport: version.lamport,
            written,
            base: None,
            elements,
            freed,
            attached,
        };
        self.end_freeing(&interval.freed, version);
        self.intervals.keep_own(interval);
        out.push(Command::IntervalEnded);
    }

    /// Makes the objects clean that were written in the interval of this version, but for those
    /// that become exclusive. What others are told of as written, and as freed.
    fn end_objects(&mut self, version: Version, out: &mut Commands) -> [Vec<OidRange>; 2] {
        self.lazy.dirty.sort_unstable();
        self.lazy.expected.end_interval();
        let may_keep = self.races.allows_exclusive() && !self.lazy.compares;
        let may_keep = may_keep.then_some(self.lazy.exclusive_after);
        let (mut written, mut freed) = (Vec::new(), Vec::new());
        let Protocols {
            lazy,
            objects,
            races,
            ..
        } = self;
        let mut dirty = std::mem::take(&mut lazy.dirty);
        dirty.retain(|(oid, _)| {
            let oid = *oid;
            let object = objects.get_mut(oid);
            if object.freed {
                OidRange::push(&mut freed, oid);
                return true;
            }
            let how = object.end_interval(self.me, version, may_keep);
            match how {
                Ended::Exclusive if lazy.gates.are_kept => out.push(Command::Gate(oid)),
                Ended::Exclusive => lazy.is_written_alone(oid),
                _ => out.push(Command::Objects(RegionCommand::MakeClean(oid))),
            }
            if how == Ended::OnlyHere {
                return false;
            }
            OidRange::push(&mut written, oid);
            true
        });
        races.wrote(version.lamport, &dirty);
        let ids = freed.iter().flat_map(|range| range.iter());
        ids.for_each(|oid| races.freed(oid));
        dirty.clear();
        lazy.dirty = dirty;
        [written, freed]
    }
}
