//! Where the program waits: what each of its lines costs, counted where its worker waits, and
//! nowhere else.

use std::any::TypeId;
use std::collections::hash_map::Entry;

use dhole_heap::{ArrayMiss, Miss, ReferenceForm, TypeInfo, TypeRef};
use dhole_model::{CallSite, LineCost, LineCosts, NodeId, Oid, Phase, Uneven, WaitCause, WaitCost};
use dhole_protocol::Event;
use rustc_hash::FxHashMap;

use crate::phases::SampledReads;

/// What a worker waits for next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Awaited {
    cause: WaitCause,
    /// The object or array that is missed, or the first of them, and its type.
    missed: Option<(Oid, TypeRef)>,
    /// The operation that is waited for.
    operation: &'static str,
    /// Whether what is missed is to be written.
    to_write: bool,
    /// The line that caused the wait, if that is not the line of the call.
    caused_at: Option<CallSite>,
}

impl Default for Awaited {
    /// What nothing else is said of: operations.
    fn default() -> Awaited {
        Awaited::by(WaitCause::Operation)
    }
}

impl From<&Miss> for Awaited {
    fn from(miss: &Miss) -> Awaited {
        Awaited {
            missed: Some((miss.oid, miss.ty)),
            ..Awaited::by(WaitCause::Object)
        }
    }
}

impl From<&ArrayMiss> for Awaited {
    fn from(miss: &ArrayMiss) -> Awaited {
        Awaited {
            missed: Some((miss.elements.array, miss.ty)),
            ..Awaited::by(WaitCause::Elements)
        }
    }
}

impl Awaited {
    pub const fn by(cause: WaitCause) -> Awaited {
        Awaited {
            cause,
            missed: None,
            operation: "",
            to_write: false,
            caused_at: None,
        }
    }

    /// Updates of an array, which a line has gathered.
    pub fn updates(all: &ArrayMiss) -> Awaited {
        Awaited {
            missed: Some((all.elements.array, all.ty)),
            caused_at: Some(all.call_site()),
            ..Awaited::by(WaitCause::Updates)
        }
    }

    /// An operation of this name.
    pub const fn operation(cause: WaitCause, operation: &'static str) -> Awaited {
        Awaited {
            operation,
            ..Awaited::by(cause)
        }
    }

    /// An object that is here, and that its protocol is to let the node write.
    pub fn to_write(miss: &Miss) -> Awaited {
        Awaited {
            cause: WaitCause::ToWrite,
            ..Awaited::object(miss, true)
        }
    }

    /// An object that is missed, and is to be written or read.
    pub fn object(miss: &Miss, to_write: bool) -> Awaited {
        Awaited {
            to_write,
            ..Awaited::from(miss)
        }
    }

    /// What the worker waits for that begins with this event; nothing where whoever made the event
    /// knows better.
    pub fn of(self, event: &Event) -> Option<Awaited> {
        if self.cause == WaitCause::Updates {
            return None;
        }
        let cause = match event {
            Event::ReadMiss(_) | Event::ReadMisses(_) | Event::Array(_) => return None,
            // A part of what follows, or what an operation comes to.
            Event::Flush | Event::Combine(_) | Event::Learn(_) | Event::Await { .. } => {
                return None;
            }
            Event::Pages(_) if self.cause.is_miss() => return None,
            Event::WriteFault { .. } if self.cause.is_miss() => return None,
            Event::WriteFault { .. } | Event::Touch { .. } => WaitCause::ToWrite,
            Event::Pages(_) => WaitCause::Object,
            Event::Acquire { .. }
            | Event::Release { .. }
            | Event::Enter { .. }
            | Event::Leave { .. }
            | Event::WaitOn { .. }
            | Event::Notify { .. }
            | Event::WaitOnRwLock { .. }
            | Event::NotifyRwLock { .. } => WaitCause::Lock,
            Event::Arrive { once: true, .. } => WaitCause::Once,
            Event::Arrive { .. }
            | Event::ArriveToCollect { .. }
            | Event::Collective(_)
            | Event::Switch { .. }
            | Event::SwitchArray { .. }
            | Event::Finish => WaitCause::Barrier,
            Event::AskIds { .. } => WaitCause::Ids,
            // No worker waits for what comes of these.
            Event::Allocated { .. }
            | Event::Overwrite(_)
            | Event::TakeUpdates
            | Event::Unwritten(_)
            | Event::WrittenAt(_)
            | Event::Free { .. }
            | Event::Propagate { .. }
            | Event::EndInterval
            | Event::SectionsTried(_)
            | Event::Switched { .. }
            | Event::Serve
            | Event::Deliver { .. }
            | Event::DeliverAgain { .. }
            | Event::WaitedLong => WaitCause::Operation,
        };
        Some(Awaited::by(cause))
    }

    /// The phase of the wait.
    pub fn phase(self) -> Phase {
        self.cause.phase()
    }

    /// The type that is missed, or the operation.
    pub fn what(self) -> &'static str {
        let missed = self.missed.map(|(_, ty)| ty.info().name);
        missed.unwrap_or(self.operation)
    }

    /// The line that caused the wait in a call at `site`.
    fn caused_at(self, site: CallSite) -> CallSite {
        self.caused_at.unwrap_or(site)
    }

    /// Whether all nodes come to where it is waited for.
    pub fn is_for_all(self) -> bool {
        self.phase() == Phase::Barrier
    }
}

/// A wait that has begun.
pub(crate) struct Waiting {
    awaited: Awaited,
    site: CallSite,
    /// When, by the clock by which it is counted how long workers wait.
    pub began_ns: u64,
    /// When, by the node's clock, if the waits are recorded.
    pub recorded_ns: Option<u64>,
    /// The clock of the worker's thread then, if it was looked at.
    pub processor_ns: Option<u64>,
    misses: u64,
    /// Bytes that had come before.
    bytes: u64,
}

impl Waiting {
    /// What the worker waits for, and at which line.
    pub fn what(&self) -> (Awaited, CallSite) {
        (self.awaited, self.site)
    }

    /// The phase that it is.
    pub fn phase(&self) -> Phase {
        self.awaited.phase()
    }
}

/// Tells lines apart: the address of a name takes less to hash than the name.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Key {
    file: usize,
    line: u32,
    column: u32,
    cause: WaitCause,
    ty: Option<TypeId>,
    operation: usize,
}

impl Key {
    pub fn new(site: CallSite, awaited: Awaited) -> Key {
        Key {
            file: site.file.as_ptr().addr(),
            line: site.line,
            column: site.column,
            cause: awaited.cause,
            ty: awaited.missed.map(|(_, ty)| ty.id()),
            operation: awaited.operation.as_ptr().addr(),
        }
    }
}

struct Line {
    site: CallSite,
    awaited: Awaited,
    allocated_at: Option<CallSite>,
    cost: WaitCost,
    one_sided: SampledReads,
    /// How long the node took before, where all nodes come to the line, and waited of that.
    busy_ns: u64,
    waited_ns: u64,
}

/// The waits of a node's workers, by line. Where several processes of the node wait at once, bytes
/// that come are counted at the line of each.
#[derive(Default)]
pub(crate) struct Waits {
    lines: FxHashMap<Key, Line>,
    left_out: FxHashMap<WaitCause, WaitCost>,
    /// One-sided reads at all lines.
    one_sided: SampledReads,
    /// Misses that are counted at some line.
    misses: u64,
    /// Bytes of shared data that have come.
    bytes: u64,
}

impl Waits {
    /// So many bytes of shared data have come.
    pub fn came(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// The worker begins to wait, when the node has counted so many `misses` in all.
    pub fn begins(
        &mut self,
        awaited: Awaited,
        site: CallSite,
        misses: u64,
        began_ns: u64,
    ) -> Waiting {
        let before = std::mem::replace(&mut self.misses, misses);
        Waiting {
            awaited,
            site: awaited.caused_at(site),
            began_ns,
            recorded_ns: None,
            processor_ns: None,
            misses: misses - before,
            bytes: self.bytes,
        }
    }

    /// The wait is over. Where the line is a new one, `allocated_at` is asked about what it missed.
    pub fn ends(
        &mut self,
        waiting: &Waiting,
        now_ns: u64,
        allocated_at: impl FnOnce(Oid) -> Option<CallSite>,
    ) {
        let Waiting { awaited, site, .. } = *waiting;
        let cost = WaitCost {
            waits: 1,
            misses: waiting.misses,
            to_write: if awaited.to_write { waiting.misses } else { 0 },
            bytes: self.bytes - waiting.bytes,
            waited_ns: now_ns.saturating_sub(waiting.began_ns),
            ..WaitCost::default()
        };
        self.costs_at(site, awaited, cost, allocated_at);
    }

    /// A thread has waited for so long in raw memory, or for another thread.
    pub fn waited(&mut self, awaited: Awaited, site: CallSite, waited_ns: u64) {
        let cost = WaitCost {
            waits: 1,
            waited_ns,
            ..WaitCost::default()
        };
        self.costs_at(site, awaited, cost, |_| None);
    }

    /// The worker comes to where all nodes come. It took so long before, and waited of that.
    pub fn arrives(&mut self, awaited: Awaited, site: CallSite, [busy_ns, waited_ns]: [u64; 2]) {
        if let Some(line) = self.costs_at(site, awaited, WaitCost::default(), |_| None) {
            line.busy_ns += busy_ns;
            line.waited_ns += waited_ns;
        }
    }

    /// So many objects or blocks of an array were read in the memory of their last writer, for
    /// which nobody waited. They took so long, if they were timed.
    pub fn read_there(
        &mut self,
        awaited: Awaited,
        site: CallSite,
        (reads, bytes, took_ns): (u64, usize, Option<u64>),
        allocated_at: impl FnOnce(Oid) -> Option<CallSite>,
    ) {
        let cost = WaitCost {
            one_sided_reads: reads,
            bytes: bytes as u64,
            ..WaitCost::default()
        };
        self.one_sided.add_all(reads, took_ns);
        if let Some(line) = self.costs_at(site, awaited, cost, allocated_at) {
            line.one_sided.add_all(reads, took_ns);
        }
    }

    /// A part of the program begins that is told apart: what was estimated so far stays as it is.
    pub fn settle(&mut self) {
        let usual = self.one_sided;
        let lines = self.lines.values_mut().map(|line| &mut line.one_sided);
        lines
            .chain([&mut self.one_sided])
            .for_each(|reads| reads.settle(&usual));
    }

    /// How long the one-sided reads of all lines took, by those that were timed.
    pub fn one_sided_ns(&self) -> u64 {
        self.one_sided.ns(&self.one_sided)
    }

    /// Objects came along with those that were missed at a line where the worker waited.
    pub fn came_along(&mut self, awaited: Awaited, site: CallSite, along: WaitCost) {
        self.costs_at(site, awaited, along, |_| None);
    }

    fn costs_at(
        &mut self,
        site: CallSite,
        awaited: Awaited,
        cost: WaitCost,
        allocated_at: impl FnOnce(Oid) -> Option<CallSite>,
    ) -> Option<&mut Line> {
        let has_room = self.lines.len() < LineCosts::MOST_LINES;
        let line = match self.lines.entry(Key::new(site, awaited)) {
            Entry::Occupied(line) => line.into_mut(),
            Entry::Vacant(_) if !has_room => {
                if cost != WaitCost::default() {
                    self.left_out.entry(awaited.cause).or_default().add(&cost);
                }
                return None;
            }
            Entry::Vacant(place) => place.insert(Line {
                site,
                awaited,
                allocated_at: awaited.missed.and_then(|(oid, _)| allocated_at(oid)),
                cost: WaitCost::default(),
                one_sided: SampledReads::default(),
                busy_ns: 0,
                waited_ns: 0,
            }),
        };
        line.cost.add(&cost);
        Some(line)
    }

    /// What the lines cost on this node, for a report.
    pub fn costs(&self, node: NodeId) -> LineCosts {
        let lines = self.lines.values().map(|line| {
            let missed = line.awaited.missed.map(|(_, ty)| ty.info());
            LineCost {
                site: line.site,
                cause: line.awaited.cause,
                type_name: missed
                    .map_or(line.awaited.operation, |info| info.name)
                    .to_owned(),
                refers: missed.is_some_and(refers),
                allocated_at: line.allocated_at,
                cost: WaitCost {
                    one_sided_ns: line.one_sided.ns(&self.one_sided),
                    ..line.cost
                },
                uneven: match line.awaited.is_for_all() {
                    true => Uneven::of(node, line.busy_ns, line.waited_ns),
                    false => Uneven::default(),
                },
            }
        });
        let left_out = self.left_out.iter();
        LineCosts::merged([&LineCosts {
            lines: lines.collect(),
            left_out: left_out.map(|(cause, cost)| (*cause, *cost)).collect(),
        }])
    }
}

/// Whether a value of this type names single objects that it does not own.
fn refers(info: &TypeInfo) -> bool {
    let single = [ReferenceForm::One, ReferenceForm::Maybe];
    let mut slots = info.references.iter();
    slots.any(|slot| single.contains(&slot.form) && !slot.owned)
}

#[cfg(test)]
mod tests {
    use dhole_heap::{Own, Ref, Refs};
    use dhole_protocol::PageEvent;

    use super::*;

    fn site(line: u32) -> CallSite {
        CallSite {
            file: "a.rs",
            line,
            column: 1,
        }
    }

    const NODE: Awaited = Awaited {
        cause: WaitCause::Object,
        missed: Some((Oid(5), TypeRef::of::<Option<Ref<u64>>>())),
        operation: "",
        to_write: false,
        caused_at: None,
    };

    #[test]
    fn a_wait_counts_what_was_asked_for_before_and_came_meanwhile() {
        let mut waits = Waits::default();
        let made = CallSite::runtime("made");
        for (misses, first) in [(1, true), (3, false)] {
            let waiting = waits.begins(NODE, site(3), misses, 100);
            waits.came(40);
            waits.ends(&waiting, 107, |oid| {
                assert!(first && oid == Oid(5), "it is asked once a line");
                Some(made)
            });
        }
        waits.came(1000);
        let waiting = waits.begins(Awaited::by(WaitCause::Lock), site(3), 3, 9);
        waits.ends(&waiting, 10, |_| unreachable!("nothing was missed"));
        let costs = waits.costs(NodeId(0));
        let [worst, lock] = &costs.lines[..] else {
            panic!("{costs:?}");
        };
        let (waits, misses, bytes, waited_ns) = (2, 3, 80, 14);
        let expected = WaitCost {
            waits,
            misses,
            bytes,
            waited_ns,
            ..WaitCost::default()
        };
        assert_eq!(worst.cost, expected);
        assert!(worst.type_name.ends_with("Ref<u64>>"), "{worst:?}");
        assert_eq!((worst.refers, worst.allocated_at), (true, Some(made)));
        assert_eq!(
            (lock.cause, lock.cost.misses, lock.cost.bytes),
            (WaitCause::Lock, 0, 0)
        );
        assert!(costs.left_out.is_empty());
    }

    #[test]
    fn a_program_of_very_many_lines_costs_no_more_memory_and_its_waits_are_counted() {
        let mut waits = Waits::default();
        let most = LineCosts::MOST_LINES as u32;
        for line in 0..most + 10 {
            let waiting = waits.begins(Awaited::default(), site(line), 0, 0);
            waits.ends(&waiting, 5, |_| None);
        }
        let costs = waits.costs(NodeId(0));
        assert_eq!(costs.lines.len(), LineCosts::MOST_LINES);
        let left_out = costs.left_out[&WaitCause::Operation];
        assert_eq!((left_out.waits, left_out.waited_ns), (10, 50));
    }

    #[test]
    fn a_type_refers_if_it_names_single_objects_of_others() {
        let refers = |ty: TypeRef| super::refers(ty.info());
        assert!(refers(TypeRef::of::<Ref<u64>>()));
        assert!(!refers(TypeRef::of::<Own<u64>>()));
        assert!(!refers(TypeRef::of::<Refs<u64>>()));
        assert!(!refers(TypeRef::of::<u64>()));
    }

    #[test]
    fn pages_of_one_access_are_waited_for_at_its_type() {
        let page = Event::Pages(PageEvent::Collect);
        assert!(NODE.of(&page).is_none() && NODE.of(&Event::Flush).is_none());
        let cause = |awaited: Awaited, event| awaited.of(event).map(|awaited| awaited.cause);
        assert_eq!(cause(NODE, &Event::Finish), Some(WaitCause::Barrier));
        let lock = Awaited::by(WaitCause::Lock);
        assert_eq!(cause(lock, &page), Some(WaitCause::Object));
    }
}
