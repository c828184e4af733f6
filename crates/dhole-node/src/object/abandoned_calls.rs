//! Calls whose [`Pending`](super::Pending) was dropped, which has no worker to say so. It names the
//! node that has begun the call by a number, under which it is found here where that is needed: as
//! long as it is waited for in the end, nobody counts who knows of whom.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dhole_model::unpoisoned::lock;

/// What of this process is told of calls that nobody will look after, by number.
static ALL: Mutex<All> = Mutex::new(All {
    last: 0,
    told: BTreeMap::new(),
});

struct All {
    last: u64,
    told: BTreeMap<u64, Arc<Told>>,
}

/// The calls of one node that nobody will look after, since they were last looked for.
pub(super) struct AbandonedCalls {
    number: u64,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    any: AtomicBool,
    calls: Mutex<Vec<u64>>,
}

/// Nobody will look after this call of the node of this number, if that is there.
#[cold]
pub(super) fn abandon(number: u64, call: u64) {
    let told = lock(&ALL).told.get(&number).cloned();
    if let Some(told) = told {
        lock(&told.calls).push(call);
        told.any.store(true, Ordering::Release);
    }
}

impl AbandonedCalls {
    /// A node's, which has a number that no other has had in this process.
    pub fn new() -> AbandonedCalls {
        let told = Arc::<Told>::default();
        let mut all = lock(&ALL);
        all.last += 1;
        let number = all.last;
        all.told.insert(number, Arc::clone(&told));
        AbandonedCalls { number, told }
    }

    /// By which it is found.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether there are any.
    #[inline]
    pub fn any(&self) -> bool {
        self.told.any.load(Ordering::Acquire)
    }

    /// Those that there are.
    #[inline]
    pub fn take(&self) -> Vec<u64> {
        if !self.any() {
            return Vec::new();
        }
        let mut calls = lock(&self.told.calls);
        self.told.any.store(false, Ordering::Release);
        std::mem::take(&mut calls)
    }
}

impl Drop for AbandonedCalls {
    fn drop(&mut self) {
        lock(&ALL).told.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_of_its_own_calls_and_is_forgotten_when_it_is_gone() {
        let (one, other) = (AbandonedCalls::new(), AbandonedCalls::new());
        abandon(one.number(), 5);
        abandon(one.number(), 7);
        assert!(one.any() && !other.any());
        assert_eq!((one.take(), other.take()), (vec![5, 7], vec![]));
        assert!(!one.any());
        let (gone, others) = (one.number(), Arc::clone(&one.told));
        drop(one);
        abandon(gone, 9);
        assert!(!others.any.load(Ordering::Acquire));
        assert!(!lock(&ALL).told.contains_key(&gone));
        assert_ne!(AbandonedCalls::new().number(), gone);
    }
}
