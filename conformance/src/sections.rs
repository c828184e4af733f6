//! Sections in simulated clusters, under seeds of jitter: nodes add to a counter, and put into and
//! take from a queue, in sections that travel or run at their callers. There must be an order of
//! all calls, with each call between its beginning and its end, in which one plain counter and
//! queue show the nodes what they heard.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use dhole::sim::Settings;
use dhole::{
    Coherence, Config, Lockable, Races, Ref, Result, Row, Section, Share, Worker, section,
};
use dhole_check::history::{History, OneCopy};
use dhole_model::Variants;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};

/// Places of the queue: more than there are calls.
const ROOM: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Add(u8),
    Count,
    Put(u8),
    /// Waits until there is something.
    Take,
}

/// One plain counter and queue.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Plain {
    count: u8,
    queue: VecDeque<u8>,
}

impl OneCopy for Plain {
    type Call = Call;
    type Result = u8;

    fn apply(&mut self, call: &Call) -> Option<u8> {
        match *call {
            Call::Add(by) => {
                self.count += by;
                Some(self.count)
            }
            Call::Count => Some(self.count),
            Call::Put(value) => {
                self.queue.push_back(value);
                Some(0)
            }
            Call::Take => self.queue.pop_front(),
        }
    }
}

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// A node adds to what it read of the counter in a section before.
    ReadsThenWrites,
    /// A section that finds the queue empty takes what is at its first place.
    DoesNotWait,
}

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: usize,
    /// Calls of each node.
    pub calls: usize,
    /// Whether sections travel.
    pub travel: bool,
}

#[derive(Share, Clone, Copy)]
struct Queue {
    first: u64,
    len: u64,
    places: Row<u8>,
}

#[derive(Share, Clone, Copy)]
struct Shared {
    count: Ref<u8>,
    queue: Ref<Queue>,
}

fn add(s: &mut Section<'_>, (count, by): (Ref<u8>, u8)) -> Result<u8> {
    let count = s.get_mut(count)?;
    *count += by;
    Ok(*count)
}

fn set(s: &mut Section<'_>, (count, to): (Ref<u8>, u8)) -> Result<u8> {
    *s.get_mut(count)? = to;
    Ok(to)
}

fn count(s: &mut Section<'_>, count: Ref<u8>) -> Result<u8> {
    s.read(count)
}

fn put(s: &mut Section<'_>, (queue, value): (Ref<Queue>, u8)) -> Result<u8> {
    let Queue { first, len, places } = s.read(queue)?;
    s.get_mut(places)?[(first + len) as usize % ROOM] = value;
    s.get_mut(queue)?.len += 1;
    Ok(0)
}

fn take(s: &mut Section<'_>, (queue, waits): (Ref<Queue>, bool)) -> Result<u8> {
    let Queue { first, len, places } = s.read(queue)?;
    s.wait_until(len > 0 || !waits)?;
    let value = s.get(places)?[first as usize % ROOM];
    *s.get_mut(queue)? = Queue {
        first: first + 1,
        len: len.saturating_sub(1),
        places,
    };
    Ok(value)
}

/// A node's call or what it heard, at a time of the cluster.
type Seen = (u128, usize, std::result::Result<Call, u8>);

fn call(random: &mut Random) -> Call {
    let value = random.random_range(1..5);
    match random.random_range(0..6) {
        0 | 1 => Call::Add(value),
        2 => Call::Count,
        3 | 4 => Call::Put(value),
        _ => Call::Take,
    }
}

/// Programs in which node 0 puts at least as often as the others take: none waits for ever.
fn programs(shape: Shape, random: &mut Random) -> Vec<Vec<Call>> {
    let mut programs: Vec<Vec<Call>> = vec![Vec::new(); shape.nodes];
    let (mut puts, mut takes) = (0, 0);
    for (node, program) in programs.iter_mut().enumerate() {
        for _ in 0..shape.calls {
            let call = match call(random) {
                Call::Take if node == 0 => Call::Put(1),
                Call::Put(_) if node > 0 => Call::Take,
                other => other,
            };
            puts += usize::from(matches!(call, Call::Put(_)));
            takes += usize::from(call == Call::Take);
            program.push(call);
        }
    }
    programs[0].extend((puts..takes).map(|_| Call::Put(2)));
    programs
}

/// Runs a random program under a random schedule.
///
/// # Errors
/// The error in what the nodes heard.
pub fn run(shape: Shape, seed: u64, planted: Planted) -> std::result::Result<(), String> {
    let mut random = Random::seed_from_u64(seed);
    let programs = programs(shape, &mut random);
    let mut settings = Settings::fixed_cost(shape.nodes);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    let seen = Mutex::new(Vec::<Seen>::new());
    let config = Config::nodes(1)
        .coherence(Coherence::Home)
        .races(Races::Ignore)
        .sections(shape.travel);
    let ran = config.simulate(settings, |w| {
        let shared = w.once(|w| {
            let places = w.alloc_rows(1, ROOM).row(0);
            let (first, len) = (0, 0);
            let queue = w.alloc(Queue { first, len, places });
            Ok(Shared {
                count: w.alloc(0),
                queue,
            })
        })?;
        let me = w.node().index();
        let note = |w: &Worker<'_>, what| {
            let at_ns = w.now().as_nanos();
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((at_ns, me, what));
        };
        for call in &programs[me] {
            w.work(w.random() % 40_000);
            note(w, Ok(*call));
            let heard = perform(w, shared, *call, planted)?;
            note(w, Err(heard));
        }
        Ok(())
    });
    ran.map_err(|error| error.to_string())?;
    let mut seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    // At one moment calls come before results: that is the weaker order of the two.
    seen.sort_by_key(|(at_ns, _, what)| (*at_ns, what.is_err()));
    let mut history = History::default();
    for (_, thread, what) in &seen {
        match what {
            Ok(call) => history.calls(*thread, *call)?,
            Err(heard) => history.hears(*thread, *heard)?,
        }
    }
    let start = Plain {
        count: 0,
        queue: VecDeque::new(),
    };
    match history.is_linearizable(start) {
        true => Ok(()),
        false => Err(format!("no order explains {seen:?}")),
    }
}

fn perform(w: &mut Worker<'_>, shared: Shared, call: Call, planted: Planted) -> Result<u8> {
    let Shared {
        count: counter,
        queue,
    } = shared;
    let waits = planted != Planted::DoesNotWait;
    match call {
        Call::Add(by) if planted == Planted::ReadsThenWrites => {
            let sum = counter.lock().run(w, counter, section!(count))? + by;
            counter.lock().run(w, (counter, sum), section!(set))
        }
        Call::Add(by) => counter.lock().run(w, (counter, by), section!(add)),
        Call::Count => counter.lock().run(w, counter, section!(count)),
        Call::Put(value) => queue.lock().run(w, (queue, value), section!(put)),
        Call::Take => queue.lock().run(w, (queue, waits), section!(take)),
    }
}
