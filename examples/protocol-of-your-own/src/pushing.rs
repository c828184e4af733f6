//! A protocol that pushes: *pushing* sends what was written to the nodes that have read it.
//!
//! A node stores what it has changed at the home of the unit, as under [uncached](crate). The home
//! numbers the change, and pushes the unit's new bytes to all nodes that have fetched the unit. It
//! answers when all of them have the bytes. A receiver keeps them in its inbox, and reads its copy
//! until its next acquire. Its first read after that takes the bytes out of the inbox. So a node
//! fetches a unit once, and sends no message to read it again.
//!
//! Messages may overtake each other, so that an older push may come after a newer one. The inbox
//! compares their numbers.

use std::collections::{BTreeMap, BTreeSet};

use dhole::protocol::{CoherenceProtocol, Context, NodeId, Oid, OidRange, Wire, WorkerIs};

/// One node's part of the protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pushing {
    me: NodeId,
    /// The units that are at home here.
    here: BTreeMap<Oid, AtHome>,
    /// The units at home elsewhere, as far as this node has met them.
    met: BTreeMap<Oid, Met>,
    /// What was written in this interval.
    written: BTreeSet<Oid>,
    /// The readable copies that are older than a push.
    outdated: BTreeSet<Oid>,
    /// What the worker's release waits for: homes, and this node's own pushes.
    storing: usize,
    /// For each change that was pushed from here: the answers that are missing, and the writer.
    unanswered: BTreeMap<u32, (usize, NodeId)>,
}

/// What a home knows of a unit.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct AtHome {
    /// How often it was changed.
    number: u64,
    /// The nodes that have fetched it.
    readers: BTreeSet<NodeId>,
}

/// What another node knows of a unit.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Met {
    home: NodeId,
    /// The newest number that it has heard of.
    newest: u64,
    /// Whether there is a readable copy.
    is_readable: bool,
}

impl Met {
    fn new(home: NodeId) -> Met {
        Met {
            home,
            newest: 0,
            is_readable: false,
        }
    }
}

/// What nodes say to each other.
#[derive(Wire)]
pub enum Says {
    /// Asks a home for a unit.
    Fetch(Oid),
    /// Answers with the unit's number; its bytes follow.
    Fetched(Oid, u64),
    /// Answers that the unit was freed.
    Freed(Oid),
    /// Stores units at their home; what was changed follows.
    Store(Vec<Oid>),
    /// Answers.
    Stored,
    /// A change has given the unit this number; its bytes follow.
    Push {
        /// The change.
        change: u32,
        /// The unit.
        unit: Oid,
        /// Its number.
        number: u64,
    },
    /// Answers.
    Pushed(u32),
}

impl Pushing {
    /// At home: a node has changed units. Pushes them to the nodes that have fetched them.
    fn changed(&mut self, by: NodeId, units: &[Oid], cx: &mut Context<'_, Pushing>) {
        let unused = (0..).find(|change| !self.unanswered.contains_key(change));
        let (change, mut missing) = (unused.unwrap_or_default(), 0);
        for unit in units {
            let Some(at_home) = self.here.get_mut(unit) else {
                continue; // It was freed.
            };
            at_home.number += 1;
            let (unit, number) = (*unit, at_home.number);
            missing += at_home.readers.len();
            let push = Says::Push {
                change,
                unit,
                number,
            };
            cx.push(at_home.readers.iter().copied(), &push, &[unit]);
        }
        if missing == 0 {
            return self.answer(by, cx);
        }
        self.unanswered.insert(change, (missing, by));
    }

    /// All that have fetched what a node has changed have the new bytes.
    fn answer(&mut self, by: NodeId, cx: &mut Context<'_, Pushing>) {
        if by != self.me {
            return cx.send(by, &Says::Stored);
        }
        self.storing -= 1;
        if self.storing == 0 {
            cx.released();
        }
    }

    /// Whether all units are at home here, as far as they were not freed.
    fn are_here(&self, units: &[Oid], cx: &Context<'_, Pushing>) -> bool {
        let mut units = units.iter();
        units.all(|unit| self.here.contains_key(unit) || cx.is_freed(*unit))
    }
}

impl CoherenceProtocol for Pushing {
    const NAME: &'static str = "pushing";
    type Message = Says;
    type Notice = ();
    const SEVERAL_WRITERS: bool = true;

    fn new(me: NodeId, _nodes: usize) -> Pushing {
        Pushing {
            me,
            here: BTreeMap::new(),
            met: BTreeMap::new(),
            written: BTreeSet::new(),
            outdated: BTreeSet::new(),
            storing: 0,
            unanswered: BTreeMap::new(),
        }
    }

    fn allocated(&mut self, units: OidRange, _: &mut Context<'_, Pushing>) {
        let units = units.iter();
        self.here
            .extend(units.map(|unit| (unit, AtHome::default())));
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Pushing>) {
        let met = self.met.entry(unit).or_insert(Met::new(creator));
        if cx.take_kept(unit, met.newest) {
            met.is_readable = true;
            return cx.ready(unit);
        }
        cx.send(met.home, &Says::Fetch(unit));
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Pushing>) {
        self.written.insert(unit);
        match self.here.contains_key(&unit) {
            true => cx.make_writable(unit),
            false => cx.make_writable_with_twin(unit),
        }
        cx.ready(unit);
    }

    fn must_release(&self) -> bool {
        !self.written.is_empty()
    }

    fn before_release(&mut self, cx: &mut Context<'_, Pushing>) {
        let mut by_home: BTreeMap<NodeId, Vec<Oid>> = BTreeMap::new();
        let mut own = Vec::new();
        for unit in std::mem::take(&mut self.written) {
            match self.met.get(&unit) {
                Some(met) => by_home.entry(met.home).or_default().push(unit),
                None => own.push(unit),
            }
        }
        self.storing = 1 + by_home.len();
        for (home, units) in by_home {
            cx.send_changes(home, &Says::Store(units.clone()), &units);
            units.iter().for_each(|unit| cx.make_clean(*unit));
        }
        own.iter().for_each(|unit| cx.make_clean(*unit));
        self.changed(self.me, &own, cx);
    }

    fn after_acquire(&mut self, cx: &mut Context<'_, Pushing>) {
        for unit in std::mem::take(&mut self.outdated) {
            if let Some(met) = self.met.get_mut(&unit) {
                met.is_readable = false;
                cx.invalidate(unit);
            }
        }
    }

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Pushing>,
    ) -> Result<(), &'static str> {
        match message {
            Says::Fetch(unit) if cx.is_freed(unit) => cx.send(from, &Says::Freed(unit)),
            Says::Fetch(unit) => {
                let is_used = self.written.contains(&unit) && cx.worker() == WorkerIs::Computing;
                let Some(at_home) = self.here.get_mut(&unit).filter(|_| !is_used) else {
                    cx.defer();
                    return Ok(());
                };
                at_home.readers.insert(from);
                cx.send_bytes(from, &Says::Fetched(unit, at_home.number), &[unit]);
            }
            Says::Fetched(unit, number) => {
                if let Some(met) = self.met.get_mut(&unit) {
                    met.is_readable = true;
                    if met.newest > number {
                        self.outdated.insert(unit);
                    }
                    met.newest = met.newest.max(number);
                }
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
                self.changed(from, &units, cx);
            }
            Says::Stored if self.storing == 0 => return Err("an answer to what was not stored"),
            Says::Stored => self.answer(self.me, cx),
            Says::Push {
                change,
                unit,
                number,
            } => {
                match self.met.get_mut(&unit) {
                    Some(met) => {
                        cx.keep(unit, number);
                        if met.is_readable && number > met.newest {
                            self.outdated.insert(unit);
                        }
                        met.newest = met.newest.max(number);
                    }
                    None => cx.skip(), // It was freed.
                }
                cx.send(from, &Says::Pushed(change));
            }
            Says::Pushed(change) => {
                let Some((missing, by)) = self.unanswered.get_mut(&change) else {
                    return Err("an answer to what was not pushed");
                };
                *missing -= 1;
                if *missing == 0 {
                    let by = *by;
                    self.unanswered.remove(&change);
                    self.answer(by, cx);
                }
            }
        }
        Ok(())
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, _: &mut Context<'_, Pushing>) {
        if holder == self.me {
            self.here.insert(unit, AtHome::default());
        } else {
            self.met.insert(unit, Met::new(holder));
        }
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Pushing>) -> NodeId {
        let met = self.met.get(&unit);
        if met.is_some_and(|met| met.is_readable) {
            cx.invalidate(unit);
        }
        let home = match self.here.contains_key(&unit) {
            true => self.me,
            false => met.map_or(creator, |met| met.home),
        };
        self.freed(unit);
        home
    }

    fn freed(&mut self, unit: Oid) {
        self.here.remove(&unit);
        self.met.remove(&unit);
        self.written.remove(&unit);
        self.outdated.remove(&unit);
    }

    fn is_quiescent(&self) -> bool {
        self.written.is_empty() && self.outdated.is_empty()
    }
}
