//! What a peer has, or sends, that is no frozen map; and what a map is when it is frozen.

use dhole_node::RunError;
use dhole_sim::Settings;

use super::*;
use crate::{Config, Run};

type Frozen = FrozenMap<u32, String>;

const KEYS: u32 = 600;

fn simulated<R: Send>(
    seed: u64,
    program: impl Fn(&mut Worker<'_>) -> dhole_node::Result<R> + Sync,
) -> Result<Run<R>, RunError> {
    let mut settings = Settings::fixed_cost(2);
    settings.seed = seed;
    settings.network.jitter = 1.0;
    Config::nodes(2).simulate(settings, program)
}

fn value(key: u32) -> String {
    "x".repeat(key as usize % 30)
}

/// A frozen map whose entries are node 1's and node 0's.
fn frozen(w: &mut Worker<'_>) -> dhole_node::Result<Frozen> {
    let map = w.once(|w| Ok(DistMap::<u32, String>::new(w)?))?;
    let mine = (0..KEYS).skip(w.node().index()).step_by(2);
    map.insert_all(w, mine.map(|key| (key, value(key))))?;
    Ok(map.freeze(w)?)
}

/// Looks all keys up, one by one and together, which ends with a value or a typed error of one of
/// these words. How many are errors.
fn looks_up(w: &Worker<'_>, map: &Frozen, words: &[&str]) -> usize {
    let keys: Vec<u32> = (0..KEYS).collect();
    let mut wrong = 0;
    let mut is_said = |error: &MapError| {
        let said = error.to_string();
        assert!(words.iter().any(|it| said.contains(it)), "{said}");
        wrong += 1;
    };
    for key in &keys {
        map.get(w, key).err().iter().for_each(&mut is_said);
    }
    map.get_all(w, &keys).err().iter().for_each(&mut is_said);
    wrong
}

/// Node 1 has written something else where its entries are, or where these begin.
#[test]
fn entries_that_a_peer_has_overwritten_are_errors_that_name_it() {
    for (seed, spoils_begins) in [(0, false), (1, true)] {
        let run = simulated(seed, |w| {
            let frozen = frozen(w)?;
            if w.node() == NodeId(1) {
                let part = &frozen.parts[1];
                let mut random = w.random() | 1;
                let mut next = || {
                    random = random.wrapping_mul(6_364_136_223_846_793_005) | 1;
                    random >> 33
                };
                if spoils_begins {
                    for block in part.begins.iter() {
                        block
                            .get_mut(w)
                            .iter_mut()
                            .for_each(|it| *it = next() as u32);
                    }
                } else {
                    for block in part.bytes.iter() {
                        block
                            .get_mut(w)
                            .iter_mut()
                            .for_each(|it| *it = next() as u8 | 0x80);
                    }
                }
            }
            w.barrier()?;
            let words = ["what node 1 has is no entry"];
            assert!(looks_up(w, &frozen, &words) > 100);
            Ok(w.barrier()?)
        });
        run.unwrap_or_else(|error| panic!("spoils begins: {spoils_begins}: {error}"));
    }
}

/// A handle is a value, which comes by a message.
#[test]
fn a_handle_that_names_too_little_is_an_error() {
    let run = simulated(0, |w| {
        let whole = frozen(w)?;
        let damaged = |damage: &dyn Fn(&mut Vec<Part>)| {
            let mut damaged = whole.clone();
            damage(&mut damaged.parts);
            damaged
        };
        let lacks = [
            damaged(&|parts| parts.clear()),
            damaged(&|parts| parts[1].buckets = usize::MAX),
            damaged(&|parts| parts[1].buckets = 1 << 40),
            damaged(&|parts| parts[1].bytes = parts[0].bytes),
            damaged(&|parts| parts[1].begins = parts[0].begins),
            damaged(&|parts| parts.swap(0, 1)),
        ];
        for (number, map) in lacks.iter().enumerate() {
            let wrong = looks_up(w, map, &["is no entry"]);
            assert!(wrong > 0 || number > 2, "handle {number}");
        }
        let none = damaged(&|parts| parts[1].buckets = 0);
        looks_up(w, &none, &["is no entry"]);
        assert_eq!(looks_up(w, &whole, &[]), 0);
        Ok(w.barrier()?)
    });
    run.expect("a run");
}

/// What any node did before it called `freeze` is in the map, whichever node comes first.
#[test]
fn what_was_inserted_before_any_node_froze_the_map_is_in_it() {
    for seed in 0..40 {
        let run = simulated(seed, |w| {
            let map = w.once(|w| Ok(DistMap::<u32, u64>::new(w)?))?;
            let first = w.node().index() as u32 * 100;
            // One node has much more to do than the other one.
            let many = if u64::from(w.node().0) == seed % 2 {
                30
            } else {
                1
            };
            for key in first..first + many {
                map.insert(w, key, 7)?;
            }
            let frozen = map.freeze(w)?;
            map.insert(w, first + 50, 8)?;
            let keys: Vec<u32> = (0..200).collect();
            let found = frozen.get_all(w, &keys)?;
            w.barrier()?;
            assert_eq!((frozen.len(), found.iter().flatten().count()), (31, 31));
            assert!(found.iter().flatten().all(|value| *value == 7));
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
