//! Threads of nodes that wait for each other: the machine, case by case.

use std::collections::VecDeque;

use dhole_model::{CallSite, NodeId};
use dhole_protocol::memory::sync::{
    MOST_IN_A_ROW, ThreadAttempt, ThreadEffect, ThreadId, ThreadMessage, ThreadRefusal, ThreadSync,
};
use dhole_protocol::part::NodePart as _;

fn site() -> CallSite {
    CallSite::runtime("a test")
}

fn thread(node: usize, number: u32) -> ThreadId {
    ThreadId::new(NodeId::at(node), NodeId::at(node), number)
}

/// Nodes, and the messages between them.
struct Nodes {
    all: Vec<ThreadSync>,
    sent: VecDeque<(usize, usize, ThreadMessage)>,
    log: Vec<(usize, usize, ThreadMessage)>,
}

impl Nodes {
    fn new(nodes: usize) -> Nodes {
        let node = |me| ThreadSync::new(NodeId::at(me), nodes);
        Nodes {
            all: (0..nodes).map(node).collect(),
            sent: VecDeque::new(),
            log: Vec::new(),
        }
    }

    /// A step of a node, whose messages are delivered later.
    fn at<R>(
        &mut self,
        node: usize,
        f: impl FnOnce(&mut ThreadSync, &mut Vec<ThreadEffect>) -> R,
    ) -> R {
        let mut out = Vec::new();
        let result = f(&mut self.all[node], &mut out);
        for command in out {
            if let ThreadEffect::Send { to, message } = command {
                self.log.push((node, to.index(), message.clone()));
                self.sent.push_back((node, to.index(), message));
            }
        }
        result
    }

    /// Delivers all there is; how many messages there were since the last time.
    fn settle(&mut self) -> usize {
        while let Some((from, to, message)) = self.sent.pop_front() {
            let taken = self.at(to, |node, out| {
                node.deliver(NodeId::at(from), message, 0, out)
            });
            taken.expect("what nodes say is sound");
        }
        std::mem::take(&mut self.log).len()
    }

    fn lock(&mut self, of: ThreadId, key: u64) -> Result<ThreadAttempt, ThreadRefusal> {
        let node = of.node().index();
        self.at(node, |node, out| node.lock(of, key, site(), out))
    }

    fn unlock(&mut self, of: ThreadId, key: u64) {
        let node = of.node().index();
        let unlocked = self.at(node, |node, out| node.unlock(of, key, out));
        unlocked.expect("it holds the lock");
    }

    fn result(&mut self, of: ThreadId) -> Option<Result<u64, ThreadRefusal>> {
        self.all[of.node().index()].result(of)
    }

    /// A lock that this node manages.
    fn key_of(&self, manager: usize) -> u64 {
        let is = |key: &u64| self.all[0].manager_of(*key) == NodeId::at(manager);
        (0..).find(is).expect("a hash of all nodes")
    }
}

#[test]
fn threads_of_a_node_hand_a_lock_on_so_often_while_another_node_waits() {
    let mut nodes = Nodes::new(2);
    let key = nodes.key_of(1);
    let most = u32::from(MOST_IN_A_ROW);
    let mut others: VecDeque<ThreadId> = (1..=2 * most).map(|it| thread(0, it)).collect();
    let (first, remote) = (thread(0, 0), thread(1, 0));
    nodes.lock(first, key).expect("a lock");
    nodes.settle();
    assert_eq!(nodes.result(first), Some(Ok(1)));
    for other in &others {
        assert_eq!(nodes.lock(*other, key), Ok(ThreadAttempt::Waits));
    }
    assert_eq!(nodes.lock(remote, key), Ok(ThreadAttempt::Waits));
    nodes.settle();
    let (mut holder, mut handed_on) = (first, 0);
    loop {
        nodes.unlock(holder, key);
        nodes.settle();
        if nodes.result(remote).is_some() {
            break;
        }
        holder = others.pop_front().expect("a thread that waits");
        assert_eq!(
            nodes.result(holder),
            Some(Ok(1)),
            "in the order in which they came"
        );
        handed_on += 1;
    }
    // The first of the row got the lock from elsewhere.
    assert_eq!(handed_on, most - 1);
    nodes.unlock(remote, key);
    nodes.settle();
    let next = others.pop_front().expect("a thread that waits");
    assert_eq!(nodes.result(next), Some(Ok(1)));
}

#[test]
fn arrivals_of_a_node_go_together_from_the_second_time_on() {
    let mut nodes = Nodes::new(2);
    let key = nodes.key_of(0);
    let round = |nodes: &mut Nodes| {
        for number in 1..=3 {
            for node in 0..2 {
                let own = thread(node, number);
                nodes
                    .at(node, |node, out| node.arrive(own, key, 6, site(), out))
                    .expect("a barrier");
            }
        }
        let messages = nodes.settle();
        let mut first = 0;
        for number in 1..=3 {
            for node in 0..2 {
                // The last one of the manager's node may have gone on at once.
                first += match nodes.result(thread(node, number)) {
                    Some(passed) => passed.expect("it passes"),
                    None => 0,
                };
            }
        }
        assert!(first <= 1);
        messages
    };
    assert_eq!([(); 3].map(|()| round(&mut nodes)), [4, 2, 2]);
    // Where fewer come than the last time, one says so.
    let own = thread(1, 1);
    nodes
        .at(1, |node, out| node.arrive(own, key, 1, site(), out))
        .expect("a barrier");
    assert!(nodes.all[1].has_unsent(key));
    nodes.at(1, |node, out| node.flush(key, out));
    assert_eq!(nodes.settle(), 2);
    assert_eq!(nodes.result(own), Some(Ok(1)));
}

#[test]
fn a_barrier_of_another_number_is_refused() {
    let mut nodes = Nodes::new(2);
    let key = nodes.key_of(0);
    let arrive = |nodes: &mut Nodes, own: ThreadId, parties| {
        let node = own.node().index();
        nodes.at(node, |node, out| {
            node.arrive(own, key, parties, site(), out)
        })
    };
    arrive(&mut nodes, thread(0, 1), 3).expect("a barrier");
    let refused = ThreadRefusal::Parties {
        key,
        parties: 3,
        given: 2,
    };
    assert_eq!(arrive(&mut nodes, thread(0, 2), 2), Err(refused.clone()));
    arrive(&mut nodes, thread(1, 1), 2).expect("it is sent");
    nodes.settle();
    assert_eq!(nodes.result(thread(1, 1)), Some(Err(refused)));
    assert_eq!(nodes.result(thread(0, 1)), None);
}

/// Nodes with room for two keys of each kind, and three keys of node 0.
fn crowded(count: usize) -> (Nodes, [u64; 3]) {
    let mut nodes = Nodes::new(count);
    for (at, node) in nodes.all.iter_mut().enumerate() {
        *node = ThreadSync::with_room(NodeId::at(at), count, 2);
    }
    let is = |key: &u64| nodes.all[0].manager_of(*key) == NodeId::at(0);
    let keys: Vec<u64> = (0..).filter(is).take(3).collect();
    (nodes, keys.try_into().expect("three"))
}

fn is_full<R>(result: &Result<R, ThreadRefusal>) -> bool {
    matches!(result, Err(ThreadRefusal::Full { most: 2, .. }))
}

#[test]
fn a_manager_without_room_for_a_lock_says_so() {
    let (mut nodes, [one, two, three]) = crowded(3);
    for (of, key) in [(thread(1, 1), one), (thread(2, 1), two)] {
        nodes.lock(of, key).expect("a lock");
        nodes.settle();
        assert_eq!(nodes.result(of), Some(Ok(1)));
    }
    let last = thread(2, 2);
    assert_eq!(nodes.lock(last, three), Ok(ThreadAttempt::Waits));
    nodes.settle();
    assert!(is_full(&nodes.result(last).expect("a word")));
    // The third on one node is refused there.
    assert!(is_full(&nodes.lock(thread(2, 3), 1 << 40)));
    assert!(is_full(&nodes.at(0, |node, out| {
        node.try_lock(thread(0, 1), three, site(), out)
    })));
    nodes.unlock(thread(2, 1), two);
    nodes.settle();
    assert!(nodes.all.iter().all(ThreadSync::is_at_rest));
}

#[test]
fn a_manager_without_room_for_a_barrier_refuses_its_own_threads_and_others() {
    let (mut nodes, [one, two, three]) = crowded(3);
    let arrive = |nodes: &mut Nodes, own: ThreadId, key| {
        let node = own.node().index();
        let arrived = nodes.at(node, |node, out| node.arrive(own, key, 2, site(), out));
        nodes.settle();
        let later = nodes.result(own);
        later.map_or(arrived, |result| result.map(ThreadAttempt::Done))
    };
    for (number, key) in [(1, one), (2, two)] {
        assert_eq!(
            arrive(&mut nodes, thread(1, number), key),
            Ok(ThreadAttempt::Waits)
        );
    }
    for own in [thread(0, 1), thread(2, 1)] {
        assert!(is_full(&arrive(&mut nodes, own, three)), "{own}");
    }
    assert_eq!(
        arrive(&mut nodes, thread(0, 2), one),
        Ok(ThreadAttempt::Done(0))
    );
    assert_eq!(
        arrive(&mut nodes, thread(0, 1), three),
        Ok(ThreadAttempt::Waits)
    );
}

#[test]
fn a_manager_without_room_for_a_semaphore_refuses_its_own_threads_and_others() {
    let (mut nodes, [one, two, three]) = crowded(2);
    for (number, key) in [(1, one), (2, two)] {
        let own = thread(1, number);
        let waits = nodes.at(1, |node, out| node.acquire(own, key, false, site(), out));
        assert_eq!(waits, Ok(ThreadAttempt::Waits));
        nodes.settle();
    }
    let own = thread(0, 1);
    let acquired = nodes.at(0, |node, out| node.acquire(own, three, false, site(), out));
    let set = nodes.at(0, |node, out| node.set(own, three, 1, site(), out));
    let posted = nodes.at(0, |node, out| node.post(three, 1, out));
    assert!(is_full(&acquired) && is_full(&set) && is_full(&posted));
    // To try, and to set one to nothing, takes no room.
    let tried = nodes.at(0, |node, out| node.acquire(own, three, true, site(), out));
    assert_eq!(tried, Ok(ThreadAttempt::Done(0)));
    let set = nodes.at(0, |node, out| node.set(own, three, 0, site(), out));
    assert_eq!(set, Ok(ThreadAttempt::Done(1)));
    let other = thread(1, 3);
    let waits = nodes.at(1, |node, out| {
        node.acquire(other, three, false, site(), out)
    });
    assert_eq!(waits, Ok(ThreadAttempt::Waits));
    nodes.settle();
    assert!(is_full(&nodes.result(other).expect("a word")));
}

#[test]
fn what_is_at_rest_takes_no_room() {
    let (mut nodes, _) = crowded(1);
    let own = thread(0, 1);
    for key in 0..1000 {
        nodes.lock(own, key).expect("room for a lock");
        nodes.unlock(own, key);
        let one = ThreadAttempt::Done(1);
        let [arrived, set, taken] = nodes.at(0, |node, out| {
            let arrived = node.arrive(own, key, 1, site(), out);
            let set = node.set(own, key, 1, site(), out);
            [arrived, set, node.acquire(own, key, false, site(), out)]
        });
        assert_eq!([arrived, set, taken], [Ok(one), Ok(one), Ok(one)]);
        nodes
            .at(0, |node, out| node.post(key, 1, out))
            .expect("room for a semaphore");
        nodes
            .at(0, |node, out| node.set(own, key, 0, site(), out))
            .expect("room");
    }
    assert!(nodes.all[0].kept().into_iter().all(|kept| kept <= 2));
}

#[test]
fn a_waiter_gets_the_lock_of_its_condition_though_its_node_forgot_the_lock() {
    let (mut nodes, [lock, condition, _]) = crowded(1);
    let (waiter, signaller) = (thread(0, 1), thread(0, 2));
    nodes.lock(waiter, lock).expect("room for a lock");
    let waits = nodes.at(0, |node, out| {
        node.wait_on(waiter, condition, lock, site(), out)
    });
    assert_eq!(waits, Ok(ThreadAttempt::Waits));
    for other in 1000..1010 {
        nodes.lock(signaller, other).expect("room for a lock");
        nodes.unlock(signaller, other);
    }
    nodes.at(0, |node, out| node.signal(condition, false, out));
    assert!(matches!(nodes.result(waiter), Some(Ok(_))));
    nodes.unlock(waiter, lock);
}

/// Numbers that do not repeat soon.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

fn forged(numbers: &mut Numbers) -> ThreadMessage {
    use ThreadMessage as M;
    let key = numbers.below(4);
    let small = numbers.below(3) as u32;
    let own = thread(numbers.below(3) as usize, numbers.below(3) as u32);
    let is = numbers.below(2) == 0;
    match numbers.below(22) {
        0 => M::Acquire {
            key,
            number: small,
            tries: is,
        },
        1 => M::Forward {
            key,
            asker: own.node(),
            number: small,
            tries: is,
        },
        2 => M::Token { key },
        3 => M::Busy { key, number: small },
        4 => M::Arrive {
            key,
            parties: small,
            count: numbers.below(9000) as u32,
        },
        5 => M::Depart {
            key,
            count: small,
            first: is,
        },
        6 => M::Refuse {
            key,
            parties: small,
            count: small,
        },
        7 => M::Wait {
            condition: key,
            thread: own,
        },
        8 => M::Queued { thread: own },
        9 => M::Signal {
            condition: key,
            all: is,
        },
        10 => M::Signalled { thread: own },
        11 => M::Post {
            key,
            count: u32::MAX,
        },
        12 => M::Set {
            key,
            thread: own,
            count: small,
        },
        13 => M::Take {
            key,
            thread: own,
            tries: is,
        },
        14 => M::Taken {
            thread: own,
            taken: is,
        },
        15 => M::Start {
            thread: own,
            entry: key,
            argument: key,
            by: thread(1, small),
            awaited: is,
        },
        16 => M::Join {
            thread: own,
            by: thread(1, small),
        },
        17 => M::Joined {
            thread: thread(1, small),
            by: own,
            value: key,
            ran: is,
        },
        18 => M::Leave,
        19 => M::NoLock { key, number: small },
        20 => M::NoRoom { thread: own },
        _ => M::Begun {
            thread: thread(1, small),
            by: own,
            begins: is,
        },
    }
}

/// Whatever another node says, this one refuses it, or takes it as if a sound node had said it.
#[test]
fn false_messages_do_no_harm() {
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..2000 {
        let mut numbers = Numbers(seed);
        let mut node = ThreadSync::new(NodeId(0), 3);
        let mut out = Vec::new();
        for _ in 0..60 {
            let own = thread(0, numbers.below(3) as u32);
            let key = numbers.below(4);
            // A thread that waits does nothing else.
            let waits = node
                .describe()
                .iter()
                .any(|it| it.starts_with(&format!("{own} waits")));
            let _result = node.result(own);
            if !waits {
                let _attempt = match numbers.below(6) {
                    0 => node.lock(own, key, site(), &mut out),
                    1 => node.try_lock(own, key, site(), &mut out),
                    2 => node.arrive(own, key, 2, site(), &mut out),
                    3 => node.acquire(own, key, false, site(), &mut out),
                    4 => node.wait_on(own, key, 1, site(), &mut out),
                    _ => node
                        .unlock(own, key, &mut out)
                        .map(|()| ThreadAttempt::Done(0)),
                };
            }
            let from = NodeId(1 + numbers.below(2) as u16);
            match node.deliver(from, forged(&mut numbers), 0, &mut out) {
                Ok(()) => taken += 1,
                // The run ends there.
                Err(_) => {
                    refused += 1;
                    break;
                }
            }
        }
    }
    assert!(
        refused > 1000 && taken > 500,
        "{refused} refused, {taken} taken"
    );
}

#[test]
fn nothing_is_done_for_a_node_that_is_not_in_the_run() {
    let mut nodes = Nodes::new(2);
    let message = ThreadMessage::Join {
        thread: thread(1, 1),
        by: ThreadId::new(NodeId(2), NodeId(0), 1),
    };
    let taken = nodes.at(1, |node, out| node.deliver(NodeId(0), message, 0, out));
    assert!(taken.is_err());
    assert_eq!(nodes.settle(), 0);
}

#[test]
fn a_detached_thread_is_waited_for_by_no_other() {
    let mut nodes = Nodes::new(2);
    let (me, remote) = (thread(0, 0), NodeId::at(1));
    let started = |nodes: &mut Nodes| {
        let started = nodes.at(0, |node, out| node.start(remote, 7, 8, out));
        nodes.settle();
        started.expect("there is such a node")
    };
    let joins = |nodes: &mut Nodes, of: ThreadId| {
        let joined = nodes.at(0, |node, out| node.join(me, of, site(), out));
        assert_eq!(joined, Ok(ThreadAttempt::Waits));
        nodes.settle();
        nodes.result(me)
    };
    let one = started(&mut nodes);
    assert_eq!(nodes.all[1].is_running(one), Some(true));
    assert_eq!(nodes.all[1].detach(one), Ok(()));
    let twice = nodes.all[1].detach(one);
    assert_eq!(twice, Err(ThreadRefusal::Detached(one)));
    let refused = Some(Err(ThreadRefusal::Detached(one)));
    assert_eq!(joins(&mut nodes, one), refused);
    assert_eq!(nodes.all[1].running(), 1);
    nodes.at(1, |node, out| node.ended(one, Some(9), out));
    assert_eq!(
        (nodes.all[1].running(), nodes.all[1].is_running(one)),
        (0, None)
    );
    let gone = Some(Err(ThreadRefusal::NoThread(one)));
    assert_eq!(joins(&mut nodes, one), gone);
    assert_eq!(nodes.all[1].detach(one), Err(ThreadRefusal::NoThread(one)));
    // One that has ended has a value until it is detached.
    let other = started(&mut nodes);
    nodes.at(1, |node, out| node.ended(other, Some(9), out));
    assert_eq!(nodes.all[1].is_running(other), Some(false));
    assert_eq!(nodes.all[1].detach(other), Ok(()));
    let gone = Some(Err(ThreadRefusal::NoThread(other)));
    assert_eq!(joins(&mut nodes, other), gone);
}
