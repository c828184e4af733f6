//! The classics of waiting, through guards, over many seeds.

use std::collections::VecDeque;

use dhole::sim::Settings;
use dhole::{Config, NodeId, Object, ObjectError, Strategy, Worker, on, replicated};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Buffer {
    items: VecDeque<u32>,
    most: usize,
}

const ROOM: usize = 3;

#[dhole::object]
impl Buffer {
    #[when(self.items.len() < ROOM)]
    pub fn put(&mut self, item: u32) {
        self.items.push_back(item);
        self.most = self.most.max(self.items.len());
    }

    /// A mistake: it does not look whether there is room.
    pub fn put_anyway(&mut self, item: u32) {
        self.items.push_back(item);
        self.most = self.most.max(self.items.len());
    }

    #[when(!self.items.is_empty())]
    pub fn get(&mut self) -> u32 {
        self.items.pop_front().unwrap_or(u32::MAX)
    }

    pub fn most(&self) -> usize {
        self.most
    }
}

const EACH: u32 = 12;

/// Half of the nodes produce and half consume; what each consumer gets of one producer is in order.
fn bounded_buffer(
    w: &mut Worker<'_>,
    strategy: Strategy,
    put: fn(&Object<Buffer>, &mut Worker<'_>, u32) -> Result<(), ObjectError>,
) -> dhole::Result<usize> {
    let buffer: Object<Buffer> = w.once(|w| Ok(w.new_object(strategy, Buffer::default())?))?;
    let me = w.node().0 as u32;
    if me.is_multiple_of(2) {
        for item in 0..EACH {
            put(&buffer, w, me * 1000 + item)?;
            w.work(w.random() % 3000);
        }
    } else {
        let mut last = [None; 8];
        for _ in 0..EACH {
            let item = buffer.get(w)?;
            let (from, number) = ((item / 1000) as usize, item % 1000);
            assert!(last[from] < Some(number), "{item} after {last:?}");
            last[from] = Some(number);
            w.work(w.random() % 3000);
        }
    }
    w.barrier()?;
    Ok(buffer.most(w)?)
}

#[derive(Serialize, Deserialize, Default)]
struct Room {
    readers: u32,
    writers: u32,
    waiting_writers: u32,
    wrong: u32,
    entered: u32,
}

#[dhole::object]
impl Room {
    #[when(self.writers == 0 && self.waiting_writers == 0)]
    pub fn begin_read(&mut self) {
        self.readers += 1;
        self.look();
    }

    /// A mistake: it does not look whether somebody writes.
    pub fn begin_read_anyway(&mut self) {
        self.readers += 1;
        self.look();
    }

    pub fn end_read(&mut self) {
        self.readers -= 1;
    }

    pub fn want_write(&mut self) {
        self.waiting_writers += 1;
    }

    #[when(self.writers == 0 && self.readers == 0)]
    pub fn begin_write(&mut self) {
        self.waiting_writers -= 1;
        self.writers += 1;
        self.look();
    }

    pub fn end_write(&mut self) {
        self.writers -= 1;
    }

    pub fn found(&self) -> (u32, u32) {
        (self.wrong, self.entered)
    }

    fn look(&mut self) {
        self.entered += 1;
        let alone = self.writers == 0 || (self.writers == 1 && self.readers == 0);
        self.wrong += u32::from(!alone);
    }
}

/// What a reader says who is not alone with readers.
const WRITES_MEANWHILE: &str = "somebody writes meanwhile";

/// Writers are alone in the room, and readers do not keep them out for ever.
fn readers_writers(
    w: &mut Worker<'_>,
    strategy: Strategy,
    begin_read: fn(&Object<Room>, &mut Worker<'_>) -> Result<(), ObjectError>,
) -> dhole::Result<(u32, u32)> {
    let room: Object<Room> = w.once(|w| Ok(w.new_object(strategy, Room::default())?))?;
    let plain = w.once(|w| Ok(w.alloc(0_u32)))?;
    for round in 0..4 {
        if (w.node().0 + round).is_multiple_of(3) {
            room.want_write(w)?;
            room.begin_write(w)?;
            *plain.get_mut(w) += 1;
            w.work(w.random() % 2000);
            room.end_write(w)?;
        } else {
            begin_read(&room, w)?;
            let before = plain.read(w);
            w.work(w.random() % 2000);
            assert_eq!(plain.read(w), before, "{WRITES_MEANWHILE}");
            room.end_read(w)?;
        }
    }
    w.barrier()?;
    Ok(room.found(w)?)
}

fn put(buffer: &Object<Buffer>, w: &mut Worker<'_>, item: u32) -> Result<(), ObjectError> {
    buffer.put(w, item)
}

fn begin_read(room: &Object<Room>, w: &mut Worker<'_>) -> Result<(), ObjectError> {
    room.begin_read(w)
}

fn settings(nodes: usize, seed: u64) -> Settings {
    let mut settings = Settings::fixed_cost(nodes);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    settings
}

/// How objects are kept in the run of a seed.
fn strategy(nodes: u64, seed: u64) -> Strategy {
    [replicated(), on(NodeId((seed % nodes) as u16))][seed as usize % 2]
}

#[test]
fn guards_that_are_forgotten_are_noticed() {
    let full = (0..1000).find(|seed| {
        let run = Config::nodes(4).simulate(settings(4, *seed), |w| {
            bounded_buffer(w, strategy(4, *seed), |b, w, item| b.put_anyway(w, item))
        });
        run.is_ok_and(|run| run.value > ROOM)
    });
    let together = (0..1000).find(|seed| {
        let run = Config::nodes(3).simulate(settings(3, *seed), |w| {
            readers_writers(w, strategy(3, *seed), |room, w| room.begin_read_anyway(w))
        });
        run.map_or_else(
            |error| error.to_string().contains(WRITES_MEANWHILE),
            |run| run.value.0 > 0,
        )
    });
    assert!(
        full.is_some() && together.is_some(),
        "seeds {full:?}, {together:?}"
    );
}

#[test]
fn a_bounded_buffer_holds_no_more_than_it_may_in_1000_seeds() {
    for seed in 0..1000 {
        let strategy = strategy(4, seed);
        let run =
            Config::nodes(4).simulate(settings(4, seed), |w| bounded_buffer(w, strategy, put));
        let most = run
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            .value;
        assert!((1..=ROOM).contains(&most), "seed {seed}: {most}");
    }
}

#[test]
fn writers_are_alone_in_1000_seeds() {
    for seed in 0..1000 {
        let strategy = strategy(3, seed);
        let run = Config::nodes(3).simulate(settings(3, seed), |w| {
            readers_writers(w, strategy, begin_read)
        });
        let found = run
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"))
            .value;
        assert_eq!(found, (0, 12), "seed {seed}");
    }
}

#[test]
fn both_work_on_threads() {
    for strategy in [replicated(), on(NodeId(1))] {
        let run = Config::nodes(4)
            .run(|w| bounded_buffer(w, strategy, put))
            .unwrap();
        assert!(run.value <= ROOM);
        let run = Config::nodes(3)
            .run(|w| readers_writers(w, strategy, begin_read))
            .unwrap();
        assert_eq!(run.value, (0, 12));
    }
}
