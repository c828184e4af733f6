//! A protocol that a program brings, with notices.

use std::collections::{BTreeMap, BTreeSet};

use conformance::litmus::{CAUSALITY, Guard, Litmus, MESSAGE_PASSING, STORE_BUFFERING};
use conformance::{Platform, seeds};
use dhole::protocol::{CoherenceProtocol, Context, NodeId, Oid, OidRange, Version, Wire, WorkerIs};

/// What a node knows of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Known {
    /// The newest version that it has heard of.
    newest: Version,
    /// The version of the bytes here.
    held: Option<Version>,
    /// Whether they may be read.
    readable: bool,
}

/// A notice names what was written, as under the lazy protocol. `MISTAKE` is one of those below.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Announcing<const MISTAKE: usize> {
    me: NodeId,
    units: BTreeMap<Oid, Known>,
    written: BTreeSet<Oid>,
    announces: BTreeSet<Oid>,
}

/// It is right.
pub const NONE: usize = 0;
/// What was written is not announced.
pub const SILENT: usize = 1;
/// A notice leaves an old copy readable.
pub const KEEPS: usize = 2;
/// A request for a unit that the worker writes is answered at once.
pub const HASTY: usize = 3;
/// It claims that several nodes may write one unit at once.
pub const CLAIMS: usize = 4;

#[derive(Wire)]
pub enum Says {
    Ask(Oid),
    Answer(Oid, Version),
}

impl<const MISTAKE: usize> Announcing<MISTAKE> {
    fn unit(&mut self, unit: Oid, creator: NodeId) -> &mut Known {
        let newest = Version {
            lamport: 0,
            node: creator,
        };
        self.units.entry(unit).or_insert(Known {
            newest,
            held: None,
            readable: false,
        })
    }
}

impl<const MISTAKE: usize> CoherenceProtocol for Announcing<MISTAKE> {
    const NAME: &'static str = ["announcing", "silent", "keeping", "hasty", "claiming"][MISTAKE];
    type Message = Says;
    type Notice = BTreeSet<Oid>;
    const SEVERAL_WRITERS: bool = MISTAKE == CLAIMS;

    fn new(me: NodeId, _: usize) -> Self {
        Announcing {
            me,
            units: BTreeMap::new(),
            written: BTreeSet::new(),
            announces: BTreeSet::new(),
        }
    }

    fn allocated(&mut self, units: OidRange, _: &mut Context<'_, Self>) {
        for unit in units.iter() {
            self.adopted(unit, self.me);
        }
    }

    fn read_miss(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) {
        let at = self.unit(unit, creator).newest.node;
        cx.send(at, &Says::Ask(unit));
    }

    fn write_fault(&mut self, unit: Oid, cx: &mut Context<'_, Self>) {
        self.written.insert(unit);
        cx.make_writable(unit);
        cx.ready(unit);
    }

    fn must_release(&self) -> bool {
        !self.written.is_empty()
    }

    fn before_release(&mut self, cx: &mut Context<'_, Self>) {
        self.written.iter().for_each(|unit| cx.make_clean(*unit));
        self.announces.append(&mut self.written);
        cx.released();
    }

    fn notice(&mut self, version: Version) -> Option<BTreeSet<Oid>> {
        let announced = std::mem::take(&mut self.announces);
        for unit in &announced {
            let known = self.unit(*unit, version.node);
            (known.newest, known.held) = (version, Some(version));
        }
        (!announced.is_empty() && MISTAKE != SILENT).then_some(announced)
    }

    fn noticed(&mut self, version: Version, units: BTreeSet<Oid>, cx: &mut Context<'_, Self>) {
        for unit in units {
            let known = self.unit(unit, version.node);
            known.newest = known.newest.max(version);
            let is_old = known.held < Some(known.newest);
            if is_old && std::mem::take(&mut known.readable) && MISTAKE != KEEPS {
                cx.invalidate(unit);
            }
        }
    }

    fn after_acquire(&mut self, _: &mut Context<'_, Self>) {}

    fn deliver(
        &mut self,
        from: NodeId,
        message: Says,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        match message {
            Says::Ask(unit) => {
                let is_written = self.written.contains(&unit) && MISTAKE != HASTY;
                let held = self.units.get(&unit).and_then(|known| known.held);
                match held {
                    Some(held) if !(is_written && cx.worker() == WorkerIs::Computing) => {
                        cx.send_bytes(from, &Says::Answer(unit, held), &[unit]);
                    }
                    _ => cx.defer(),
                }
            }
            Says::Answer(unit, version) => {
                let known = self.unit(unit, from);
                (known.held, known.readable) = (Some(version), true);
                cx.install(unit);
                cx.ready(unit);
            }
        }
        Ok(())
    }

    fn adopt(&mut self, unit: Oid, holder: NodeId, _: &mut Context<'_, Self>) {
        self.adopted(unit, holder);
    }

    fn give_up(&mut self, unit: Oid, creator: NodeId, cx: &mut Context<'_, Self>) -> NodeId {
        let Some(known) = self.units.remove(&unit) else {
            return creator;
        };
        if known.readable && known.newest.node != self.me {
            cx.invalidate(unit);
        }
        known.newest.node
    }

    fn freed(&mut self, unit: Oid) {
        self.units.remove(&unit);
        self.written.remove(&unit);
        self.announces.remove(&unit);
    }
}

impl<const MISTAKE: usize> Announcing<MISTAKE> {
    fn adopted(&mut self, unit: Oid, holder: NodeId) {
        let newest = Version {
            lamport: 0,
            node: holder,
        };
        let is_here = holder == self.me;
        let known = Known {
            newest,
            held: is_here.then_some(newest),
            readable: is_here,
        };
        self.units.insert(unit, known);
    }
}

/// Litmus tests with so many seeds show nothing on a platform that must not be.
pub fn keeps_its_promise(platform: &dyn Platform, many: u64) {
    let tally = |litmus: Litmus| litmus.tally(platform, Guard::Locks, seeds(0..many));
    tally(MESSAGE_PASSING).never("the flag without the data", |r| r == [1, 0]);
    tally(STORE_BUFFERING).never("none is seen", |r| r == [0, 0]);
    tally(CAUSALITY).never("the effect without the cause", |r| r == [1, 1, 0]);
}
