//! What a worker does with its port while it waits, and which nodes it notifies.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use dhole_net::{Layer, Local};
use dhole_node::{Machine, Woken};

use super::super::frame::{HEADER, Kind};
use super::*;

/// No wait here lasts so long, unless what it waits for is never done.
const LIMIT: Option<Duration> = Some(Duration::from_secs(10));

/// Counts how often who waits looks before it parks for the first time.
struct Counted {
    port: Local,
    looks: Arc<AtomicU32>,
    parked: Arc<AtomicBool>,
}

impl Layer for Counted {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
    }

    fn poll(&self, take: &mut dyn FnMut(dhole_model::NodeId, &[u8])) -> usize {
        if !self.parked.load(Ordering::SeqCst) {
            self.looks.fetch_add(1, Ordering::SeqCst);
        }
        Port::poll(&self.port, take)
    }

    fn park(&self, at_most: Duration) {
        self.parked.store(true, Ordering::SeqCst);
        assert!(at_most <= Duration::from_millis(3), "{at_most:?}");
        Port::park(&self.port, at_most);
    }
}

/// How often a worker has polled that spins once and is about to park: once more when it notifies.
const BEFORE_IT_PARKS: u32 = POLLS + 1;

#[test]
fn a_worker_waits_as_it_is_told() {
    // The other node stays: its loss would be something to take.
    let mut ports = Local::cluster(2).unwrap();
    let port = ports.swap_remove(0);
    let (looks, parked) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
    let counted = Counted {
        port,
        looks: Arc::clone(&looks),
        parked: Arc::clone(&parked),
    };
    let machine = Processes::new(Box::new(counted), 0).unwrap();
    machine.waits(Waiting {
        spin: Duration::ZERO,
        sleep: Duration::from_millis(3) / BACKSTOP,
        ..Waiting::default()
    });
    assert!(machine.serve_until(&[], LIMIT, &|| parked.load(Ordering::SeqCst)));
    // Once more after it has said that it parks.
    assert_eq!(looks.load(Ordering::SeqCst), BEFORE_IT_PARKS + 1);
}

/// A node of two that waits in these ways, and the other node's port.
fn waiting(how: Waiting, processes: usize) -> (Processes, Local) {
    let mut ports = Local::cluster(2).unwrap();
    let other = ports.pop().unwrap();
    let machine = Processes::new(Box::new(ports.pop().unwrap()), 0).unwrap();
    let machine = machine.neighbours(processes);
    machine.waits(how);
    (machine, other)
}

/// Loses what is to end a park.
struct Deaf(Local);

impl Layer for Deaf {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.0
    }

    fn unpark(&self) {}
}

#[test]
fn a_wake_whose_doorbell_is_lost_is_counted() {
    for is_deaf in [false, true] {
        let mut ports = Local::cluster(2).unwrap();
        let port = ports.swap_remove(0);
        let port: Box<dyn Port> = match is_deaf {
            true => Box::new(Deaf(port)),
            false => Box::new(port),
        };
        let machine = Processes::new(port, 0).unwrap();
        let machine = match is_deaf {
            true => machine.owing(Duration::from_millis(20)),
            false => machine,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !machine.progress.parks.handover.is_resting() {
                    std::thread::yield_now();
                }
                machine.wake_worker(machine.node());
            });
            let time = Duration::from_secs(10);
            assert_eq!(machine.wait(machine.node(), time), Woken::ByWake);
        });
        let lost = machine.lost_doorbells(machine.node());
        assert_eq!(lost, u64::from(is_deaf));
    }
}

/// What is done with a port beside sending and taking.
#[derive(Default)]
struct Noted {
    polls: AtomicU32,
    notified: Mutex<Vec<NodeId>>,
}

struct Notes {
    port: Local,
    noted: Arc<Noted>,
    has_come: bool,
}

impl Layer for Notes {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.noted.polls.fetch_add(1, Ordering::SeqCst);
        Port::poll(&self.port, take)
    }

    fn peek(&self) -> bool {
        self.has_come
    }

    fn notify(&self, to: NodeId) {
        lock(&self.noted.notified).push(to);
    }
}

/// Node 0 of three with a core to itself, the ports of the others, and what is noted of its
/// own.
fn noting(has_come: bool) -> (Processes, Vec<Local>, Arc<Noted>) {
    let mut others = Local::cluster(3).unwrap();
    let noted: Arc<Noted> = Arc::default();
    let port = others.remove(0);
    let notes = Notes {
        port,
        noted: Arc::clone(&noted),
        has_come,
    };
    let machine = Processes::new(Box::new(notes), 0).unwrap();
    (machine.neighbours(1), others, noted)
}

fn send_something(from: &Local) {
    let mut frame = [0; HEADER];
    frame[0] = Kind::Message as u8;
    Port::send(from, NodeId(0), &[&frame]).unwrap();
}

const ASKED: NodeId = NodeId(1);

#[test]
fn a_node_that_was_asked_is_notified_once_unless_it_answers() {
    for answers in [false, true] {
        let (machine, _others, noted) = noting(false);
        machine.progress.asks(ASKED);
        let polled = || noted.polls.load(Ordering::SeqCst) > 0;
        let time = Some(Duration::from_millis(1));
        let done = machine.serve_until(&[], time, &|| answers && polled());
        assert_eq!(done, answers);
        let expected = usize::from(!answers);
        assert_eq!(*lock(&noted.notified), [ASKED][..expected], "{answers}");
    }
}

#[test]
fn a_node_that_was_asked_is_notified_before_the_wait_is_over() {
    for another_says_something in [false, true] {
        let (machine, others, noted) = noting(false);
        machine.progress.asks(ASKED);
        const POLLS: u32 = 1_000_000;
        let polls = || noted.polls.load(Ordering::SeqCst);
        let is_notified = || !lock(&noted.notified).is_empty();
        let done = || {
            // Again and again: what else comes does not make it wait longer.
            if another_says_something {
                send_something(&others[1]);
            }
            is_notified() || polls() >= POLLS
        };
        assert!(machine.serve_until(&[], LIMIT, &done));
        assert!(polls() < POLLS, "{another_says_something}");
        assert_eq!(*lock(&noted.notified), [ASKED]);
    }
}

#[test]
fn a_worker_that_waits_again_notifies_unless_it_computed_meanwhile() {
    let (machine, _others, noted) = noting(false);
    for waits_again in [true, false] {
        machine.progress.asks(ASKED);
        assert!(machine.serve_until(&[], None, &|| true));
        if !waits_again {
            machine.progress.leave();
        }
        machine.serve_until(&[], Some(Duration::ZERO), &|| false);
    }
    assert_eq!(*lock(&noted.notified), [ASKED], "once, of two");
}

#[test]
fn all_nodes_to_which_it_is_owed_are_notified_of_what_was_started_too() {
    let (machine, _others, noted) = noting(false);
    assert!(!machine.progress.starts(NodeId(2)), "it does not wait yet");
    machine.progress.leave();
    machine.progress.enter();
    machine.progress.asks(ASKED);
    let notified = || lock(&noted.notified).clone();
    // Of what another thread sends while it waits, that thread notifies; until then it does.
    let is_settled = || machine.progress.starts(NodeId(2));
    let done = || notified().len() == 2 && is_settled();
    assert!(machine.serve_until(&[], LIMIT, &done));
    assert_eq!(notified(), [ASKED, NodeId(2)]);
    assert!(!is_settled(), "the wait is over");
}

#[test]
fn a_node_whose_processes_take_turns_notifies_at_once() {
    for several in [false, true] {
        let (machine, _others, noted) = noting(false);
        if several {
            machine.progress.has_several(&*machine.port);
        }
        machine.progress.asks(ASKED);
        let lasts = machine.progress.patience_lasts(&Waiting::default());
        assert_eq!(lasts.is_zero(), several);
        // It lets another go on.
        machine.notify_deferred();
        assert_eq!(*lock(&noted.notified), [ASKED]);
    }
}

#[test]
fn a_node_that_answers_by_itself_is_waited_for_longer_the_next_time() {
    let (machine, _others, _) = noting(false);
    let mut patience = vec![machine.progress.patience().doublings()];
    for answers in [false, true, true, true, false] {
        machine.progress.asks(ASKED);
        // A worker that waits twice for one answer learns once.
        for _ in 0..2 {
            let polls = Cell::new(0);
            let time = Some(Duration::from_millis(1));
            let done = machine.serve_until(&[], time, &|| {
                polls.set(polls.get() + 1);
                answers && polls.get() > 1
            });
            assert_eq!(done, answers);
        }
        machine.progress.leave();
        patience.push(machine.progress.patience().doublings());
    }
    // A wait that owes nothing teaches nothing.
    machine.serve_until(&[], Some(Duration::from_millis(1)), &|| false);
    patience.push(machine.progress.patience().doublings());
    assert_eq!(patience, [0, 0, 1, 2, 2, 1, 1]);
}

#[test]
fn who_looks_takes_what_was_sent_lazily() {
    for has_come in [false, true] {
        let (machine, _others, noted) = noting(has_come);
        Machine::look(&machine, &[], machine.node());
        assert_eq!(noted.polls.load(Ordering::SeqCst), u32::from(has_come));
    }
}

#[test]
fn a_worker_that_takes_something_while_it_waits_serves_itself() {
    for processes in [1, usize::MAX] {
        let (machine, other) = waiting(Waiting::default(), processes);
        let waits = || machine.progress.waits.load(Ordering::SeqCst);
        let mut frame = [0; HEADER];
        frame[0] = Kind::Message as u8;
        for taken in 1..=3 {
            Port::send(&other, machine.node(), &[&frame]).unwrap();
            assert!(machine.serve_until(&[], LIMIT, &|| waits() == 2 * taken));
        }
        // A call that does not wait takes nothing: others may wait for what it leaves.
        machine.progress.enter();
        machine.progress.leave();
        assert_eq!(waits(), 6);
    }
}

/// Shows whether something has come, and counts how often it is asked, and polled.
struct Shows {
    port: Local,
    has_come: bool,
    asked: Arc<AtomicU32>,
    polled: Arc<AtomicU32>,
}

impl Layer for Shows {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.port
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.polled.fetch_add(1, Ordering::SeqCst);
        Port::poll(&self.port, take)
    }

    fn peek(&self) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.has_come
    }

    fn can_peek(&self) -> bool {
        true
    }
}

#[test]
fn a_port_that_can_peek_is_polled_for_what_it_shows_and_seldom_else() {
    for has_come in [false, true] {
        let mut ports = Local::cluster(2).unwrap();
        let (asked, polled) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
        let shows = Shows {
            port: ports.swap_remove(0),
            has_come,
            asked: Arc::clone(&asked),
            polled: Arc::clone(&polled),
        };
        let machine = Processes::new(Box::new(shows), 0).unwrap().neighbours(1);
        machine.waits(Waiting {
            spin: Duration::from_secs(3600),
            ..Waiting::default()
        });
        let polls = || polled.load(Ordering::SeqCst);
        assert!(machine.serve_until(&[], LIMIT, &|| polls() == 4));
        let peeks = if has_come { 3 } else { 3 * (PEEKS - 1) };
        assert_eq!(asked.load(Ordering::SeqCst), peeks);
    }
}

#[test]
fn a_wait_is_counted_however_it_is_waited() {
    const LONG: Duration = Duration::from_millis(3);
    for spin in [Duration::ZERO, LONG / 3, LONG] {
        let how = Waiting {
            spin,
            ..Waiting::default()
        };
        let (machine, _other) = waiting(how, 1);
        machine.serve_until(&[], Some(LONG), &|| false);
        let waited = Duration::from_nanos(machine.waited(NodeId(0)));
        assert!(waited >= LONG, "{waited:?} of {LONG:?}");
        // One that yields until it is over.
        let looks = Cell::new(0);
        machine.serve_until(&[], None, &|| looks.replace(looks.get() + 1) > 3);
        assert!(machine.waited(NodeId(0)) > waited.as_nanos() as u64);
    }
}
