//! Requests to other processes in rare situations: a node's program only calls, ports have no room,
//! or service threads never wake.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use conformance::suite::{
    calls_take_effect_once_and_tell_all_wherever_an_object_is,
    who_asks_until_it_hears_that_something_was_written_sees_it,
};
use conformance::{OverPorts, ports, run};
use dhole::{NodeId, Object, Read, Result, Rows, Worker, Write, on, op};
use dhole_model::Notify;
use dhole_net::{Layer, Port, SendError};
use dhole_protocol::Message;
use dhole_protocol::objects::ObjectsMessage;

/// The message that starts a process comes with the next message: with an answer, if one is
/// requested.
struct Together {
    port: Box<dyn Port>,
    kept: Mutex<Vec<(NodeId, Vec<u8>)>>,
}

impl Layer for Together {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.port
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        let mut kept = self.kept.lock().unwrap();
        Port::poll(&self.port, &mut |from, frame| {
            kept.push((from, frame.to_vec()));
        });
        let given = match kept.last() {
            Some((_, last)) if starts_a_process(last) => kept.len() - 1,
            _ => kept.len(),
        };
        for (from, frame) in kept.drain(..given) {
            let starts = starts_a_process(&frame);
            TOGETHER.fetch_add(usize::from(starts), Ordering::Relaxed);
            take(from, &frame);
        }
        given
    }
}

/// How often what starts a process came together with what came next.
static TOGETHER: AtomicUsize = AtomicUsize::new(0);

/// Whether a frame brings what starts a process. Before its message stand a header, which says at
/// its end how long the others are, and what is told of objects.
fn starts_a_process(frame: &[u8]) -> bool {
    let length = |at: usize| {
        let bytes = frame.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let message = || {
        let begins = 16 + length(8)?;
        Message::decode(frame.get(begins..begins + length(12)?)?).ok()
    };
    matches!(
        message(),
        Some(Message::Objects(about)) if matches!(*about, ObjectsMessage::Spawn { .. })
    )
}

fn together(nodes: usize) -> Vec<Box<dyn Port>> {
    let together = |port| {
        let kept = Mutex::default();
        Box::new(Together { port, kept }) as _
    };
    ports::local(nodes).into_iter().map(together).collect()
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Flag(bool);

#[dhole::object]
impl Flag {
    pub fn raise(&mut self) {
        self.0 = true;
    }

    pub fn is_up(&self) -> bool {
        self.0
    }
}

fn raise(w: &mut Worker<'_>, flag: Object<Flag>) -> Result<()> {
    Ok(flag.raise(w)?)
}

#[test]
fn a_process_begins_though_its_nodes_program_only_asks() {
    let on_ports = OverPorts {
        name: "local",
        make: together,
    };
    for _ in 0..10 {
        let ran = run(&on_ports, 2, 1, |w| {
            let flag: Object<Flag> = w.once(|w| Ok(w.new_object(on(NodeId(0)), Flag(false))?))?;
            if w.node() == NodeId(0) {
                return Ok(w.spawn(NodeId(1), flag, op!(raise))?.join(w)?);
            }
            // Nobody is to hang where it does not begin.
            let asks_since = Instant::now();
            while !flag.is_up(w)? {
                let late = asks_since.elapsed() > Duration::from_secs(10);
                assert!(!late, "the process does not begin");
            }
            Ok(())
        });
        ran.unwrap();
    }
    let together = TOGETHER.load(Ordering::Relaxed);
    assert_eq!(together, 10, "each is to come together with something");
}

/// Of two frames that would go lazily one finds no room.
struct Narrow {
    port: Box<dyn Port>,
    went: AtomicBool,
}

impl Layer for Narrow {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        if notify == Notify::Lazy && self.went.fetch_xor(true, Ordering::Relaxed) {
            REFUSED.store(true, Ordering::Relaxed);
            return Err(SendError::Busy { to });
        }
        Port::send_with(&self.port, to, parts, notify)
    }
}

static REFUSED: AtomicBool = AtomicBool::new(false);

fn narrow(nodes: usize) -> Vec<Box<dyn Port>> {
    let narrow = |port| {
        let went = AtomicBool::new(false);
        Box::new(Narrow { port, went }) as _
    };
    ports::local(nodes).into_iter().map(narrow).collect()
}

#[test]
fn calls_that_find_no_room_at_once_are_made_nevertheless() {
    let on_ports = OverPorts {
        name: "narrow",
        make: narrow,
    };
    calls_take_effect_once_and_tell_all_wherever_an_object_is(&on_ports);
    who_asks_until_it_hears_that_something_was_written_sees_it(&on_ports);
    assert!(REFUSED.load(Ordering::Relaxed));
}

/// A thread that sleeps deeply, while node 0 polls by itself, is not woken before the test is over.
struct Sound(Box<dyn Port>);

static LOOKS: AtomicBool = AtomicBool::new(false);
static SLEEPS: AtomicBool = AtomicBool::new(false);
static ANSWERED: AtomicBool = AtomicBool::new(false);
/// So long another sleep takes.
const SHORT: Duration = Duration::from_millis(1);

impl Layer for Sound {
    type Inner = Box<dyn Port>;

    fn inner(&self) -> &Box<dyn Port> {
        &self.0
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        if !LOOKS.load(Ordering::SeqCst) {
            return Port::park_coarse(&*self.0, at_most.min(SHORT), looks);
        }
        SLEEPS.store(true, Ordering::SeqCst);
        let since = Instant::now();
        while !ANSWERED.load(Ordering::SeqCst) && since.elapsed() < Duration::from_secs(20) {
            // To sleep is what a port does that is asked to: this one lets nothing end it.
            std::thread::sleep(SHORT);
        }
    }
}

/// Node 0's.
fn sound(nodes: usize) -> Vec<Box<dyn Port>> {
    let mut ports = ports::shm(nodes);
    let first = ports.remove(0);
    ports.insert(0, Box::new(Sound(first)));
    ports
}

/// Node 1 reads what node 0 has, and may be writing, which computes and does this all the time.
fn answers_because_it(writes: bool, looks: impl Fn(&mut Worker<'_>, Rows<u64>) + Sync) {
    let on_ports = OverPorts {
        name: "sound",
        make: sound,
    };
    LOOKS.store(false, Ordering::SeqCst);
    SLEEPS.store(false, Ordering::SeqCst);
    ANSWERED.store(false, Ordering::SeqCst);
    let ran = run(&on_ports, 2, 1, |w| {
        let (number, rows) = w.once(|w| Ok((w.alloc(7_u64), w.alloc_rows::<u64>(2, 8))))?;
        let since = Instant::now();
        let late = || since.elapsed() > Duration::from_secs(10);
        if w.node() == NodeId(1) {
            // Until whoever would answer beside the program sleeps.
            while !SLEEPS.load(Ordering::SeqCst) {
                assert!(!late(), "nobody sleeps");
                std::thread::yield_now();
            }
            assert_eq!(number.read(w), 7);
            ANSWERED.store(true, Ordering::SeqCst);
            return Ok(());
        }
        if writes {
            *number.get_mut(w) = 7;
        }
        LOOKS.store(true, Ordering::SeqCst);
        while !ANSWERED.load(Ordering::SeqCst) {
            looks(w, rows);
            assert!(!late(), "nobody answers");
        }
        Ok(())
    });
    ran.unwrap();
}

#[test]
fn who_looks_now_and_then_answers_others() {
    // Row by row.
    answers_because_it(false, |w, rows| {
        let borrowed = w.borrow((Write(rows.row(0)), Read(rows.row(1))));
        let (one, other) = borrowed.expect("two rows");
        one[0] += other[0];
    });
    // By itself, also while it has borrowed something, and what it could write till then.
    for writes in [false, true] {
        answers_because_it(writes, |w, rows| {
            let row = rows.row(1).get(w);
            w.poll().expect("a run that goes on");
            assert_eq!(row[0], 0);
        });
    }
}
