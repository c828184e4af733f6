//! Maps in simulated clusters, under seeds of jitter: nodes call single keys at random. There must
//! be an order of all calls, with each call between its beginning and its end, in which one plain
//! map shows the nodes what they heard.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use dhole::collections::DistMap;
use dhole::sim::Settings;
use dhole::{Config, Result, Worker, combine};
use dhole_check::history::{History, OneCopy};
use dhole_model::Variants;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};

/// A call of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Get(u8),
    Insert(u8, u8),
    GetOrInsert(u8, u8),
    Add(u8, u8),
    Remove(u8),
}

/// One plain map.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Plain(BTreeMap<u8, u8>);

impl OneCopy for Plain {
    type Call = Call;
    type Result = Option<u8>;

    fn apply(&mut self, call: &Call) -> Option<Option<u8>> {
        Some(match *call {
            Call::Get(key) => self.0.get(&key).copied(),
            Call::Insert(key, value) => self.0.insert(key, value),
            Call::GetOrInsert(key, value) => Some(*self.0.entry(key).or_insert(value)),
            Call::Add(key, value) => {
                let sum = self.0.get(&key).map_or(value, |known| known + value);
                self.0.insert(key, sum);
                Some(sum)
            }
            Call::Remove(key) => self.0.remove(&key),
        })
    }
}

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// A node that has read a key answers its reads by itself until it writes.
    Keeps,
    /// A value is combined where it is called, and not where it is kept.
    ReadsThenWrites,
}

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: usize,
    /// Keys.
    pub keys: u8,
    /// Calls of each node.
    pub calls: usize,
}

/// A node's call or what it heard, at a time of the cluster.
type Seen = (u128, usize, std::result::Result<Call, Option<u8>>);

fn call(shape: Shape, random: &mut Random) -> Call {
    let key = random.random_range(0..shape.keys);
    let value = random.random_range(1..4);
    match random.random_range(0..8) {
        0..=2 => Call::Get(key),
        3 => Call::Insert(key, value),
        4 => Call::GetOrInsert(key, value),
        5 | 6 => Call::Add(key, value),
        _ => Call::Remove(key),
    }
}

/// Runs a random program under a random schedule.
///
/// # Errors
/// The error in what the nodes heard.
pub fn run(shape: Shape, seed: u64, planted: Planted) -> std::result::Result<(), String> {
    let mut random = Random::seed_from_u64(seed);
    let mut calls = || (0..shape.calls).map(|_| call(shape, &mut random)).collect();
    let programs: Vec<Vec<Call>> = (0..shape.nodes).map(|_| calls()).collect();
    let mut settings = Settings::fixed_cost(shape.nodes);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    let seen = Mutex::new(Vec::<Seen>::new());
    let ran = Config::nodes(1).simulate(settings, |w| {
        let map = w.once(|w| Ok(DistMap::new(w)?))?;
        let me = w.node().index();
        let note = |w: &Worker<'_>, what| {
            let at_ns = w.now().as_nanos();
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((at_ns, me, what));
        };
        let mut kept = BTreeMap::new();
        for call in &programs[me] {
            w.work(w.random() % 40_000);
            note(w, Ok(*call));
            let heard = perform(w, map, *call, planted, &mut kept)?;
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
    match history.is_linearizable(Plain(BTreeMap::new())) {
        true => Ok(()),
        false => Err(format!("no order explains {seen:?}")),
    }
}

fn perform(
    w: &mut Worker<'_>,
    map: DistMap<u8, u8>,
    call: Call,
    planted: Planted,
    kept: &mut BTreeMap<u8, Option<u8>>,
) -> Result<Option<u8>> {
    if planted == Planted::Keeps {
        match call {
            Call::Get(key) => {
                if let Some(value) = kept.get(&key) {
                    return Ok(*value);
                }
                let value = map.get(w, &key)?;
                kept.insert(key, value);
                return Ok(value);
            }
            _ => kept.clear(),
        }
    }
    Ok(match call {
        Call::Get(key) => map.get(w, &key)?,
        Call::Insert(key, value) => map.insert(w, key, value)?,
        Call::GetOrInsert(key, value) => Some(map.get_or_insert(w, key, value)?),
        Call::Add(key, value) if planted == Planted::ReadsThenWrites => {
            let sum = map.get(w, &key)?.map_or(value, |known| known + value);
            map.insert(w, key, sum)?;
            Some(sum)
        }
        Call::Add(key, value) => {
            let adds = combine!(|sum: &mut u8, more| *sum += more);
            Some(map.update(w, key, value, adds)?)
        }
        Call::Remove(key) => map.remove(w, &key)?,
    })
}
