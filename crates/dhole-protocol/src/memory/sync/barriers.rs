//! Barriers of so many threads, wherever they are.

use std::collections::VecDeque;

use dhole_model::{CallSite, NodeId, NodeMap};
use dhole_part::PartEffects;

use super::{
    Attempt, MOST_WAITING, SWEEP_FROM, Taken, ThreadAttempt, ThreadId, ThreadMessage,
    ThreadRefusal, ThreadSync, WaitsOn,
};

const BARRIERS: &str = "barriers of a node";

/// The threads of this node that wait at a barrier.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Arrivals {
    parties: u32,
    /// In the order in which they came.
    waiting: VecDeque<ThreadId>,
    /// How many of them, the last, the manager does not know of.
    unsent: u32,
    /// So many of this node went on together last: for as many it waits before it sends.
    expected: u32,
}

impl Arrivals {
    fn sent(&self) -> u32 {
        self.waiting.len() as u32 - self.unsent
    }
}

/// The threads that wait at a barrier, as its manager knows them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Gathering {
    parties: u32,
    /// How many of which node, in the order in which it heard of them.
    queue: VecDeque<(NodeId, u32)>,
    all: u64,
}

impl ThreadSync {
    /// A thread reaches a barrier of so many. The one that came first goes on with 1, the others
    /// with 0. A node whose threads went on together the last time tells the manager when as many
    /// are there; where fewer come, one of them must [say so](ThreadSync::flush). The manager
    /// itself knows at once.
    ///
    /// # Errors
    /// [`ThreadRefusal::NoParties`]; [`ThreadRefusal::Parties`]; [`ThreadRefusal::Full`]
    pub fn arrive(
        &mut self,
        thread: ThreadId,
        key: u64,
        parties: u32,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        if parties == 0 {
            return Err(ThreadRefusal::NoParties(key));
        }
        self.make_room_at_barriers(key)?;
        let here = self.arrivals.get(&key);
        let here = here.filter(|arrivals| !arrivals.waiting.is_empty());
        let others = here.map(|arrivals| arrivals.parties);
        if let Some(others) = others.filter(|others| *others != parties) {
            return Err(ThreadRefusal::Parties {
                key,
                parties: others,
                given: parties,
            });
        }
        self.begin(thread, WaitsOn::Barrier(key), site)?;
        let arrivals = self.arrivals.get_or_default(key);
        arrivals.parties = parties;
        arrivals.waiting.push_back(thread);
        arrivals.unsent += 1;
        let are_all = arrivals.waiting.len() as u32 >= arrivals.expected;
        if are_all || self.manager_of(key) == self.me {
            self.flush(key, out);
        }
        Ok(match self.result(thread) {
            Some(passed) => ThreadAttempt::Done(passed?),
            None => ThreadAttempt::Waits,
        })
    }

    /// Room for a barrier, if it is new. Those at which nobody waits are forgotten now and then: a
    /// node that has forgotten one tells its manager of each thread apart once more.
    fn make_room_at_barriers(&mut self, key: u64) -> Result<(), ThreadRefusal> {
        if self.arrivals.contains_key(&key) || self.arrivals.len() < self.looks_at {
            return Ok(());
        }
        self.arrivals
            .retain(|_, arrivals| !arrivals.waiting.is_empty());
        let twice = (2 * self.arrivals.len()).max(SWEEP_FROM);
        self.looks_at = twice.min(self.most_keys);
        match self.arrivals.len() < self.most_keys {
            true => Ok(()),
            false => Err(self.full(BARRIERS)),
        }
    }

    /// Whether the manager of a barrier does not know of all threads that wait at it here.
    pub fn has_unsent(&self, key: u64) -> bool {
        let arrivals = self.arrivals.get(&key);
        arrivals.is_some_and(|arrivals| arrivals.unsent > 0)
    }

    /// Tells the manager of a barrier of the threads that wait at it here.
    pub fn flush(&mut self, key: u64, out: &mut impl PartEffects<Self>) {
        let manager = self.manager_of(key);
        let Some(arrivals) = self.arrivals.get_mut(&key).filter(|it| it.unsent > 0) else {
            return;
        };
        let (parties, count) = (arrivals.parties, std::mem::take(&mut arrivals.unsent));
        let arrive = ThreadMessage::Arrive {
            key,
            parties,
            count,
        };
        self.send(manager, arrive, out);
        self.own_messages(out);
    }

    pub(super) fn take_arrive(
        &mut self,
        from: NodeId,
        key: u64,
        (parties, count): (u32, u32),
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let most = (self.nodes * MOST_WAITING) as u64;
        let is_new = !self.gatherings.contains_key(&key);
        let known = self.gatherings.get(&key).map_or(0, |it| it.all);
        if parties == 0 || count == 0 || known + u64::from(count) > most {
            return Err("no threads at a barrier, or more than there can be");
        }
        if is_new && self.gatherings.len() >= self.most_keys {
            let parties = 0;
            let refuse = ThreadMessage::Refuse {
                key,
                parties,
                count,
            };
            self.send(from, refuse, out);
            return Ok(());
        }
        let gathering = self.gatherings.get_or_default(key);
        if gathering.all > 0 && gathering.parties != parties {
            let parties = gathering.parties;
            let refuse = ThreadMessage::Refuse {
                key,
                parties,
                count,
            };
            self.send(from, refuse, out);
            return Ok(());
        }
        gathering.parties = parties;
        gathering.queue.push_back((from, count));
        gathering.all += u64::from(count);
        let mut departs = Vec::new();
        while gathering.all >= u64::from(parties) {
            gathering.all -= u64::from(parties);
            let first = gathering.queue.front().map(|(node, _)| *node);
            let (mut left, mut counts) = (parties, NodeMap::new());
            while let Some((node, count)) = gathering.queue.front_mut().filter(|_| left > 0) {
                let goes_on = left.min(*count);
                *counts.get_or_default(*node) += goes_on;
                (left, *count) = (left - goes_on, *count - goes_on);
                if *count == 0 {
                    gathering.queue.pop_front();
                }
            }
            departs.extend(counts.into_iter().map(|(node, count)| {
                let first = Some(node) == first;
                (node, ThreadMessage::Depart { key, count, first })
            }));
        }
        if gathering.all == 0 {
            self.gatherings.remove(&key);
        }
        for (to, depart) in departs {
            self.send(to, depart, out);
        }
        Ok(())
    }

    pub(super) fn take_depart(
        &mut self,
        key: u64,
        count: u32,
        first: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let arrivals = self.arrivals.get_mut(&key);
        let arrivals = arrivals.filter(|arrivals| (1..=arrivals.sent()).contains(&count));
        let arrivals = arrivals.ok_or("more threads go on from a barrier than wait at it")?;
        arrivals.expected = count;
        let threads: Vec<_> = arrivals.waiting.drain(..count as usize).collect();
        for (place, thread) in threads.into_iter().enumerate() {
            let is_first = first && place == 0;
            self.finish(thread, Ok(is_first.into()), out);
        }
        Ok(())
    }

    pub(super) fn take_refuse(
        &mut self,
        key: u64,
        parties: u32,
        count: u32,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let arrivals = self.arrivals.get_mut(&key);
        let arrivals = arrivals.filter(|arrivals| (1..=arrivals.sent()).contains(&count));
        let arrivals = arrivals.ok_or("more threads are refused at a barrier than wait at it")?;
        let (given, sent) = (arrivals.parties, arrivals.sent() as usize);
        let refused = sent - count as usize..sent;
        let threads: Vec<_> = arrivals.waiting.drain(refused).collect();
        let refusal = match parties {
            0 => self.full(BARRIERS),
            _ => ThreadRefusal::Parties {
                key,
                parties,
                given,
            },
        };
        for thread in threads {
            self.finish(thread, Err(refusal.clone()), out);
        }
        Ok(())
    }
}
