//! One order for all, on a network where messages overtake each other.

use dhole::sim::Settings;
use dhole::{
    Config, Lock, NodeId, Object, Ref, RwLock, Semaphore, Strategy, Worker, on, replicated,
};
use serde::{Deserialize, Serialize};

/// A list of words, which tells in which order they were said; so much ballast that the sequencer
/// does not forward its state.
#[derive(Serialize, Deserialize)]
struct Record {
    said: Vec<u32>,
    ballast: Vec<u8>,
}

impl Record {
    fn of(bytes: usize) -> Record {
        Record {
            said: Vec::new(),
            ballast: vec![7; bytes],
        }
    }
}

#[dhole::object]
impl Record {
    pub fn say(&mut self, word: u32) {
        self.said.push(word);
    }

    pub fn said(&self) -> Vec<u32> {
        self.said.clone()
    }

    pub fn length(&self) -> usize {
        self.said.len()
    }

    #[when(self.said.len() >= *least)]
    pub fn at_least(&self, least: usize) -> usize {
        self.said.len()
    }
}

/// A network that lets messages overtake each other.
fn jitter(nodes: usize, seed: u64) -> Settings {
    let mut settings = Settings::fixed_cost(nodes);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings
}

fn places(nodes: usize) -> Vec<Strategy> {
    let nodes = (0..nodes).map(|node| on(NodeId::at(node)));
    let replicas = std::iter::repeat_n(replicated(), nodes.len());
    nodes.chain(replicas).collect()
}

/// All speak, several words under way at a time, while somebody sends the record elsewhere now and
/// then. In the end each reads its own replica.
fn speaking(w: &mut Worker<'_>) -> dhole::Result<()> {
    const EACH: u32 = 16;
    let record: Object<Record> = w.once(|w| Ok(w.new_object(on(NodeId(1)), Record::of(6000))?))?;
    let places = places(w.nodes());
    let (me, mut last) = (w.node().index() as u32, 0);
    for word in 0..EACH / 2 {
        let first = record.start_say(w, 1000 * me + 2 * word)?;
        if w.random().is_multiple_of(3) {
            let place = places[w.random() as usize % places.len()];
            Object::strategy(&record, w, place)?;
        }
        let second = record.start_say(w, 1000 * me + 2 * word + 1)?;
        first.wait(w)?;
        second.wait(w)?;
        let length = record.length(w)?;
        assert!(length > last, "{length} after {last}");
        last = length;
        w.work(w.random() % 50_000);
    }
    let all = EACH as usize * w.nodes();
    assert_eq!(record.at_least(w, all)?, all);
    Object::strategy(&record, w, replicated())?;
    let mut said = record.said(w)?;
    Object::compare(&record, w)?;
    said.sort_unstable();
    said.dedup();
    assert_eq!(said.len(), all);
    Ok(())
}

#[test]
fn replicas_agree_when_ordered_messages_come_together() {
    for seed in 0..300 {
        let run = Config::nodes(4).simulate(jitter(4, seed), speaking);
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Says what comes next in a record of which each node has a replica, and reads the own replica
/// before and after: nothing is missing of what others said who had the turn before.
fn in_turn(w: &mut Worker<'_>, record: Object<Record>) -> dhole::Result<()> {
    let before = record.length(w)?;
    record.say(w, before as u32)?;
    let said = record.said(w)?;
    assert_eq!(said.len(), before + 1, "a replica was behind");
    assert_eq!(said.last(), Some(&(before as u32)));
    Ok(())
}

/// Runs a program that is given a replicated record, under many schedules.
fn sound(program: impl Fn(&mut Worker<'_>, Object<Record>) -> dhole::Result<()> + Sync) {
    for seed in 0..100 {
        let run = Config::nodes(3).simulate(jitter(3, seed), |w: &mut Worker<'_>| {
            let record = w.once(|w| Ok(w.new_object(replicated(), Record::of(0))?))?;
            w.barrier()?;
            program(w, record)
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn a_replica_is_not_behind_a_lock() {
    sound(|w, record| {
        for _ in 0..8 {
            let lock = Lock::numbered(1);
            lock.with(w, |w| in_turn(w, record))?;
        }
        Ok(())
    });
}

#[test]
fn a_replica_is_not_behind_a_gate() {
    sound(|w, record| {
        for _ in 0..8 {
            let semaphore = Semaphore::numbered(1, 1);
            semaphore.acquire(w)?;
            in_turn(w, record)?;
            semaphore.release(w)?;
        }
        Ok(())
    });
    sound(|w, record| {
        for _ in 0..8 {
            RwLock::numbered(2).with_write(w, |w| in_turn(w, record))?;
        }
        Ok(())
    });
}

#[test]
fn a_replica_is_not_behind_a_barrier() {
    sound(|w, record| {
        for round in 0..12 {
            if round % w.nodes() == w.node().index() {
                // The others have arrived.
                w.work(1_000_000);
                record.say(w, round as u32)?;
            }
            w.barrier()?;
            assert_eq!(record.length(w)?, round + 1, "a replica was behind");
            w.barrier()?;
        }
        Ok(())
    });
}

/// What each node has written last, as it says itself.
#[derive(Serialize, Deserialize, Default)]
struct Board {
    written: Vec<u64>,
}

#[dhole::object]
impl Board {
    pub fn tell(&mut self, node: usize, number: u64) {
        self.written.resize(self.written.len().max(node + 1), 0);
        self.written[node] = number;
    }

    pub fn told(&self) -> Vec<u64> {
        self.written.clone()
    }
}

/// Each node writes objects without operations and says so on boards, one of which wanders. Whoever
/// reads a board sees what was written before.
fn telling(w: &mut Worker<'_>) -> dhole::Result<()> {
    let nodes = w.nodes();
    let (refs, boards): (Vec<Ref<u64>>, [Object<Board>; 2]) = {
        let all = w.once(|w| Ok(w.alloc_range(4 * nodes, |_| 0_u64)))?;
        let wandering = w.once(|w| Ok(w.new_object(replicated(), Board::default())?))?;
        let staying = w.once(|w| Ok(w.new_object(replicated(), Board::default())?))?;
        (all.iter().collect(), [wandering, staying])
    };
    let (me, places) = (w.node().index(), places(nodes));
    for number in 1..=24 {
        *refs[4 * me + number as usize % 4].get_mut(w) = number;
        let board = boards[w.random() as usize % 2];
        board.tell(w, me, number)?;
        if w.random().is_multiple_of(3) {
            let place = places[w.random() as usize % places.len()];
            Object::strategy(&boards[0], w, place)?;
        }
        let board = boards[w.random() as usize % 2];
        for (node, told) in board.told(w)?.into_iter().enumerate() {
            for number in told.saturating_sub(3).max(1)..=told {
                let read = refs[4 * node + number as usize % 4].read(w);
                assert!(read >= number, "node {node} wrote {number}, here is {read}");
            }
        }
        w.work(w.random() % 30_000);
    }
    Ok(())
}

#[test]
fn what_was_written_before_an_operation_is_seen_after_it() {
    for seed in 0..300 {
        let run = Config::nodes(3).simulate(jitter(3, seed), telling);
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
