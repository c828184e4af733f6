//! Whether one order of calls explains what the callers of shared objects heard.
//!
//! Two conditions are told apart. *Sequential consistency* (Lamport 1979) asks for an order of all
//! calls that keeps the order of each thread, in which one copy of the objects returns what each
//! caller heard. *Linearizability* (Herlihy and Wing 1990, section 2) also asks that a call which
//! returned before another was made comes before it.
//!
//! The search is that of Wing and Gong (1993): the first calls of all threads are tried one after
//! another. What has failed once is not tried again (Lowe 2017), so it takes as many steps as there
//! are places in the threads and states of the objects there, not as many as there are orders.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

/// Shared objects of which there is one copy, and whose calls happen one after another.
pub trait OneCopy: Clone + Eq + Hash {
    /// A call, with its object and arguments.
    type Call;
    /// Its result.
    type Result: PartialEq;

    /// Does the call and returns its result; `None`, and no change, while its guard is false.
    fn apply(&mut self, call: &Self::Call) -> Option<Self::Result>;
}

/// A call that was made.
#[derive(Clone, Debug)]
struct Made<C, R> {
    call: C,
    at: usize,
    /// The result, and when the caller heard it.
    heard: Option<(R, usize)>,
}

/// The calls that threads made, and the results that they heard, in the order of real time. The
/// last call of a thread may be without a result: it may have happened at any time, or not at all.
#[derive(Clone, Debug)]
pub struct History<C, R> {
    threads: BTreeMap<usize, Vec<Made<C, R>>>,
    /// As many calls and results have been told.
    now: usize,
}

impl<C, R> Default for History<C, R> {
    fn default() -> History<C, R> {
        History {
            threads: BTreeMap::new(),
            now: 0,
        }
    }
}

impl<C, R: PartialEq> History<C, R> {
    /// Tells that a thread makes a call now.
    ///
    /// # Errors
    /// A thread that has not heard the result of its last call makes none.
    pub fn calls(&mut self, thread: usize, call: C) -> Result<(), String> {
        let made = self.threads.entry(thread).or_default();
        if made.last().is_some_and(|last| last.heard.is_none()) {
            return Err(format!("thread {thread} calls before it hears a result"));
        }
        self.now += 1;
        made.push(Made {
            call,
            at: self.now,
            heard: None,
        });
        Ok(())
    }

    /// Tells that the last call of a thread was withdrawn: it does not happen.
    ///
    /// # Errors
    /// A thread that waits for no result withdraws nothing.
    pub fn withdraws(&mut self, thread: usize) -> Result<(), String> {
        let made = self.threads.get_mut(&thread);
        let withdrawn = made.and_then(|made| made.pop_if(|last| last.heard.is_none()));
        match withdrawn {
            Some(_) => Ok(()),
            None => Err(format!("thread {thread} withdraws no call")),
        }
    }

    /// Tells that a thread hears the result of its last call now.
    ///
    /// # Errors
    /// A thread that waits for no result hears none.
    pub fn hears(&mut self, thread: usize, result: R) -> Result<(), String> {
        let last = self
            .threads
            .get_mut(&thread)
            .and_then(|made| made.last_mut());
        match last {
            Some(last) if last.heard.is_none() => {
                self.now += 1;
                last.heard = Some((result, self.now));
                Ok(())
            }
            _ => Err(format!("thread {thread} hears a result of no call")),
        }
    }

    /// Whether some order that keeps the order of each thread explains all results.
    pub fn is_sequentially_consistent<S>(&self, start: S) -> bool
    where
        S: OneCopy<Call = C, Result = R>,
    {
        self.search(start, false).explains()
    }

    /// Whether some order that keeps the order of real time explains all results.
    pub fn is_linearizable<S: OneCopy<Call = C, Result = R>>(&self, start: S) -> bool {
        self.search(start, true).explains()
    }

    fn search<S: OneCopy<Call = C, Result = R>>(
        &self,
        start: S,
        keeps_real_time: bool,
    ) -> Search<'_, S> {
        let threads: Vec<&[Made<C, R>]> = self.threads.values().map(Vec::as_slice).collect();
        Search {
            done: vec![0; threads.len()],
            threads,
            state: start,
            keeps_real_time,
            failed: HashSet::new(),
        }
    }
}

struct Search<'h, S: OneCopy> {
    threads: Vec<&'h [Made<S::Call, S::Result>]>,
    /// How many calls of each thread have had their turn.
    done: Vec<usize>,
    /// What they have made of the objects.
    state: S,
    keeps_real_time: bool,
    /// Where no order of the calls that are left explains their results.
    failed: HashSet<(Vec<usize>, S)>,
}

impl<S: OneCopy> Search<'_, S> {
    /// Whether some order of the calls that are left explains their results.
    fn explains(&mut self) -> bool {
        let left = self.threads.iter().zip(&self.done);
        let next = left.filter_map(|(calls, done)| calls.get(*done));
        let Some(first) = next.filter_map(|made| Some(made.heard.as_ref()?.1)).min() else {
            return true;
        };
        if self
            .failed
            .contains(&(self.done.clone(), self.state.clone()))
        {
            return false;
        }
        for thread in 0..self.threads.len() {
            let Some(made) = self.threads[thread].get(self.done[thread]) else {
                continue;
            };
            if self.keeps_real_time && made.at > first {
                continue;
            }
            let mut after = self.state.clone();
            let result = after.apply(&made.call);
            let fits = match &made.heard {
                Some((heard, _)) => result.as_ref() == Some(heard),
                None => result.is_some(),
            };
            if !fits {
                continue;
            }
            let before = std::mem::replace(&mut self.state, after);
            self.done[thread] += 1;
            if self.explains() {
                return true;
            }
            self.done[thread] -= 1;
            self.state = before;
        }
        self.failed.insert((self.done.clone(), self.state.clone()));
        false
    }
}
