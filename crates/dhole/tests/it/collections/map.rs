use std::collections::BTreeMap;

use dhole::collections::{DistMap, DistSet};
use dhole::{Config, NodeId, combine};
use dhole_model::SplitMix64;

/// What goes to a node in one operation.
const MOST_TOGETHER: u64 = 1 << 16;

type Plain = BTreeMap<String, Vec<u64>>;

fn key(number: u64) -> String {
    format!("key {number}")
}

fn append(known: &mut Vec<u64>, more: Vec<u64>) {
    known.extend(more);
}

/// One node at a time calls something at random, and the map is what std's would be.
fn acts_as_a_plain_map(seed: u64, nodes: usize) {
    let run = Config::nodes(nodes).run(|w| {
        let map = w.once(|w| Ok(DistMap::<String, Vec<u64>>::new(w)?))?;
        let mut plain = Plain::new();
        // All nodes draw the same numbers.
        let mut random = SplitMix64(seed);
        for round in 0..60 {
            let caller = random.below(nodes as u64) as usize;
            let calls = caller == w.node().index();
            let act = random.below(10);
            let count = random.below(30);
            let numbers: Vec<u64> = (0..count).map(|_| random.below(40)).collect();
            let one = key(random.below(40));
            let keys: Vec<String> = numbers.iter().copied().map(key).collect();
            let pairs = keys
                .iter()
                .cloned()
                .zip(numbers.iter().map(|it| vec![round, *it]));
            let pairs: Vec<(String, Vec<u64>)> = pairs.collect();
            let appends = combine!(append);
            let value = vec![1_000 + round];
            match act {
                0 => {
                    plain.extend(pairs.clone());
                    if calls {
                        map.insert_all(w, pairs)?;
                    }
                }
                1 | 2 => {
                    for (key, value) in pairs.clone() {
                        plain.entry(key).or_default().extend(value);
                    }
                    if calls {
                        map.update_all(w, pairs, appends)?;
                    }
                }
                3 => {
                    let was = keys
                        .iter()
                        .map(|key| u64::from(plain.remove(key).is_some()));
                    let was: u64 = was.sum();
                    if calls {
                        assert_eq!(map.remove_all(w, &keys)?, was);
                    }
                }
                4 => {
                    let was = plain.insert(one.clone(), value.clone());
                    if calls {
                        assert_eq!(map.insert(w, one, value)?, was);
                    }
                }
                5 => {
                    let is = plain.entry(one.clone()).or_insert(value.clone()).clone();
                    if calls {
                        assert_eq!(map.get_or_insert(w, one, value)?, is);
                    }
                }
                6 => {
                    let known = plain.entry(one.clone()).or_default();
                    known.extend(value.clone());
                    if calls {
                        assert_eq!(map.update(w, one, value, appends)?, *known);
                    }
                }
                7 => {
                    let was = plain.remove(&one);
                    if calls {
                        assert_eq!(map.remove(w, &one)?, was);
                    }
                }
                8 if round % 8 == 0 => {
                    plain.clear();
                    if calls {
                        map.clear(w)?;
                    }
                }
                _ => {}
            }
            w.barrier()?;
            let values = keys.iter().map(|key| plain.get(key).cloned());
            assert_eq!(map.get_all(w, &keys)?, values.collect::<Vec<_>>());
            let are: Vec<bool> = keys.iter().map(|key| plain.contains_key(key)).collect();
            assert_eq!(map.contains_all(w, &keys)?, are);
            if round % 7 == 0 {
                let frozen = map.freeze(w)?;
                assert_eq!(frozen.len(), plain.len() as u64);
                let (messages, all) = (w.counters().messages, (0..40).map(key));
                let all: Vec<String> = all.collect();
                let values = all.iter().map(|key| plain.get(key).cloned());
                assert_eq!(frozen.get_all(w, &all)?, values.collect::<Vec<_>>());
                for key in &all {
                    assert_eq!(frozen.get(w, key)?, plain.get(key).cloned());
                }
                assert_eq!(w.counters().messages, messages, "memory of threads is seen");
                w.barrier()?;
                if calls {
                    frozen.free(w)?;
                }
            }
            let one = key(round % 40);
            assert_eq!(map.get(w, &one)?, plain.get(&one).cloned());
            assert_eq!(map.contains_key(w, &one)?, plain.contains_key(&one));
            assert_eq!(map.len(w)?, plain.len() as u64);
            assert_eq!(map.is_empty(w)?, plain.is_empty());
            let each = |key: &String, value: &Vec<u64>| Plain::from([(key.clone(), value.clone())]);
            let all = map.reduce(w, each, |mut one, next| {
                one.extend(next);
                one
            })?;
            assert_eq!(all.unwrap_or_default(), plain);
            let (me, mut own) = (w.node(), Vec::new());
            map.for_each_own(w, |key, _| own.push(key.clone()))?;
            assert!(own.iter().all(|key| map.owner(w, key) == me));
            w.barrier()?;
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("seed {seed}, {nodes} nodes: {error}"));
}

#[test]
fn a_map_is_what_a_plain_map_would_be() {
    for seed in 0..12 {
        acts_as_a_plain_map(seed, 1 + seed as usize % 4);
    }
}

#[test]
fn more_entries_than_go_together_arrive_in_their_order() {
    let many = 3 * MOST_TOGETHER;
    let run = Config::nodes(2).run(|w| {
        let map = w.once(|w| Ok(DistMap::<u64, u64>::new(w)?))?;
        if w.node() == NodeId(0) {
            // Each key twice; the second time counts.
            map.insert_all(w, (0..2 * many).map(|it| (it % many, it)))?;
            assert_eq!(map.len(w)?, many);
            map.update_all(w, (0..many).map(|it| (it, it)), combine!(u64::max_of))?;
            let keys: Vec<u64> = (0..many).collect();
            let values = map.get_all(w, &keys)?;
            assert!((many..2 * many).eq(values.into_iter().flatten()));
            assert_eq!(map.remove_all(w, &keys)?, many);
            assert!(map.is_empty(w)?);
        }
        Ok(())
    });
    run.expect("it runs");
}

trait Most {
    fn max_of(&mut self, other: Self);
}

impl Most for u64 {
    fn max_of(&mut self, other: u64) {
        *self = other.max(*self);
    }
}

#[test]
fn each_node_does_its_part_of_a_word_count() {
    let run = Config::nodes(3).run(|w| {
        let counts = w.once(|w| Ok(DistMap::<u32, u64>::new(w)?))?;
        let words = (0..30_000).map(|it| (it * it % 997, 1));
        let adds = combine!(|sum: &mut u64, more| *sum += more);
        counts.update_all(w, words, adds)?;
        Ok(counts.reduce(w, |_, count| *count, |one, next| one + next)?)
    });
    assert_eq!(run.expect("it runs").value, Some(90_000));
}

#[test]
fn entries_that_cannot_be_used_are_errors_that_say_why() {
    let run = Config::nodes(2).run(|w| {
        let map = w.once(|w| Ok(DistMap::<u32, u32>::new(w)?))?;
        let fails = combine!(|_: &mut u32, more: u32| assert!(more == 0, "so it is"));
        if w.node() == NodeId(0) {
            for key in 0..10 {
                map.insert(w, key, 0)?;
            }
            let theirs = (0..10).find(|key| map.owner(w, key) == NodeId(1));
            let theirs = theirs.expect("one in ten");
            let words = map
                .update(w, theirs, 1, fails)
                .expect_err("it panics")
                .to_string();
            assert!(
                words.contains("Shard::update panicked: so it is"),
                "{words}"
            );
            assert!(words.contains("map.rs:"), "{words}");
            let words = map.get(w, &theirs).expect_err("it is poisoned").to_string();
            assert!(words.contains("so it is"), "{words}");
            map.free(w)?;
            let words = map.len(w).expect_err("it is freed").to_string();
            assert!(words.contains("freed"), "{words}");
        }
        Ok(())
    });
    run.expect("it runs");
}

#[test]
fn a_set_is_what_a_plain_set_would_be() {
    let run = Config::nodes(3).run(|w| {
        let set = w.once(|w| Ok(DistSet::<(u8, bool)>::new(w)?))?;
        let mut plain = std::collections::BTreeSet::new();
        let mut random = SplitMix64(5);
        for round in 0..40 {
            let calls = random.below(3) as usize == w.node().index();
            let mut key = || (random.below(20) as u8, random.below(2) == 0);
            let (one, many) = (key(), [(); 6].map(|()| key()));
            match round % 5 {
                0 | 1 => {
                    plain.extend(many);
                    if calls {
                        set.insert_all(w, many)?;
                    }
                }
                2 => {
                    let is_new = plain.insert(one);
                    if calls {
                        assert_eq!(set.insert(w, one)?, is_new);
                    }
                }
                3 => {
                    let was = plain.remove(&one);
                    if calls {
                        assert_eq!(set.remove(w, &one)?, was);
                    }
                }
                _ => {
                    let many: std::collections::BTreeSet<_> = many.into_iter().collect();
                    let was = many.iter().filter(|key| plain.remove(*key)).count() as u64;
                    if calls {
                        let many: Vec<_> = many.into_iter().collect();
                        assert_eq!(set.remove_all(w, &many)?, was);
                    }
                }
            }
            w.barrier()?;
            assert_eq!(set.contains(w, &one)?, plain.contains(&one));
            let are: Vec<bool> = many.iter().map(|key| plain.contains(key)).collect();
            assert_eq!(set.contains_all(w, &many)?, are);
            assert_eq!(set.len(w)?, plain.len() as u64);
            assert_eq!(set.is_empty(w)?, plain.is_empty());
            let sum = set.reduce(w, |key| u64::from(key.0), |one, next| one + next)?;
            let expected = plain.iter().map(|key| u64::from(key.0));
            assert_eq!(sum, expected.reduce(|one, next| one + next));
            let me = w.node();
            let mut own = Vec::new();
            set.for_each_own(w, |key| own.push(*key))?;
            assert!(
                own.iter()
                    .all(|key| set.owner(w, key) == me && plain.contains(key))
            );
            w.barrier()?;
        }
        set.clear(w)?;
        w.barrier()?;
        assert!(set.is_empty(w)?);
        Ok(())
    });
    run.expect("it runs");
}
