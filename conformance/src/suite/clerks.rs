//! Operations that take a worker.

use dhole::{NodeId, Object, ObjectError, Ref, Refusal, Result, Worker, on, replicated};
use serde::{Deserialize, Serialize};

use super::{assert_says, fail, keeps_pages, succeed};
use crate::Platform;

/// Where callers meet: an object without a worker.
#[derive(Serialize, Deserialize, Default)]
struct Gate {
    arrived: usize,
    inside: usize,
    most: usize,
}

#[dhole::object(crate = "dhole")]
impl Gate {
    pub fn arrive(&mut self) {
        self.arrived += 1;
    }

    #[when(self.arrived >= *all)]
    pub fn pass(&self, all: usize) {}

    pub fn enter(&mut self) {
        self.inside += 1;
        self.most = self.most.max(self.inside);
    }

    pub fn leave(&mut self) {
        self.inside -= 1;
    }

    pub fn most(&self) -> usize {
        self.most
    }
}

/// A service whose operations wait and call.
#[derive(Serialize, Deserialize, Default)]
struct Service {
    served: Vec<String>,
    open: bool,
    next: Option<Object<Service>>,
}

#[dhole::object(crate = "dhole")]
impl Service {
    #[new]
    pub fn named(name: &str) -> Self {
        Service {
            served: vec![name.into()],
            ..Service::default()
        }
    }

    pub fn open(&mut self) {
        self.open = true;
    }

    pub fn lead_to(&mut self, next: Object<Service>) {
        self.next = Some(next);
    }

    pub fn served(&self) -> usize {
        self.served.len()
    }

    /// Waits for all callers: no writer could, for they would wait for each other.
    pub fn meet(&self, w: &mut Worker<'_>, gate: Object<Gate>, all: usize) -> Result<usize> {
        gate.arrive(w)?;
        gate.pass(w, all)?;
        Ok(self.served.len())
    }

    /// Notes in another object that it is inside.
    pub fn serve(&mut self, w: &mut Worker<'_>, gate: Object<Gate>, who: &str) -> Result<usize> {
        gate.enter(w)?;
        w.pause()?;
        self.served.push(who.into());
        gate.leave(w)?;
        Ok(self.served.len())
    }

    #[when(self.open)]
    pub fn enter(&mut self, w: &mut Worker<'_>, gate: Object<Gate>) -> Result<NodeId> {
        gate.enter(w)?;
        Ok(w.node())
    }

    pub fn double(&self, w: &mut Worker<'_>, number: Ref<u64>, all: &mut [u64]) -> Result<u64> {
        *number.get_mut(w) *= 2;
        all.iter_mut().for_each(|it| *it *= 2);
        Ok(*number.get(w))
    }

    pub fn double_nothing(&self, w: &mut Worker<'_>) -> Result<NodeId> {
        Ok(w.node())
    }

    pub fn fail(&mut self, _w: &mut Worker<'_>, how: u8) -> Result<()> {
        match how {
            0 => Err(dhole::Error::program("no such page")),
            _ => panic!("the roof fell in"),
        }
    }

    pub fn wait_for_all(&self, w: &mut Worker<'_>) -> Result<()> {
        Ok(w.barrier()?)
    }

    pub fn pass_on(&mut self, w: &mut Worker<'_>, links: usize) -> Result<usize> {
        match self.next.filter(|_| links > 0) {
            Some(next) => Ok(next.pass_on(w, links - 1)? + 1),
            None => Ok(0),
        }
    }
}

fn cause<R: std::fmt::Debug>(called: std::result::Result<R, ObjectError>) -> Refusal {
    match called {
        Err(ObjectError::Refused { cause, .. } | ObjectError::NotMade { cause, .. }) => cause,
        other => panic!("not refused: {other:?}"),
    }
}

fn made(w: &mut Worker<'_>, at: u16) -> Result<(Object<Service>, Object<Gate>)> {
    w.once(|w| {
        let service = Service::named_in(w, on(NodeId(at)), "first")?;
        Ok((service, w.new_object(on(NodeId(0)), Gate::default())?))
    })
}

/// Calls that only read are in progress together: each waits for all others.
pub fn reading_calls_that_take_a_worker_are_in_progress_together(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    for nodes in [1, 3] {
        for at in 0..nodes as u16 {
            succeed(on_, nodes, |w| {
                let (service, gate) = made(w, at)?;
                let all = w.nodes();
                assert_eq!(service.meet(w, gate, all)?, 1);
                w.barrier()?;
                Ok(())
            });
        }
    }
}

/// Calls that write are in progress one after the other, and each is executed once.
pub fn a_writing_call_that_takes_a_worker_is_in_progress_alone(on_: &dyn Platform) {
    const EACH: usize = 5;
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 3, |w| {
        let (service, gate) = made(w, 1)?;
        for _ in 0..EACH {
            let name = w.node().to_string();
            assert!(service.serve(w, gate, &name)? > 1);
            assert!(service.served(w)? > 1);
        }
        w.barrier()?;
        assert_eq!(gate.most(w)?, 1);
        assert_eq!(service.served(w)?, 1 + 3 * EACH);
        w.barrier()?;
        Ok(())
    });
}

/// A call whose guard is false waits without the monitor, and goes on where the object is.
pub fn a_call_that_takes_a_worker_waits_for_its_guard(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 3, |w| {
        let (service, gate) = made(w, 1)?;
        if w.node() == NodeId(2) {
            service.serve(w, gate, "before")?;
            service.open(w)?;
        } else {
            assert_eq!(service.enter(w, gate)?, NodeId(1));
        }
        w.barrier()?;
        Ok(())
    });
}

/// What the caller has written is seen by the operation, and what that writes by the caller.
pub fn what_an_operation_with_a_worker_writes_its_caller_reads(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 3, |w| {
        let (service, _) = made(w, 1)?;
        let number = w.alloc(0);
        for round in 1..10 {
            *number.get_mut(w) = round;
            let mut all = [1, 2, round];
            assert_eq!(service.double(w, number, &mut all)?, 2 * round);
            assert_eq!(*number.get(w), 2 * round);
            assert_eq!(all, [2, 4, 2 * round]);
        }
        w.barrier()?;
        Ok(())
    });
}

/// An error goes to the caller, and the object serves on; a panic of a call that writes spoils it.
pub fn an_operation_with_a_worker_that_fails_says_so_to_its_caller(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 2, |w| {
        for at in 0..2 {
            let (service, gate) = made(w, at)?;
            let failed = cause(service.fail(w, 0));
            assert!(matches!(&failed, Refusal::Failed(words) if words.contains("no such page")));
            let all = cause(service.wait_for_all(w));
            assert!(all.to_string().contains("barrier"), "{all}");
            service.serve(w, gate, "after")?;
            w.barrier()?;
            if w.node() == NodeId(0) {
                let panicked = cause(service.fail(w, 1));
                assert!(matches!(panicked, Refusal::Poisoned { .. }), "{panicked}");
            }
            w.barrier()?;
            let later = cause(service.serve(w, gate, "later"));
            for words in ["Service::fail", "the roof fell in"] {
                assert!(later.to_string().contains(words), "{later}");
            }
            assert_eq!(cause(service.served(w)), later);
            w.barrier()?;
        }
        Ok(())
    });
}

/// A call on the own node cannot begin while its caller holds a lock; one on another node can.
pub fn a_call_that_takes_a_worker_is_refused_under_a_lock_of_the_own_node(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 2, |w| {
        let (service, gate) = made(w, 1)?;
        let lock = w.once(|w| Ok(w.new_lock()))?;
        if w.node() == NodeId(1) {
            let guard = lock.acquire(w)?;
            let refused = cause(service.serve(w, gate, "under a lock"));
            assert_eq!(refused, Refusal::HoldsLock);
            assert_eq!(service.served(w)?, 1);
            drop(guard);
            service.serve(w, gate, "without")?;
        }
        w.barrier()?;
        if w.node() == NodeId(0) {
            let _guard = lock.acquire(w)?;
            assert_eq!(service.serve(w, gate, "elsewhere")?, 3);
        }
        w.barrier()?;
        Ok(())
    });
}

/// An object whose operations take a worker stays where it was made.
pub fn an_object_that_takes_a_worker_stays_on_its_node(on_: &dyn Platform) {
    succeed(on_, 2, |w| {
        let (service, _) = made(w, 1)?;
        let me = w.node();
        let moved = Object::strategy(&service, w, on(me));
        assert_eq!(cause(moved), Refusal::TakesWorker);
        let copies = w.new_object(replicated(), Service::default());
        assert_eq!(cause(copies), Refusal::TakesWorker);
        let copies = Service::named_in(w, replicated(), "copies");
        assert_eq!(cause(copies), Refusal::TakesWorker);
        assert_eq!(service.served(w)?, 1);
        w.barrier()?;
        if me == NodeId(0) {
            Object::free(&service, w)?;
        }
        w.barrier()?;
        assert_eq!(cause(service.served(w)), Refusal::Freed(NodeId(0)));
        Ok(())
    });
}

/// Two services call each other, and each is held by its own call.
pub fn services_that_wait_for_each_other_are_an_error(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    let error = fail(on_, 3, |w| {
        let (first, second) = w.once(|w| {
            let first = Service::named_in(w, on(NodeId(1)), "first")?;
            let second = Service::named_in(w, on(NodeId(2)), "second")?;
            first.lead_to(w, second)?;
            second.lead_to(w, first)?;
            Ok((first, second))
        })?;
        if w.node() == NodeId(0) {
            assert_eq!(first.pass_on(w, 1)?, 1);
            assert_eq!(second.pass_on(w, 1)?, 1);
            first.pass_on(w, 2)?;
        }
        w.barrier()?;
        Ok(())
    });
    assert_says(&error, &["Service::pass_on", "clerks.rs:"]);
}

/// Between two nodes a call that takes a worker costs the messages of any other.
pub fn a_call_that_takes_a_worker_takes_two_messages(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 2, |w| {
        let (service, gate) = made(w, 1)?;
        w.barrier()?;
        if w.node() == NodeId(0) {
            service.meet(w, gate, 0)?;
            let before = w.counters();
            for _ in 0..10 {
                service.double_nothing(w)?;
            }
            let after = w.counters();
            let requests = |it: &dhole::Counters| it.sent(dhole::MessageKind::OperationRequest);
            assert_eq!(requests(&after) - requests(&before), 10);
        }
        w.barrier()?;
        Ok(())
    });
}
