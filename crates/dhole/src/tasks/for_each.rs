//! Numbers that are divided among the nodes.

use std::ops::Range;
use std::panic::Location;

use dhole_model::{CallSite, NodeId};
use dhole_node::object::{Calling, Object, call_as, on, replicated};
use dhole_node::{Result, Worker};
use serde::{Deserialize, Serialize};

use super::TasksError;
use super::parts::Parts;
use super::schedule::{Schedule, own_part};

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
        let many = self.schedule.many(left, self.nodes);
        let begins = self.next;
        self.next += many.min(left);
        begins..self.next
    }
}

/// What keeps the numbers that no node has got: nothing where each node knows its own, the second
/// in a run that survives the loss of nodes.
type Keeper = (Option<Object<Left>>, Option<Object<Parts>>);

/// Calls `f` once with each number of a range, on one of the nodes. Every node calls it, with the
/// same range and schedule, and goes on when all are done: it ends with a barrier.
///
/// In a run that [survives](crate::Config::survive) the loss of nodes, other nodes call `f` again
/// with the numbers of the part that a lost node had. So `f` may be *called* twice with a number:
/// what it writes should be the same the second time, and be kept in objects that outlive a node.
/// One replicated object has the numbers: each part costs some messages to all nodes.
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
/// Those of `f`, which end the run, also where the caller looks after them;
/// [`TasksError::Differ`] where a node calls it with another range
/// or schedule than node 0; as [`once`](Worker::once) and [`barrier`](Worker::barrier).
#[track_caller]
pub fn for_each(
    w: &mut Worker<'_>,
    range: Range<u64>,
    schedule: Schedule,
    mut f: impl FnMut(&mut Worker<'_>, u64) -> Result<()>,
) -> Result<()> {
    let (node, nodes, at) = (w.node(), w.nodes() as u64, Location::caller());
    let site = CallSite::from(at);
    let end = range.end.max(range.start);
    let range = range.start..end;
    let (kind, many) = match schedule {
        Schedule::Static => (0, 0),
        Schedule::Dynamic(many) => (1, many),
        Schedule::Guided => (2, 0),
    };
    let here = [range.start, end, kind, many];
    let (first, (left, parts)) = w.once(|w| Ok((here, keeper(w, range.clone(), schedule, at)?)))?;
    if first != here {
        return Err(TasksError::Differ { node, site }.into());
    }
    let mut by_itself = w.by_itself("for_each", site)?;
    if let Some(parts) = parts {
        while let Some(part) = next_part(&mut by_itself, parts)? {
            call_each(&mut by_itself, part, &mut f)?;
        }
    } else if let Some(left) = left {
        loop {
            let part = left.take(&mut by_itself)?;
            if part.is_empty() {
                break;
            }
            call_each(&mut by_itself, part, &mut f)?;
        }
    } else {
        let own = own_part(end - range.start, node, nodes);
        let own = range.start + own.start..range.start + own.end;
        call_each(&mut by_itself, own, &mut f)?;
    }
    drop(by_itself);
    w.barrier()?;
    if let Some(parts) = parts {
        // The first node that is left frees them.
        w.once(|w| Ok(Object::free(&parts, w)?))?;
    } else if let Some(left) = left.filter(|_| node == NodeId(0)) {
        Object::free(&left, w)?;
    }
    Ok(())
}

fn keeper(
    w: &mut Worker<'_>,
    range: Range<u64>,
    schedule: Schedule,
    at: &'static Location<'static>,
) -> Result<Keeper> {
    let nodes = w.nodes();
    if w.survives() {
        let parts = [(replicated(), Parts::new(range, schedule, nodes))];
        return Ok((None, Some(w.new_row(at, parts.into_iter())?)));
    }
    if schedule == Schedule::Static {
        return Ok((None, None));
    }
    let left = Left {
        next: range.start,
        end: range.end,
        schedule,
        nodes: nodes as u64,
    };
    let left = [(on(w.node()), left)];
    Ok((Some(w.new_row(at, left.into_iter())?), None))
}

fn call_each(
    w: &mut Worker<'_>,
    mut numbers: Range<u64>,
    f: &mut impl FnMut(&mut Worker<'_>, u64) -> Result<()>,
) -> Result<()> {
    let called = numbers.try_for_each(|number| f(w, number));
    // The others wait for the end of all numbers, whatever becomes of the error.
    called.inspect_err(|error| w.end_run(error))
}

/// Ends this node's part, and waits for the next one, or until all numbers are done: `None`.
#[track_caller]
fn next_part(w: &mut Worker<'_>, parts: Object<Parts>) -> Result<Option<Range<u64>>, TasksError> {
    let node = w.node();
    if let Some(part) = parts.next_part(w, node)? {
        return Ok(Some(part));
    }
    let calling = Calling::of("Parts::await_part", "tasks::for_each");
    let part = call_as(
        w,
        parts,
        calling,
        (node,),
        |parts, _| parts.can_take(),
        |parts, (node,)| parts.await_part(node),
    );
    Ok(part?)
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
