//! Calls whose time is limited.

use std::time::Duration;

use dhole::{NodeId, Object, ObjectError, Refusal, Result, Worker, on, replicated};
use serde::{Deserialize, Serialize};

use super::{keeps_pages, succeed};
use crate::Platform;

/// Things that callers take, once there are some.
#[derive(Serialize, Deserialize, Default)]
struct Store {
    things: usize,
}

#[dhole::object(crate = "dhole")]
impl Store {
    pub fn put(&mut self) {
        self.things += 1;
    }

    #[when(self.things > 0)]
    pub fn take(&mut self) -> usize {
        self.things -= 1;
        self.things
    }

    #[when(self.things >= *least)]
    pub fn reaches(&self, least: usize) -> usize {
        self.things
    }

    pub fn things(&self) -> usize {
        self.things
    }
}

/// The same, as a service.
#[derive(Serialize, Deserialize, Default)]
struct Service {
    things: usize,
}

#[dhole::object(crate = "dhole")]
impl Service {
    pub fn put(&mut self) {
        self.things += 1;
    }

    #[when(self.things > 0)]
    pub fn take(&mut self, w: &mut Worker<'_>) -> Result<NodeId> {
        self.things -= 1;
        Ok(w.node())
    }

    /// Holds the object until the store has something.
    pub fn hold(&mut self, w: &mut Worker<'_>, store: Object<Store>) -> Result<usize> {
        store.put(w)?;
        Ok(store.reaches(w, 3)?)
    }

    pub fn things(&self) -> usize {
        self.things
    }
}

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3600);

fn is_withdrawn<R: std::fmt::Debug>(called: std::result::Result<R, ObjectError>) {
    match called {
        Err(ObjectError::Refused { cause, .. }) => assert_eq!(cause, Refusal::Withdrawn),
        other => panic!("not withdrawn: {other:?}"),
    }
}

/// A call whose guard stays false is withdrawn when its time is over, wherever its object is kept,
/// and is not executed when the guard is true later. A call that begins in time comes to its end.
pub fn a_call_whose_guard_stays_false_is_withdrawn_when_its_time_is_over(on_: &dyn Platform) {
    for kept in [on(NodeId(0)), on(NodeId(1)), replicated()] {
        succeed(on_, 3, |w| {
            let store = w.once(|w| Ok(w.new_object(kept, Store::default())?))?;
            is_withdrawn(w.within(SHORT, |w| store.take(w)));
            is_withdrawn(w.within(SHORT, |w| store.reaches(w, 1)));
            let started = store.start_take(w)?;
            is_withdrawn(w.within(SHORT, |w| started.wait(w)));
            // The outer limit ends first.
            is_withdrawn(w.within(SHORT, |w| w.within(LONG, |w| store.take(w))));
            w.barrier()?;
            store.put(w)?;
            w.barrier()?;
            assert_eq!(store.things(w)?, 3);
            w.barrier()?;
            w.within(LONG, |w| store.take(w))?;
            w.barrier()?;
            assert_eq!(store.things(w)?, 0);
            w.barrier()?;
            Ok(())
        });
    }
}

/// A limit is gone after its closure: a call then waits as long as it takes.
pub fn a_call_after_a_limit_waits_as_long_as_it_takes(on_: &dyn Platform) {
    succeed(on_, 2, |w| {
        let store = w.once(|w| Ok(w.new_object(on(NodeId(1)), Store::default())?))?;
        if w.node() == NodeId(0) {
            is_withdrawn(w.within(SHORT, |w| store.take(w)));
            store.put(w)?;
            store.reaches(w, 2)?;
        } else {
            store.reaches(w, 1)?;
            store.put(w)?;
        }
        w.barrier()?;
        Ok(())
    });
}

/// A call that waits for the monitor of its object, or for its guard there, is withdrawn too; one
/// that has begun is not.
pub fn a_call_that_waits_for_a_monitor_is_withdrawn_when_its_time_is_over(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 3, |w| {
        let (service, store) = w.once(|w| {
            let service = w.new_object(on(NodeId(1)), Service::default())?;
            Ok((service, w.new_object(on(NodeId(2)), Store::default())?))
        })?;
        is_withdrawn(w.within(SHORT, |w| service.take(w)));
        w.barrier()?;
        if w.node() == NodeId(0) {
            // It begins at once, and ends long after its time is over.
            assert_eq!(w.within(SHORT, |w| service.hold(w, store))?, 3);
        } else {
            store.reaches(w, 1)?;
            is_withdrawn(w.within(SHORT, |w| service.things(w)));
            is_withdrawn(w.within(SHORT, |w| service.take(w)));
            // The holder goes on when both others have been refused.
            store.put(w)?;
        }
        w.barrier()?;
        service.put(w)?;
        assert_eq!(service.take(w)?, NodeId(1));
        w.barrier()?;
        assert_eq!(service.things(w)?, 0);
        w.barrier()?;
        Ok(())
    });
}
