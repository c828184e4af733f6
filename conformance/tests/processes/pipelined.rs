//! Calls between processes that are started while the executing node is held up. So they wait for
//! each other and form batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use conformance::{OverPorts, ports};
use dhole::{NodeId, Object, ObjectError, Pending, Ref, Refusal, Result, Worker, on, op};
use dhole_model::ObjectCounters;
use dhole_protocol::objects::MOST_CALLS;
use serde::{Deserialize, Serialize, Serializer};

const LOCAL: OverPorts = OverPorts {
    name: "local",
    make: ports::local,
};

/// What a worker has started, if it could.
type Started = std::result::Result<Vec<Pending<(usize, u64)>>, ObjectError>;

/// Node 0 is held up where it executes an operation, until it may go on.
static HELD: AtomicBool = AtomicBool::new(false);
static GO_ON: AtomicBool = AtomicBool::new(false);
/// One of these tests runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Words are numbers, of which none is 13.
#[derive(Deserialize, Default, Debug)]
struct Word(u64);

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let written = to.serialize_u64(self.0);
        assert_ne!(self.0, 13, "an unlucky number");
        written
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Said(Vec<u64>);

#[dhole::object]
impl Said {
    pub fn say(&mut self, word: Word) -> (usize, u64) {
        self.0.push(word.0);
        (self.0.len(), word.0)
    }

    pub fn all(&self) -> Vec<u64> {
        self.0.clone()
    }

    #[when(self.0.len() >= *least)]
    pub fn at_least(&self, least: usize) -> usize {
        self.0.len()
    }

    /// A word, whatever it is, as what cannot be written if it is unlucky.
    pub fn nth(&self, place: usize) -> Word {
        Word(self.0[place])
    }

    /// Says what cannot be told.
    pub fn spoil(&mut self) -> Word {
        Word(13)
    }

    pub fn hold_up(&self) {
        HELD.store(true, Ordering::SeqCst);
        while !GO_ON.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

/// Node 1, and others but node 0, run `program` with an object of node 0, which is held up until
/// one of them says that it may go on.
fn while_held_up(
    nodes: usize,
    program: impl Fn(&mut Worker<'_>, Object<Said>) -> Result<()> + Sync,
) {
    while_held_up_with(nodes, |w, said, _| program(w, said));
}

/// The same, with a number of which every node has a copy.
fn while_held_up_with(
    nodes: usize,
    program: impl Fn(&mut Worker<'_>, Object<Said>, Ref<u64>) -> Result<()> + Sync,
) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    HELD.store(false, Ordering::SeqCst);
    GO_ON.store(false, Ordering::SeqCst);
    let run = conformance::run(&LOCAL, nodes, 1, |w| {
        let (said, number) = w.once(|w| {
            let said = w.new_object(on(NodeId(0)), Said::default())?;
            Ok((said, w.alloc(0_u64)))
        })?;
        assert_eq!(number.read(w), 0);
        w.barrier()?;
        if w.node() == NodeId(0) {
            said.hold_up(w)?;
        } else {
            while !HELD.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let _over = Over(&GO_ON);
            program(w, said, number)?;
        }
        Ok(w.barrier()?)
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}

fn go_on() {
    GO_ON.store(true, Ordering::SeqCst);
}

/// Says that something is over, however it ends: who waits for it is not to hang.
struct Over(&'static AtomicBool);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn each_call_has_its_own_result_however_many_wait() {
    while_held_up(2, |w, said| {
        let mut place = 0;
        for words in [300, 1000, 1000] {
            let started: Started = (0..words)
                .map(|word| said.start_say(w, Word(100 + word)))
                .collect();
            let later = said.start_at_least(w, place + words as usize)?;
            go_on();
            for (word, pending) in (100..).zip(started?) {
                place += 1;
                assert_eq!(pending.wait(w)?, (place, word));
            }
            assert_eq!(later.wait(w)?, place);
        }
        let used: Vec<ObjectCounters> = w.counters().by_object.into_values().collect();
        assert_eq!(
            used.iter()
                .map(|it| (it.reads, it.writes))
                .collect::<Vec<_>>(),
            [(3, 2300)]
        );
        Ok(())
    });
}

#[test]
fn no_more_calls_wait_than_may() {
    while_held_up(2, |w, said| {
        let started: Started = (0..MOST_CALLS as u64)
            .map(|word| said.start_say(w, Word(100 + word)))
            .collect();
        let error = said.start_say(w, Word(1)).unwrap_err().to_string();
        assert!(
            error.contains("1024 operations that this node has started are under way"),
            "{error}"
        );
        go_on();
        for (word, pending) in (100..).zip(started?) {
            assert_eq!(pending.wait(w)?.1, word);
        }
        Ok(())
    });
}

#[test]
fn a_call_that_joins_others_tells_what_was_written_before_it() {
    static READ: AtomicBool = AtomicBool::new(false);
    while_held_up_with(3, |w, said, number| {
        if w.node() == NodeId(2) {
            let _over = Over(&READ);
            said.at_least(w, 3)?;
            assert_eq!(number.read(w), 5);
            return Ok(());
        }
        let before = [0, 1].map(|word| said.start_say(w, Word(word)));
        *number.get_mut(w) = 5;
        let after = said.start_say(w, Word(2))?;
        go_on();
        // Nothing else is to tell it.
        while !READ.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        for pending in before {
            pending?.wait(w)?;
        }
        after.wait(w)?;
        Ok(())
    });
}

#[test]
fn arguments_that_panic_while_they_are_written_leave_the_calls_beside_them_whole() {
    while_held_up(2, |w, said| {
        let mut started = Vec::new();
        for word in 10..20 {
            let start = || said.start_say(w, Word(word));
            match catch_unwind(AssertUnwindSafe(start)) {
                Ok(pending) => started.push((word, pending?)),
                Err(_) => assert_eq!(word, 13),
            }
        }
        go_on();
        for (place, (word, pending)) in (1..).zip(started) {
            assert_eq!(pending.wait(w)?, (place, word));
        }
        Ok(())
    });
}

#[test]
fn a_result_that_panics_while_it_is_written_leaves_those_beside_it_whole() {
    while_held_up(2, |w, said| {
        let words = [11, 12, 13, 14].map(|word| word * 13);
        let begun = words.map(|word| said.start_say(w, Word(word)));
        let asked = [0, 4, 3].map(|place| said.start_nth(w, place));
        let spoils = said.start_spoil(w)?;
        let after = said.start_say(w, Word(1))?;
        go_on();
        for (place, (pending, word)) in (1..).zip(begun.into_iter().zip(words)) {
            assert_eq!(pending?.wait(w)?, (place, word));
        }
        let [first, none, last] = asked;
        assert_eq!(first?.wait(w)?.0, words[0]);
        let poisoned = |error: ObjectError, words: &str| {
            let ObjectError::Refused { cause, .. } = &error else {
                panic!("{error}");
            };
            assert!(matches!(cause, Refusal::Poisoned { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        };
        poisoned(none?.wait(w).unwrap_err(), "out of bounds");
        assert_eq!(last?.wait(w)?.0, words[3]);
        poisoned(spoils.wait(w).unwrap_err(), "an unlucky number");
        poisoned(after.wait(w).unwrap_err(), "an unlucky number");
        Ok(())
    });
}

#[test]
fn an_operation_started_elsewhere_is_waited_for_there_alone() {
    static HANDED: Mutex<Vec<Pending<(usize, u64)>>> = Mutex::new(Vec::new());
    while_held_up(3, |w, said| {
        let word = 100 * u64::from(w.node().0);
        let started: Started = (0..20)
            .map(|more| said.start_say(w, Word(word + more)))
            .collect();
        if w.node() == NodeId(1) {
            HANDED.lock().unwrap().extend(started?);
            go_on();
            return Ok(());
        }
        let last = {
            let mut own = started?;
            own.pop().unwrap().wait(w)?;
            own
        };
        while HANDED.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        for pending in HANDED.lock().unwrap().drain(..) {
            let error = pending.wait(w).unwrap_err().to_string();
            assert!(
                error.contains("another node's worker has started it"),
                "{error}"
            );
        }
        for (word, pending) in (word..).zip(last) {
            assert_eq!(pending.wait(w)?.1, word);
        }
        Ok(())
    });
}

/// Says something to another object, after which node 0 may go on.
fn says(w: &mut Worker<'_>, said: Object<Said>) -> Result<()> {
    assert_eq!(said.say(w, Word(9))?.1, 9);
    go_on();
    Ok(())
}

#[test]
fn a_call_keeps_its_arguments_while_a_process_of_its_node_makes_others() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    HELD.store(false, Ordering::SeqCst);
    GO_ON.store(false, Ordering::SeqCst);
    let run = conformance::run(&LOCAL, 3, 1, |w| {
        let [here, gone, there] = w.once(|w| {
            let mut new = |node| w.new_object(on(NodeId(node)), Said::default());
            Ok([new(0)?, new(2)?, new(2)?])
        })?;
        // Everybody knows where this one is.
        there.at_least(w, 0)?;
        w.barrier()?;
        match w.node() {
            NodeId(0) => here.hold_up(w)?,
            NodeId(1) => {
                while !HELD.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                let _over = Over(&GO_ON);
                let process = w.spawn(on(NodeId(1)), there, op!(says))?;
                // Node 0 is asked where this one is, and says so only when the process is over.
                assert_eq!(gone.say(w, Word(7))?, (1, 7));
                process.join(w)?;
            }
            _ => {}
        }
        w.barrier()?;
        assert_eq!((gone.all(w)?, there.all(w)?), (vec![7], vec![9]));
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
}
