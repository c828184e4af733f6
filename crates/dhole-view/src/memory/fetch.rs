//! Many minipages in one round of messages, opened by few system calls.

use std::ops::Range;

use dhole_model::{CallSite, WaitCause};
use dhole_node::PartsStep;
use dhole_protocol::memory::{Accessed, MINIPAGE_PAGE, MemoryOperation, Permission, RequestState};

use super::{Effects, Inside, Memory, waits_at};
use crate::context::{self, MemoryWaitError};
use crate::waiters::WaitsFor;

/// A minipage to be fetched: an address on it, and its bytes.
pub(crate) type Wanted = (u64, u32);

/// A round: as many minipages as may be under way.
struct Round<'a> {
    thread: usize,
    wanted: &'a mut dyn Iterator<Item = Wanted>,
    /// Taken of `wanted`, and not asked for yet.
    next: Option<Wanted>,
    /// Asked for.
    asked: Vec<u64>,
    /// So many of those are answered.
    answered: usize,
    /// The last of them has a thread that waits for it alone: this one.
    is_own: bool,
    counted: bool,
    opens: bool,
}

impl Memory {
    /// Fetches copies of minipages to read, as many at once as may be under way, and waits until
    /// they have come. Those of which there is nothing are passed over. Their pages are opened if
    /// `opens`.
    ///
    /// # Errors
    /// [`MemoryWaitError`]
    pub fn fetch(
        &self,
        wanted: &mut dyn Iterator<Item = Wanted>,
        opens: bool,
        site: CallSite,
    ) -> Result<(), MemoryWaitError> {
        if context::holds() {
            return Err(MemoryWaitError::Holds);
        }
        // Where all nodes have the same memory there is nothing to fetch.
        if !self.arena.catches() {
            return Ok(());
        }
        let mut round = Round {
            thread: context::own_number(),
            next: wanted.next(),
            wanted,
            asked: Vec::new(),
            answered: 0,
            is_own: false,
            counted: false,
            opens,
        };
        let told = waits_at(WaitCause::Object, Some(site));
        while round.next.is_some() {
            self.steps((WaitsFor::AnyPage, told), &mut |inside, effects| {
                fetch_step(&mut round, inside, effects)
            })?;
            round.asked.clear();
            (round.answered, round.is_own) = (0, false);
        }
        Ok(())
    }
}

fn fetch_step(
    round: &mut Round<'_>,
    inside: &mut Inside,
    effects: &mut Effects<'_, '_>,
) -> PartsStep {
    let is_first = round.asked.is_empty();
    while is_first && let Some((address, bytes)) = round.next {
        match inside.machine.fetch(address, bytes, effects) {
            Accessed::Permitted => {}
            Accessed::Asked | Accessed::Joined => round.asked.push(address),
            Accessed::Dropped if !round.asked.is_empty() => break,
            // Those under way are prefetches, of whose answers nobody hears.
            Accessed::Dropped => {
                let read = MemoryOperation::Read;
                inside.machine.access(address, read, true, effects);
                round.asked.push(address);
                round.is_own = true;
                round.next = round.wanted.next();
                break;
            }
        }
        round.next = round.wanted.next();
    }
    if !round.asked.is_empty() && !round.counted {
        round.counted = true;
        effects.out.read_faults += 1;
    }
    let rest = &round.asked[round.answered..];
    let is_over = |address: &&u64| inside.machine.state(**address) != RequestState::Waits;
    round.answered += rest.iter().take_while(is_over).count();
    if let Some(address) = round.asked.get(round.answered) {
        let waits = (*address, MemoryOperation::Read);
        inside.waits.insert(round.thread, waits);
        return PartsStep::Waits;
    }
    inside.waits.remove(&round.thread);
    if let (true, Some(address)) = (round.is_own, round.asked.last()) {
        inside.machine.goes_on(*address, effects);
    }
    if round.opens {
        open(inside, &round.asked, effects);
    }
    PartsStep::Over
}

/// Opens the minipages of a round of which the node has copies now: those that lie behind each
/// other in one view together.
fn open(inside: &Inside, asked: &[u64], effects: &mut Effects<'_, '_>) {
    let came = asked.iter().filter_map(|at| inside.machine.came(*at));
    let pages = came.map(|(of, permission)| (of.first_page()..of.end_of_pages(), permission));
    let mut pages: Vec<(Range<u64>, Permission)> = pages.collect();
    pages.sort_unstable_by_key(|(pages, _)| pages.start);
    let joins = |next: &mut (Range<u64>, Permission), before: &mut (Range<u64>, Permission)| {
        let follows = next.0.start <= before.0.end && next.1 == before.1;
        if follows {
            before.0.end = before.0.end.max(next.0.end);
        }
        follows
    };
    pages.dedup_by(joins);
    debug_assert!(pages.iter().all(|(it, _)| it.start % MINIPAGE_PAGE == 0));
    for (pages, permission) in pages {
        effects.host.protect(pages, permission, effects.out);
    }
}
