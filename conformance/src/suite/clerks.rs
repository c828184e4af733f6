//! Operations that take a worker.

use dhole::{
    Concurrency, NodeId, Object, ObjectError, Ref, Refusal, Result, Worker, on, replicated,
};
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

    /// Starts a call of an object that its caller holds, and awaits it.
    pub fn start_again(&mut self, w: &mut Worker<'_>, again: Object<Service>) -> Result<usize> {
        Ok(again.start_served(w)?.wait(w)?)
    }

    /// A process of the operation calls the object that the operation holds.
    pub fn spawn_again(&mut self, w: &mut Worker<'_>, again: Object<Service>) -> Result<usize> {
        let serves = dhole::op!(|w: &mut Worker<'_>, again: Object<Service>| Ok(again.served(w)?));
        let me = w.node();
        Ok(w.spawn(on(me), again, serves)?.join(w)?)
    }

    pub fn meet_and_pass(&mut self, w: &mut Worker<'_>, gate: Object<Gate>) -> Result<usize> {
        gate.arrive(w)?;
        gate.pass(w, 2)?;
        match self.next {
            Some(next) => Ok(next.pass_on(w, 0)?),
            None => Ok(0),
        }
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

/// Two services that lead to each other, on nodes 1 and 2.
fn circle(w: &mut Worker<'_>) -> Result<(Object<Service>, Object<Service>)> {
    w.once(|w| {
        let first = Service::named_in(w, on(NodeId(1)), "first")?;
        let second = Service::named_in(w, on(NodeId(2)), "second")?;
        first.lead_to(w, second)?;
        second.lead_to(w, first)?;
        Ok((first, second))
    })
}

/// A call that comes back to an object which its own caller holds is refused, with each link by
/// name and line. The objects serve on.
pub fn a_call_that_would_wait_for_its_own_caller_is_refused(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 3, |w| {
        let (first, second) = circle(w)?;
        if w.node() == NodeId(0) {
            assert_eq!(first.pass_on(w, 1)?, 1);
            assert_eq!(second.pass_on(w, 1)?, 1);
            let refused = cause(first.pass_on(w, 2)).to_string();
            let (_, circle) = refused
                .split_once("wait for its own caller: ")
                .expect(&refused);
            assert_eq!(
                circle.matches("Service::pass_on of object").count(),
                3,
                "{circle}"
            );
            assert_eq!(circle.matches("clerks.rs:").count(), 2, "{circle}");
            let started = cause(first.start_again(w, first)).to_string();
            assert!(started.contains("wait for its own caller"), "{started}");
            let spawned = cause(first.spawn_again(w, first)).to_string();
            assert!(spawned.contains("wait for its own caller"), "{spawned}");
            assert_eq!(first.pass_on(w, 1)?, 1);
            assert_eq!(second.served(w)?, 1);
        }
        w.barrier()?;
        Ok(())
    });
}

/// Two callers, each of whose calls holds the object that the other one wants.
pub fn services_that_wait_for_each_other_are_an_error(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    let error = fail(on_, 3, |w| {
        let (first, second) = circle(w)?;
        let gate = w.once(|w| Ok(w.new_object(on(NodeId(0)), Gate::default())?))?;
        match w.node().0 {
            0 => drop(first.meet_and_pass(w, gate)?),
            1 => drop(second.meet_and_pass(w, gate)?),
            _ => {}
        }
        w.barrier()?;
        Ok(())
    });
    assert_says(&error, &["Service::pass_on", "clerks.rs:"]);
}

/// Of the objects of a sequential clerk one is used at a time, also those without a worker.
pub fn a_sequential_clerk_admits_one_call_at_a_time(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    succeed(on_, 3, |w| {
        let clerk = w.once(|w| Ok(w.new_clerk(NodeId(1), Concurrency::Sequential)?))?;
        let (all, gate) = w.once(|w| {
            let one = Service::named_in(w, clerk, "one")?;
            let other = Service::named_in(w, clerk, "other")?;
            one.lead_to(w, other)?;
            Ok(((one, other), w.new_object(on(NodeId(0)), Gate::default())?))
        })?;
        let plain = w.once(|w| Ok(w.new_object(clerk, Gate::default())?))?;
        for _ in 0..4 {
            all.0.serve(w, gate, "one")?;
            all.1.serve(w, gate, "other")?;
            plain.enter(w)?;
        }
        w.barrier()?;
        assert_eq!(gate.most(w)?, 1);
        assert_eq!(plain.most(w)?, 3 * 4);
        assert_eq!((all.0.served(w)?, all.1.served(w)?), (1 + 3 * 4, 1 + 3 * 4));
        w.barrier()?;
        // One would wait for the other in its own clerk.
        let refused = cause(all.0.pass_on(w, 1)).to_string();
        let (_, circle) = refused
            .split_once("wait for its own caller: ")
            .expect(&refused);
        assert_eq!(
            circle.matches("Service::pass_on of object").count(),
            2,
            "{circle}"
        );
        w.barrier()?;
        Ok(())
    });
}

/// Readers that wait for each other go on if their clerk admits them all, and wait for ever if it
/// admits one less.
pub fn a_clerk_admits_as_many_readers_as_it_says(on_: &dyn Platform) {
    if keeps_pages(on_) {
        return; // no processes there
    }
    let meet = |most: u32| {
        move |w: &mut Worker<'_>| {
            let clerk = w.once(|w| Ok(w.new_clerk(NodeId(1), Concurrency::AtMost(most))?))?;
            let (service, gate) = w.once(|w| {
                let service = Service::named_in(w, clerk, "first")?;
                Ok((service, w.new_object(on(NodeId(0)), Gate::default())?))
            })?;
            assert_eq!(service.meet(w, gate, 3)?, 1);
            service.serve(w, gate, "alone")?;
            w.barrier()?;
            assert_eq!(gate.most(w)?, 1);
            w.barrier()?;
            Ok(())
        }
    };
    succeed(on_, 3, meet(3));
    let error = fail(on_, 3, meet(2));
    assert_says(&error, &["Gate::pass", "clerks.rs:"]);
}

/// A clerk is on a node of the run and admits calls. An object leaves it by moving.
pub fn a_clerk_that_cannot_be_is_refused_and_an_object_leaves_its_clerk(on_: &dyn Platform) {
    succeed(on_, 2, |w| {
        let nowhere = cause(w.new_clerk(NodeId(7), Concurrency::Sequential));
        assert!(
            nowhere.to_string().contains("not one of 2 nodes"),
            "{nowhere}"
        );
        let none = cause(w.new_clerk(NodeId(1), Concurrency::AtMost(0)));
        assert!(none.to_string().contains("no call"), "{none}");
        let clerk = w.once(|w| Ok(w.new_clerk(NodeId(1), Concurrency::Sequential)?))?;
        let gate = w.once(|w| Ok(w.new_object(clerk, Gate::default())?))?;
        gate.arrive(w)?;
        gate.pass(w, 2)?;
        let back = cause(Object::strategy(&gate, w, clerk.into()));
        assert!(back.to_string().contains("on(node 1)"), "{back}");
        w.barrier()?;
        if w.node() == NodeId(0) {
            Object::strategy(&gate, w, on(NodeId(0)))?;
        }
        w.barrier()?;
        gate.arrive(w)?;
        gate.pass(w, 4)?;
        w.barrier()?;
        Ok(())
    });
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
