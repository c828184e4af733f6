//! Coherence protocols of your own: *uncached*, which keeps no copies, and [pushing].
//!
//! Each unit, an object or a block of an array, has a home: the node that allocated it. Another
//! node that accesses it fetches its bytes from there, for the interval in which it does. Before
//! that node synchronises, it stores at the home what it has changed, and waits until it is there.
//! After it has synchronised it drops what it fetched. So every interval works on what is at home,
//! and nobody has to be told what was written: there are no notices. Changes of an object are found
//! against a twin, so that several nodes may write different parts of it at once. So may they
//! different elements of an array.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};

use dhole::protocol::{CoherenceProtocol, Context, NodeId, Oid, OidRange, Wire, WorkerIs};

pub mod pushing;

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Uncached {
    me: NodeId,
    /// The units that are at home here.
    here: BTreeSet<Oid>,
    /// The homes of others, as far as this node has met them.
    homes: BTreeMap<Oid, NodeId>,
    /// What was fetched in this interval.
    fetched: BTreeSet<Oid>,
    /// What was written in this interval.
    written: BTreeSet<Oid>,
    /// Homes that have yet to say that what was written is there.
    storing: usize,
}

/// What nodes say to each other.
#[derive(Wire)]
pub enum Says {
    /// Asks a home for a unit.
    Fetch(Oid),
    /// Answers; the unit's bytes follow.
    Fetched(Oid),
    /// Answers that the unit was freed.
    Freed(Oid),
    /// Stores units at their home; what was changed follows.
    Store(Vec<Oid>),
    /// Answers.
    Stored,
}

impl Uncached {
    /// Whether all units are at home here, as far as they were not freed.
    fn are_here(&self, units: &[Oid], cx: &Context<'_, Uncached>) -> bool {
        let mut units = units.iter();
        units.all(|unit| self.here.contains(unit) || cx.is_freed(*unit))
    }
}

impl CoherenceProtocol for Uncached {
    const NAME: &'static str = "uncached";
    type Message = Says;
    type Notice = ();
    const SEVERAL_WRITERS: bool = true;

    fn new(me: NodeId, _nodes: usize) -> Uncached {
        Uncached {
            me,
            here: BTreeSet::new(),
            homes: BTreeMap::new(),
            fetched: BTreeSet::new(),
            written: BTreeSet::new(),
            storing: 0,
        }
    }

    fn allocated(&mut self, units: OidRange, _: &mut Context<'_, Uncached>) {
        self.here.extend(units.iter());
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Uncached>) {
        let home = *self.homes.entry(unit).or_insert(creator);
        cx.send(home, &Says::Fetch(unit));
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Uncached>) {
        self.written.insert(unit);
        match self.here.contains(&unit) {
            true => cx.make_writable(unit),
            false => cx.make_writable_with_twin(unit),
        }
        cx.ready(unit);
    }

    fn must_release(&self) -> bool {
        !self.written.is_empty()
    }

    fn before_release(&mut self, cx: &mut Context<'_, Uncached>) {
        let mut by_home: BTreeMap<NodeId, Vec<Oid>> = BTreeMap::new();
        let written = std::mem::take(&mut self.written);
        for unit in &written {
            if let Some(home) = self.homes.get(unit) {
                by_home.entry(*home).or_default().push(*unit);
            }
        }
        self.storing = by_home.len();
        for (home, units) in by_home {
            cx.send_changes(home, &Says::Store(units.clone()), &units);
        }
        written.iter().for_each(|unit| cx.make_clean(*unit));
        if self.storing == 0 {
            cx.released();
        }
    }

    fn after_acquire(&mut self, cx: &mut Context<'_, Uncached>) {
        for unit in std::mem::take(&mut self.fetched) {
            cx.invalidate(unit);
        }
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Uncached>,
    ) -> Result<(), &'static str> {
        match message {
            Says::Fetch(unit) if cx.is_freed(unit) => cx.send(from, &Says::Freed(unit)),
            Says::Fetch(unit) => {
                let is_written = self.written.contains(&unit);
                if !self.here.contains(&unit) || is_written && cx.worker() == WorkerIs::Computing {
                    cx.defer();
                } else {
                    cx.send_bytes(from, &Says::Fetched(unit), &[unit]);
                }
            }
            Says::Fetched(unit) => {
                self.fetched.insert(unit);
                cx.install(unit);
                cx.ready(unit);
            }
            Says::Freed(unit) => cx.gone(unit),
            Says::Store(units) => {
                if !self.are_here(&units, cx) || cx.worker() != WorkerIs::InCall {
                    cx.defer();
                    return Ok(());
                }
                units.iter().for_each(|unit| cx.merge(*unit));
                cx.send(from, &Says::Stored);
            }
            Says::Stored if self.storing == 0 => return Err("an answer to what was not stored"),
            Says::Stored => {
                self.storing -= 1;
                if self.storing == 0 {
                    cx.released();
                }
            }
        }
        Ok(())
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, _: &mut Context<'_, Uncached>) {
        if holder == self.me {
            self.here.insert(unit);
        } else {
            self.homes.insert(unit, holder);
        }
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Uncached>) -> NodeId {
        if self.fetched.remove(&unit) {
            cx.invalidate(unit);
        }
        let home = self.homes.remove(&unit).unwrap_or(creator);
        match self.here.remove(&unit) {
            true => self.me,
            false => home,
        }
    }

    fn freed(&mut self, unit: Oid) {
        self.here.remove(&unit);
        self.homes.remove(&unit);
        self.fetched.remove(&unit);
        self.written.remove(&unit);
    }

    fn is_quiescent(&self) -> bool {
        self.fetched.is_empty() && self.written.is_empty()
    }
}
