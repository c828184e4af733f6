use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use dhole_macros::{Counts, Variants};
use serde::{Deserialize, Serialize};

use crate::{CallSite, NodeId, Phase};

/// What a worker waited for at a line of the program.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Variants,
)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// An object that was not here.
    Object,
    /// Elements of an array that were not here.
    Elements,
    /// That the protocol lets the node write an object that is here.
    ToWrite,
    /// A lock, a read-write lock, a semaphore or a condition; or, at a release, that the homes have
    /// what was written.
    Lock,
    /// The other nodes, at a barrier or in a collective.
    Barrier,
    /// Node 0, or the other nodes, at a `once`.
    Once,
    /// An operation that reads an object.
    Read,
    /// An operation that may write an object.
    Write,
    /// An operation with a guard: until the guard came true, or for the node that has the object.
    Guard,
    /// An operation that was started before.
    Pending,
    /// Another operation on an object, or a process.
    Operation,
    /// Ids for objects that are allocated, from node 0.
    Ids,
    /// That elements of an array are combined with updates that the line made: by their owners, or
    /// under the array's lock.
    Updates,
}

impl WaitCause {
    /// The phase that the wait is.
    pub const fn phase(self) -> Phase {
        match self {
            WaitCause::Object | WaitCause::Elements | WaitCause::ToWrite => Phase::Miss,
            WaitCause::Lock => Phase::Lock,
            WaitCause::Barrier | WaitCause::Once => Phase::Barrier,
            WaitCause::Read
            | WaitCause::Write
            | WaitCause::Guard
            | WaitCause::Pending
            | WaitCause::Operation
            | WaitCause::Ids
            | WaitCause::Updates => Phase::Operation,
        }
    }

    /// What it is called in a report, by its phase: misses of objects and of elements, and waits
    /// to write, are all `miss`, a `once` is a `barrier`, and a wait for ids is an `operation`.
    pub fn name(self) -> &'static str {
        match self.phase() {
            Phase::Miss | Phase::OneSided => "miss",
            Phase::Lock => "lock",
            Phase::Barrier => "barrier",
            Phase::Operation | Phase::Computing => "operation",
        }
    }

    /// Whether an access caused it.
    pub const fn is_miss(self) -> bool {
        matches!(self.phase(), Phase::Miss)
    }
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What waiting came to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Counts)]
#[counts(saturating)]
pub struct WaitCost {
    /// How often a worker waited; of misses, their fetch rounds.
    pub waits: u64,
    /// Objects, or ranges of elements, that were asked for.
    pub misses: u64,
    /// Of those, objects that were to be written.
    pub to_write: u64,
    /// Objects that were read in the memory of their last writer, for which no worker waited.
    pub one_sided_reads: u64,
    /// Objects that came along with those that were missed.
    pub along: u64,
    /// Of those, the ones that were read afterwards.
    pub along_read: u64,
    /// Bytes of shared data that came meanwhile, or so.
    pub bytes: u64,
    /// How long the workers waited, in nanoseconds.
    pub waited_ns: u64,
    /// How long the one-sided reads took, by those of them that were timed, in nanoseconds.
    pub one_sided_ns: u64,
}

impl WaitCost {
    /// How long the workers waited and read, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.waited_ns.saturating_add(self.one_sided_ns)
    }
}

/// How long the nodes took before they came to a barrier: since the end of the one before, in all
/// that often as they passed it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Uneven {
    /// The nodes that passed it.
    pub nodes: u64,
    /// The nanoseconds of all of them.
    pub busy_ns: u64,
    /// Of those, the ones in which they waited for misses, locks and operations, or read one-sided.
    pub waited_ns: u64,
    /// The node that took longest, and its nanoseconds.
    pub most: Option<(NodeId, u64)>,
    /// Of those, the ones in which it waited.
    pub most_waited_ns: u64,
}

impl Uneven {
    /// Of one node, which took so long, and waited for a part of that.
    pub fn of(node: NodeId, busy_ns: u64, waited_ns: u64) -> Uneven {
        Uneven {
            nodes: 1,
            busy_ns,
            waited_ns,
            most: Some((node, busy_ns)),
            most_waited_ns: waited_ns,
        }
    }

    /// What one node took since it had taken `earlier`.
    fn since(&self, earlier: &Uneven) -> Uneven {
        let busy_ns = self.busy_ns.saturating_sub(earlier.busy_ns);
        let waited_ns = self.waited_ns.saturating_sub(earlier.waited_ns);
        let node = self.most.map(|(node, _)| node);
        node.map_or(*self, |node| Uneven::of(node, busy_ns, waited_ns))
    }

    /// Adds what other nodes took. Of two that took longest, the first counts.
    pub fn add(&mut self, other: &Uneven) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        let rank = |of: &Uneven| of.most.map(|(node, ns)| (ns, Reverse(node)));
        if rank(other) > rank(self) {
            (self.most, self.most_waited_ns) = (other.most, other.most_waited_ns);
        }
    }

    /// The node that took longest, and how much longer than the others on average: 0.12 is 12%
    /// longer.
    pub fn ahead(&self) -> Option<(NodeId, f64)> {
        let (node, most_ns) = self.most?;
        let usual = self.usual(self.busy_ns, most_ns)?;
        (usual > 0.0).then(|| (node, most_ns as f64 / usual - 1.0))
    }

    /// Whether the node that took longest waited in most of the time that it took longer.
    pub fn waited_longer(&self) -> bool {
        let Some((_, most_ns)) = self.most else {
            return false;
        };
        let more = |all, most| Some(most as f64 - self.usual(all, most)?);
        let took = more(self.busy_ns, most_ns);
        let waited = more(self.waited_ns, self.most_waited_ns);
        took.zip(waited)
            .is_some_and(|(took, waited)| waited > took / 2.0)
    }

    /// Whether the nodes waited for more than half of the time.
    pub fn waited_most(&self) -> bool {
        self.waited_ns > self.busy_ns / 2
    }

    /// What the others took on average, of what all took, and one.
    fn usual(&self, all_ns: u64, most_ns: u64) -> Option<f64> {
        let others = self.nodes.saturating_sub(1);
        (others > 0).then(|| all_ns.saturating_sub(most_ns) as f64 / others as f64)
    }
}

/// What a line of the program cost by waiting for one thing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LineCost {
    /// The line.
    pub site: CallSite,
    /// What was waited for.
    pub cause: WaitCause,
    /// The type of the objects, or of an array's elements; where objects of several types are asked
    /// for at once, that of the first. Of an operation on an object, its name after that of the
    /// object's type. Empty where nothing of the kind was waited for, or a page.
    pub type_name: String,
    /// Whether objects of the type have references to single objects that they do not own.
    pub refers: bool,
    /// The line that allocated the first object which was missed here.
    pub allocated_at: Option<CallSite>,
    /// What that came to.
    pub cost: WaitCost,
    /// How long the nodes took before, where they waited for each other.
    pub uneven: Uneven,
}

impl LineCost {
    fn key(&self) -> (CallSite, WaitCause, &str) {
        (self.site, self.cause, &self.type_name)
    }
}

/// What the lines of a program cost: where its workers waited, for what, and for how long. A line
/// at which no worker waits is not among them.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct LineCosts {
    /// The lines at which the workers waited, or read, longest, the worst first: at most
    /// [`MOST_LINES`](LineCosts::MOST_LINES).
    pub lines: Vec<LineCost>,
    /// What all other lines came to together, where there were more.
    pub left_out: BTreeMap<WaitCause, WaitCost>,
}

impl LineCosts {
    /// The most lines that a node, and a report, keeps.
    pub const MOST_LINES: usize = 256;

    /// What several nodes tell, line by line, the worst first.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a LineCosts>) -> LineCosts {
        let mut lines: BTreeMap<(CallSite, WaitCause, &str), LineCost> = BTreeMap::new();
        let mut left_out: BTreeMap<WaitCause, WaitCost> = BTreeMap::new();
        for costs in all {
            for line in &costs.lines {
                match lines.get_mut(&line.key()) {
                    Some(known) => {
                        known.cost.add(&line.cost);
                        known.uneven.add(&line.uneven);
                        known.allocated_at = known.allocated_at.or(line.allocated_at);
                    }
                    None => drop(lines.insert(line.key(), line.clone())),
                }
            }
            for (cause, cost) in &costs.left_out {
                left_out.entry(*cause).or_default().add(cost);
            }
        }
        let mut lines: Vec<LineCost> = lines.into_values().collect();
        // Lines of the same cost stay in the order of the program.
        lines.sort_by_key(|line| Reverse((line.cost.spent_ns(), line.cost.misses)));
        for line in lines.drain(lines.len().min(Self::MOST_LINES)..) {
            left_out.entry(line.cause).or_default().add(&line.cost);
        }
        LineCosts { lines, left_out }
    }

    /// What the lines cost one node since they had cost it what `earlier` says.
    #[must_use]
    pub fn since(&self, earlier: &LineCosts) -> LineCosts {
        let before: BTreeMap<_, _> = earlier
            .lines
            .iter()
            .map(|line| (line.key(), line))
            .collect();
        let mut since = self.clone();
        for line in &mut since.lines {
            if let Some(before) = before.get(&line.key()).copied() {
                line.cost = line.cost.since(&before.cost);
                line.uneven = line.uneven.since(&before.uneven);
            }
        }
        for (cause, before) in &earlier.left_out {
            if let Some(cost) = since.left_out.get_mut(cause) {
                *cost = cost.since(before);
            }
        }
        since
    }

    /// What waiting for one kind of thing came to, at all lines: misses of objects and of elements
    /// are of one kind.
    pub fn total_of(&self, name: &str) -> WaitCost {
        let mut total = self.left_out_of(name);
        let lines = self.lines.iter().filter(|line| line.cause.name() == name);
        lines.for_each(|line| total.add(&line.cost));
        total
    }

    /// The part of that which came at lines that are not told apart.
    pub fn left_out_of(&self, name: &str) -> WaitCost {
        let mut total = WaitCost::default();
        let left_out = self.left_out.iter();
        left_out
            .filter(|(cause, _)| cause.name() == name)
            .for_each(|(_, cost)| total.add(cost));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32, cause: WaitCause, waited_ns: u64) -> LineCost {
        LineCost {
            site: CallSite {
                file: "a.rs",
                line: number,
                column: 1,
            },
            cause,
            type_name: "Node".into(),
            refers: true,
            allocated_at: None,
            cost: WaitCost {
                waits: 1,
                misses: 2,
                to_write: 1,
                one_sided_reads: 3,
                along: 4,
                along_read: 1,
                bytes: 10,
                waited_ns,
                one_sided_ns: 0,
            },
            uneven: Uneven::default(),
        }
    }

    fn of(lines: Vec<LineCost>) -> LineCosts {
        LineCosts {
            lines,
            ..LineCosts::default()
        }
    }

    #[test]
    fn lines_of_several_nodes_are_added_up_and_the_worst_comes_first() {
        use WaitCause::{Elements, Lock, Object};
        let made = CallSite::runtime("made here");
        let mut second = line(7, Object, 50);
        second.allocated_at = Some(made);
        let one = of(vec![line(3, Lock, 60), line(7, Object, 20)]);
        let other = of(vec![second, line(7, Elements, 1)]);
        let merged = LineCosts::merged([&one, &other]);
        let found = merged.lines.iter().map(|line| (line.site.line, line.cause));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [(7, Object), (3, Lock), (7, Elements)]
        );
        let worst = &merged.lines[0];
        let (waits, misses, bytes, waited_ns) = (2, 4, 20, 70);
        let expected = WaitCost {
            waits,
            misses,
            to_write: 2,
            one_sided_reads: 6,
            along: 8,
            along_read: 2,
            bytes,
            waited_ns,
            one_sided_ns: 0,
        };
        assert_eq!((worst.cost, worst.allocated_at), (expected, Some(made)));
        assert_eq!(merged.total_of("miss").waited_ns, 71);
        assert_eq!(merged.total_of("lock").waits, 1);
        assert_eq!(merged.total_of("barrier"), WaitCost::default());
    }

    #[test]
    fn the_cheapest_lines_are_left_out_and_what_they_cost_is_not() {
        let most = LineCosts::MOST_LINES as u32;
        let lines = (0..most + 3).map(|number| line(number, WaitCause::Barrier, number.into()));
        let merged = LineCosts::merged([&of(lines.collect())]);
        assert_eq!(merged.lines.len(), LineCosts::MOST_LINES);
        assert_eq!(merged.lines[0].site.line, most + 2);
        let left_out = merged.left_out[&WaitCause::Barrier];
        assert_eq!((left_out.waits, left_out.waited_ns), (3, 3));
        let all = u64::from(most + 3);
        assert_eq!(merged.total_of("barrier").waits, all);
        let again = LineCosts::merged([&merged, &merged]);
        assert_eq!(again.left_out_of("barrier").waits, 6);
        assert_eq!(again.left_out_of("miss"), WaitCost::default());
        assert_eq!(again.left_out[&WaitCause::Barrier].waits, 6);
    }
}
