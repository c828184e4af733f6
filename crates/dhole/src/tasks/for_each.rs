//! Numbers that are divided among the nodes.

use std::ops::Range;
use std::panic::Location;

use dhole_model::{CallSite, NodeId};
use dhole_node::object::{Object, on};
use dhole_node::{Result, Worker};
use serde::{Deserialize, Serialize};

use super::TasksError;

/// How [`for_each`] divides its numbers among the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Schedule {
    /// Each node gets as many as each other, in a row: node 0 the first. No messages. For work that
    /// is alike, and for data that a node has already.
    Static,
    /// A node that has nothing to do gets the next so many, at least one. Two messages each time,
    /// but for node 0.
    Dynamic(u64),
    /// As `Dynamic`, where a node gets `left / (2 * nodes)` of those that are left, at least one
    /// (guided self-scheduling: Polychronopoulos and Kuck, 1987).
    Guided,
}

/// The numbers that no node has got.
#[derive(Serialize, Deserialize)]
struct Left {
    next: u64,
    end: u64,
    schedule: Schedule,
    nodes: u64,
}

#[dhole_macros::object(crate = "dhole_node")]
impl Left {
    /// The next ones; at the end none.
    pub fn take(&mut self) -> Range<u64> {
        let left = self.end - self.next;
        let many = match self.schedule {
            Schedule::Static => 0,
            Schedule::Dynamic(many) => many.max(1),
            Schedule::Guided => left.div_ceil(2 * self.nodes),
        };
        let begins = self.next;
        self.next += many.min(left);
        begins..self.next
    }
}

/// Calls `f` once with each number of a range, on one of the nodes. Every node calls it, with the
/// same range and schedule, and goes on when all are done: it ends with a barrier.
///
/// ```
/// use dhole::tasks::{Schedule, for_each};
/// use dhole::Config;
///
/// let run = Config::nodes(3).run(|w| {
///     let mut mine = 0_u64;
///     for_each(w, 0..1_000, Schedule::Guided, |_, number| {
///         mine += number;
///         Ok(())
///     })?;
///     Ok(w.all_reduce(mine, |one, other| one + other)?)
/// })?;
/// assert_eq!(run.value, 499_500);
/// # Ok::<(), dhole::RunError>(())
/// ```
///
/// # Errors
/// Those of `f`, which end the run; [`TasksError::Differ`] where a node calls it with another range
/// or schedule than node 0; [`TasksError::Survives`] in a run that survives the loss of nodes; as
/// [`once`](Worker::once) and [`barrier`](Worker::barrier).
#[track_caller]
pub fn for_each(
    w: &mut Worker<'_>,
    range: Range<u64>,
    schedule: Schedule,
    mut f: impl FnMut(&mut Worker<'_>, u64) -> Result<()>,
) -> Result<()> {
    let (node, nodes, at) = (w.node(), w.nodes() as u64, Location::caller());
    let site = CallSite::from(at);
    TasksError::unless_nodes_stay(w)?;
    let end = range.end.max(range.start);
    let left = Left {
        next: range.start,
        end,
        schedule,
        nodes,
    };
    let (kind, many) = match schedule {
        Schedule::Static => (0, 0),
        Schedule::Dynamic(many) => (1, many),
        Schedule::Guided => (2, 0),
    };
    let here = [range.start, end, kind, many];
    let (first, left) = w.once(|w| {
        let left: Option<Object<Left>> = match schedule {
            Schedule::Static => None,
            _ => Some(w.new_row(at, [(on(w.node()), left)].into_iter())?),
        };
        Ok((here, left))
    })?;
    if first != here {
        return Err(TasksError::Differ { node, site }.into());
    }
    let own = own_part(end - range.start, node, nodes);
    let mut part = range.start + own.start..range.start + own.end;
    let mut by_itself = w.by_itself("for_each", site)?;
    loop {
        if let Some(left) = left {
            part = left.take(&mut by_itself)?;
        }
        let is_last = left.is_none() || part.is_empty();
        part.clone()
            .try_for_each(|number| f(&mut by_itself, number))?;
        if is_last {
            break;
        }
    }
    drop(by_itself);
    w.barrier()?;
    if let Some(left) = left.filter(|_| node == NodeId(0)) {
        Object::free(&left, w)?;
    }
    Ok(())
}

/// The part of so many that a node has, where each has as many as each other.
pub(super) fn own_part(many: u64, node: NodeId, nodes: u64) -> Range<u64> {
    let place = |node: u128| (u128::from(many) * node / u128::from(nodes)) as u64;
    let me = node.index() as u128;
    place(me)..place(me + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(schedule: Schedule, range: Range<u64>, nodes: u64) -> Vec<u64> {
        let mut left = Left {
            next: range.start,
            end: range.end,
            schedule,
            nodes,
        };
        let parts = std::iter::from_fn(|| Some(left.take()).filter(|part| !part.is_empty()));
        let parts: Vec<Range<u64>> = parts.collect();
        let numbers = parts.iter().cloned().flatten();
        assert!(numbers.eq(range));
        parts
            .into_iter()
            .map(|part| part.end - part.start)
            .collect()
    }

    #[test]
    fn each_number_is_taken_once_in_parts_as_the_schedule_says() {
        assert_eq!(parts(Schedule::Dynamic(4), 3..13, 2), [4, 4, 2]);
        assert_eq!(parts(Schedule::Dynamic(0), 0..3, 2), [1, 1, 1]);
        assert_eq!(
            parts(Schedule::Guided, 0..32, 2),
            [8, 6, 5, 4, 3, 2, 1, 1, 1, 1]
        );
        assert_eq!(parts(Schedule::Guided, 7..7, 2), []);
        let most = parts(Schedule::Dynamic(u64::MAX), u64::MAX - 5..u64::MAX, 2);
        assert_eq!(most, [5]);
    }
}
