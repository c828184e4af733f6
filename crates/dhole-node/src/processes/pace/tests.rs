//! How long somebody is waited for, and who is woken.

use std::cell::Cell;
use std::sync::Arc;

use dhole_net::{Layer, Local};

use super::super::frame::{HEADER, Kind};
use super::*;
use crate::machine::Machine;

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

#[test]
fn a_worker_waits_as_it_is_told() {
    for yields in [0, 7] {
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
            yields,
            park: Duration::from_millis(3),
        });
        machine.serve_until(&[], None, &|| parked.load(Ordering::SeqCst));
        // Once for each yield, and once before it parks.
        assert_eq!(looks.load(Ordering::SeqCst), yields + 1);
    }
}

/// A node of two that waits in these ways, and the other node's port.
fn waiting(how: Waiting, processes: usize) -> (Processes, Local, Arc<AtomicU32>) {
    let mut ports = Local::cluster(2).unwrap();
    let other = ports.pop().unwrap();
    let looks = Arc::<AtomicU32>::default();
    let counted = Counted {
        port: ports.pop().unwrap(),
        looks: Arc::clone(&looks),
        parked: Arc::default(),
    };
    let machine = Processes::new(Box::new(counted), 0).unwrap();
    let machine = machine.neighbours(processes);
    machine.waits(how);
    (machine, other, looks)
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

    fn peek_lazy(&self) -> bool {
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
fn who_is_waited_for_is_roused_once_unless_it_answers() {
    for (answers, done) in [(false, false), (false, true), (true, false), (true, true)] {
        let (machine, others, noted) = noting(false);
        assert!(machine.pace.may_be_patient());
        machine.owes(ASKED, true);
        if answers {
            send_something(&others[0]);
        }
        let has_come = || !answers || machine.pace.heard.load(Ordering::SeqCst);
        let time = Some(Duration::from_millis(1));
        machine.serve_until(&[], time, &|| done && has_come());
        // What came, and did not end the wait, may have been sent before.
        let expected = if answers && done { 0 } else { 1 };
        let notified = lock(&noted.notified);
        assert_eq!(
            *notified,
            [ASKED][..expected],
            "answers {answers}, done {done}"
        );
    }
}

#[test]
fn who_is_waited_for_is_roused_before_the_wait_is_over() {
    for another_says_something in [false, true] {
        let (machine, others, noted) = noting(false);
        machine.owes(ASKED, true);
        // While it spins, which it does for longer than so many looks take.
        const LOOKS: u32 = 1_000_000;
        machine.waits(Waiting {
            spin: Duration::from_secs(60),
            ..Waiting::default()
        });
        let looks = || noted.polls.load(Ordering::SeqCst);
        let is_notified = || !lock(&noted.notified).is_empty();
        let done = || {
            // Again and again: what else comes does not make it wait longer.
            if another_says_something {
                send_something(&others[1]);
            }
            is_notified() || looks() >= LOOKS
        };
        machine.serve_until(&[], None, &done);
        assert!(looks() < LOOKS, "{another_says_something}");
        assert_eq!(*lock(&noted.notified), [ASKED]);
    }
}

#[test]
fn a_wait_that_ended_by_something_else_goes_on_with_rousing() {
    let (machine, _others, noted) = noting(false);
    for waits_again in [true, false] {
        machine.owes(ASKED, true);
        machine.pace.has_heard(ASKED);
        assert!(machine.serve_until(&[], None, &|| true));
        if !waits_again {
            machine.pace.leave();
        }
        machine.serve_until(&[], Some(Duration::ZERO), &|| false);
    }
    assert_eq!(*lock(&noted.notified), [ASKED], "once, of two");
}

#[test]
fn whoever_else_was_waited_for_is_roused_before_it_is_forgotten() {
    for (just_that, asks, heard, notified) in [
        (true, NodeId(2), false, true),
        (true, NodeId(2), true, false),
        (true, ASKED, false, false),
        (false, NodeId(2), false, false),
    ] {
        let (machine, _others, noted) = noting(false);
        machine.owes(ASKED, just_that);
        if heard {
            machine.pace.has_heard(ASKED);
        }
        machine.owes(asks, true);
        assert_eq!(*lock(&noted.notified), [ASKED][..usize::from(notified)]);
    }
}

#[test]
fn whoever_looks_by_itself_is_waited_for_longer_the_next_time() {
    let (machine, _others, _) = noting(false);
    let mut patience = vec![machine.pace.patience()];
    for looks_by_itself in [false, false, false, true, true, true, true, true, false] {
        machine.owes(ASKED, true);
        if looks_by_itself {
            machine.pace.has_heard(ASKED);
        }
        // Whoever waits twice for one answer learns once.
        for _ in 0..2 {
            let time = Some(Duration::from_millis(1));
            let done = machine.serve_until(&[], time, &|| looks_by_itself);
            assert_eq!(done, looks_by_itself);
        }
        machine.pace.leave();
        patience.push(machine.pace.patience());
    }
    // A wait that owes nothing teaches nothing, nor one for something else.
    machine.serve_until(&[], None, &|| true);
    machine.pace.leave();
    machine.owes(ASKED, false);
    machine.pace.has_heard(ASKED);
    machine.serve_until(&[], None, &|| true);
    machine.pace.leave();
    patience.push(machine.pace.patience());
    let nanos = patience.iter().map(|it| it.as_nanos() as u64);
    let expected = [
        10_000, 8_000, 8_000, 8_000, 16_000, 32_000, 40_000, 40_000, 40_000, 20_000, 20_000,
    ];
    assert_eq!(nanos.collect::<Vec<_>>(), expected);
}

#[test]
fn what_else_comes_has_nobody_roused() {
    let (machine, others, noted) = noting(false);
    machine.owes(ASKED, true);
    send_something(&others[1]);
    // So soon nobody has lost patience: at the first look at the clock none has passed.
    let nobody_yet = || lock(&noted.notified).is_empty();
    machine.serve_until(&[], None, &|| match noted.polls.load(Ordering::SeqCst) {
        0 | 1 => false,
        _ => {
            assert!(nobody_yet());
            true
        }
    });
}

#[test]
fn an_answer_that_lay_there_when_its_sender_was_woken_had_come_by_itself() {
    for (lay_there, patience) in [(true, 20_000), (false, 8_000)] {
        let (machine, _others, noted) = noting(false);
        machine.waits(Waiting {
            spin: Duration::from_secs(60),
            ..Waiting::default()
        });
        machine.owes(ASKED, true);
        let looks = Cell::new(0);
        let done = || {
            let notified = !lock(&noted.notified).is_empty();
            looks.set(looks.get() + u32::from(notified));
            looks.get() > u32::from(!lay_there)
        };
        machine.serve_until(&[], None, &done);
        assert_eq!(machine.pace.patience(), Duration::from_nanos(patience));
    }
}

#[test]
fn who_spins_no_longer_than_it_is_patient_learns_all_the_same() {
    let (machine, _others, noted) = noting(false);
    machine.waits(Waiting {
        spin: machine.pace.patience(),
        ..Waiting::default()
    });
    machine.owes(ASKED, true);
    machine.serve_until(&[], Some(Duration::from_millis(1)), &|| false);
    assert_eq!(*lock(&noted.notified), [ASKED]);
    assert_eq!(machine.pace.patience(), LEAST_PATIENCE);
}

#[test]
fn who_may_be_needed_is_roused_where_the_wait_is_long() {
    for (answers, done) in [(false, false), (false, true), (true, false), (true, true)] {
        let (machine, others, noted) = noting(false);
        machine.owes(ASKED, false);
        if answers {
            send_something(&others[0]);
        }
        let time = Some(Duration::from_millis(1));
        machine.serve_until(&[], time, &|| done);
        let notified = lock(&noted.notified);
        assert_eq!(
            *notified,
            [ASKED][..usize::from(!done)],
            "{answers}, {done}"
        );
    }
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
fn who_shares_its_core_looks_more_than_once_before_it_yields() {
    let how = Waiting {
        spin: Duration::from_nanos(1),
        yields: 7,
        park: Duration::from_millis(3),
    };
    let (machine, _other, looks) = waiting(how, usize::MAX);
    machine.serve_until(&[], Some(Duration::from_millis(1)), &|| false);
    // Between two looks at the clock or more, for each yield, and once before it parks.
    let looks = looks.load(Ordering::SeqCst);
    assert_eq!(looks % FEW_LOOKS, 1);
    assert!(looks > 7 * 2 * FEW_LOOKS, "{looks}");
}

#[test]
fn a_worker_that_takes_something_while_it_waits_serves_itself() {
    for processes in [1, usize::MAX] {
        let (machine, other, _) = waiting(Waiting::default(), processes);
        let waits = || machine.pace.waits.load(Ordering::SeqCst);
        let mut frame = [0; HEADER];
        frame[0] = Kind::Message as u8;
        for taken in 1..=3 {
            Port::send(&other, machine.node(), &[&frame]).unwrap();
            assert!(machine.serve_until(&[], None, &|| waits() == 2 * taken));
        }
        // A call that does not wait takes nothing: others may wait for what it leaves.
        machine.pace.enter();
        machine.pace.leave();
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

    fn peek_lazy(&self) -> bool {
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
        machine.serve_until(&[], None, &|| polls() == 3 * GLANCES + 1);
        let glances = match has_come {
            // It is polled whatever it would show once in so many looks.
            true => 3 * (GLANCES - 1),
            false => 3 * GLANCES * (GLANCES - 1),
        };
        assert_eq!(asked.load(Ordering::SeqCst), glances);
    }
}

#[test]
fn a_wait_is_counted_however_it_is_waited() {
    const LONG: Duration = Duration::from_millis(3);
    for (spin, yields) in [(Duration::ZERO, 0), (Duration::ZERO, 7), (LONG, 0)] {
        let how = Waiting {
            spin,
            yields,
            park: LONG,
        };
        let (machine, _other, _) = waiting(how, 1);
        machine.serve_until(&[], Some(LONG), &|| false);
        let waited = Duration::from_nanos(machine.waited(NodeId(0)));
        assert!(waited >= LONG, "{waited:?} of {LONG:?}");
        // One that yields until it is over.
        let looks = std::cell::Cell::new(0);
        machine.serve_until(&[], None, &|| looks.replace(looks.get() + 1) > 3);
        assert!(machine.waited(NodeId(0)) > waited.as_nanos() as u64);
    }
}
