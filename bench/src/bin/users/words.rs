//! Words are counted: each node counts its part in a map of its own. The nodes exchange the counts,
//! and each enters the words of its buckets into one shared table, in which all then look words up.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bench::Outcome;
use dhole::collections::DistMap;
use dhole::{Ref, Refs, Result, Share, Worker, combine};
use dhole_model::SplitMix64;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rayon::slice::ParallelSlice;

use crate::lap::{self, Lap};
use crate::{Program, Took, WORKERS};

const WORDS: usize = 2_000_000;
const VOCABULARY: u64 = 200_000;
const LOOK_UPS: usize = 400_000;
const BUCKETS: usize = 1 << 18;

pub const PROGRAM: Program = Program {
    name: "words",
    about: "2,000,000 words of 9 letters counted, 400,000 counts looked up",
    phases: &["count", "table", "look-ups"],
    sequential,
    also_sequential: &[("dhole::HashMap", with_fixed_hasher)],
    rayon: with_rayon,
    shared: &[
        ("objects", over_objects),
        ("DistMap", over_dist_map),
        ("FrozenMap", over_frozen_map),
    ],
};

type Word = [u8; 9];

/// The word with this number in the vocabulary.
fn word(number: u64) -> Word {
    let mut random = SplitMix64(number);
    [(); 9].map(|()| b'a' + random.below(26) as u8)
}

/// Common words more often than rare ones.
fn text(count: usize, seed: u64) -> Vec<Word> {
    let mut random = SplitMix64(seed);
    let mut draw = || random.below(random.clone().below(VOCABULARY) + 1);
    (0..count).map(|_| word(draw())).collect()
}

type Counts<S> = HashMap<Word, u32, S>;

fn count<'a, S: BuildHasher + Default>(words: impl IntoIterator<Item = &'a Word>) -> Counts<S> {
    let mut counts = Counts::default();
    for word in words {
        *counts.entry(*word).or_default() += 1;
    }
    counts
}

fn add(mut to: Counts<RandomState>, from: Counts<RandomState>) -> Counts<RandomState> {
    if to.is_empty() {
        return from;
    }
    for (word, count) in from {
        *to.entry(word).or_default() += count;
    }
    to
}

fn took(laps: [Lap; 3], found: u64) -> Took {
    Took {
        laps: laps.to_vec(),
        found,
    }
}

fn sequential() -> Outcome<Took> {
    hashed_by(&RandomState::new())
}

/// By the hasher of a `DistMap`.
fn with_fixed_hasher() -> Outcome<Took> {
    hashed_by(dhole::HashMap::<(), ()>::default().hasher())
}

fn hashed_by<S: BuildHasher + Default + Clone>(_: &S) -> Outcome<Took> {
    let (words, asked) = (text(WORDS, 1), text(LOOK_UPS, 2));
    let (counts, counting) = lap::alone(|| count::<S>(&words));
    let (table, entering) = lap::alone(|| counts.clone());
    let look_up = |word: &Word| table.get(word).map_or(0, |count| u64::from(*count));
    let (found, looking) = lap::alone(|| asked.iter().map(look_up).sum());
    Ok(took([counting, entering, looking], found))
}

fn with_rayon() -> Outcome<Took> {
    let (words, asked) = (text(WORDS, 1), text(LOOK_UPS, 2));
    let parts = words.len().div_ceil(WORKERS);
    let (counts, counting) = lap::by_others(|| {
        let counted = words.par_chunks(parts).map(|part| vec![count(part)]);
        counted.reduce(Vec::new, |one, next| [one, next].concat())
    });
    let (table, entering) = lap::by_others(|| counts.into_iter().fold(Counts::default(), add));
    let look_up = |word: &Word| table.get(word).map_or(0, |count| u64::from(*count));
    let (found, looking) = lap::by_others(|| asked.par_iter().map(look_up).sum());
    Ok(took([counting, entering, looking], found))
}

#[derive(Share, Clone, Copy)]
struct Entry {
    word: Word,
    count: u32,
    next: Option<Ref<Entry>>,
}

fn bucket(word: &Word) -> usize {
    let hash = word.iter().fold(0, |hash, letter| {
        SplitMix64::after(hash ^ u64::from(*letter))
    });
    hash as usize % BUCKETS
}

fn shared_count(w: &Worker<'_>, table: Refs<Option<Ref<Entry>>>, word: &Word) -> u64 {
    let mut next = *table.at(bucket(word)).get(w);
    while let Some(entry) = next {
        let entry = entry.get(w);
        if entry.word == *word {
            return u64::from(entry.count);
        }
        next = entry.next;
    }
    0
}

fn over_objects(w: &mut Worker<'_>) -> Result<Took> {
    let (words, asked) = (text(WORDS, 1), text(LOOK_UPS, 2));
    let (nodes, me) = (w.nodes(), w.node().index());
    let (counts, counting) = lap::together(w, |_| {
        Ok(count::<RandomState>(words.iter().skip(me).step_by(nodes)))
    })?;
    let (table, entering) = lap::together(w, |w| {
        let table = w.once(|w| Ok(w.alloc_range(BUCKETS, |_| None::<Ref<Entry>>)))?;
        let counts: Vec<(Word, u32)> = counts.into_iter().collect();
        let all = w.all_gather(counts)?.into_iter().flatten();
        let owner = |word: &Word| bucket(word) * nodes / BUCKETS;
        let mine = all
            .filter(|(word, _)| owner(word) == me)
            .map(|(word, count)| Counts::from([(word, count)]));
        let mine = mine.reduce(add).unwrap_or_default();
        for (word, count) in mine {
            let bucket = table.at(bucket(&word));
            let next = *bucket.get(w);
            let entry = w.alloc(Entry { word, count, next });
            *bucket.get_mut(w) = Some(entry);
        }
        Ok(table)
    })?;
    let (found, looking) = lap::together(w, |w| {
        let mine = asked.iter().skip(me).step_by(nodes);
        let found: u64 = mine.map(|word| shared_count(w, table, word)).sum();
        Ok(w.all_reduce(found, |one, next| one + next)?)
    })?;
    Ok(took([counting, entering, looking], found))
}

/// Each node counts its part of the words into a `DistMap`.
fn counted(w: &mut Worker<'_>) -> Result<(DistMap<Word, u32>, Lap)> {
    let words = text(WORDS, 1);
    let (nodes, me) = (w.nodes(), w.node().index());
    lap::together(w, |w| {
        let counts = w.once(|w| Ok(DistMap::<Word, u32>::new(w)?))?;
        let mine = words.iter().skip(me).step_by(nodes);
        let adds = combine!(|count: &mut u32, more| *count += more);
        counts.update_all(w, mine.map(|word| (*word, 1)), adds)?;
        Ok(counts)
    })
}

/// The part of the look-ups that is the node's.
fn own_look_ups(w: &Worker<'_>) -> Vec<Word> {
    let asked = text(LOOK_UPS, 2).into_iter();
    asked.skip(w.node().index()).step_by(w.nodes()).collect()
}

fn sum(w: &mut Worker<'_>, counts: Vec<Option<u32>>) -> Result<u64> {
    let found = counts.into_iter().flatten().map(u64::from).sum::<u64>();
    Ok(w.all_reduce(found, |one, next| one + next)?)
}

/// The counts as a `DistMap`: each node asks the others for its part of the look-ups.
fn over_dist_map(w: &mut Worker<'_>) -> Result<Took> {
    let (counts, counting) = counted(w)?;
    let mine = own_look_ups(w);
    // It is the table already.
    let ((), entering) = lap::together(w, |_| Ok(()))?;
    let (found, looking) = lap::together(w, |w| {
        let found = counts.get_all(w, &mine)?;
        sum(w, found)
    })?;
    Ok(took([counting, entering, looking], found))
}

/// The counts as a `DistMap` that is frozen before the look-ups: each node reads the others'.
fn over_frozen_map(w: &mut Worker<'_>) -> Result<Took> {
    let (counts, counting) = counted(w)?;
    let mine = own_look_ups(w);
    let (table, entering) = lap::together(w, |w| Ok(counts.freeze(w)?))?;
    let (found, looking) = lap::together(w, |w| {
        let found = table.get_all(w, &mine)?;
        sum(w, found)
    })?;
    Ok(took([counting, entering, looking], found))
}
