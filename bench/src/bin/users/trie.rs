//! A trie of words, built by all nodes, each the words of its first letters; then prefixes are
//! looked up twice, each node its part of them.

use bench::Outcome;
use dhole::collections::{DistMap, FrozenMap};
use dhole::{Access, Ref, Refs, Result, Share, Worker, combine};
use dhole_model::SplitMix64;
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::lap::{self, Lap};
use crate::{Program, Took};

const LETTERS: usize = 26;
const WORDS: usize = 200_000;
const PREFIXES: usize = 400_000;

pub const PROGRAM: Program = Program {
    name: "trie",
    about: "200,000 words, 400,000 prefixes looked up, twice",
    phases: &["build", "first look-ups", "second"],
    sequential,
    also_sequential: &[],
    rayon: with_rayon,
    shared: &[
        ("objects", over_objects),
        ("passes", in_passes),
        ("DistMap", over_dist_map),
    ],
};

/// Four to ten letters each, the first ones of the alphabet more often.
type Word = Vec<u8>;

fn words(count: usize, seed: u64, shortest: u64) -> Vec<Word> {
    let mut random = SplitMix64(seed);
    let mut letter = |_| {
        let (one, other) = (random.below(26), random.below(26));
        one.min(other) as u8
    };
    let mut lengths = SplitMix64(!seed);
    let word = |_| {
        let length = shortest + lengths.below(7);
        (0..length).map(&mut letter).collect()
    };
    (0..count).map(word).collect()
}

fn input() -> (Vec<Word>, Vec<Word>) {
    (words(WORDS, 1, 4), words(PREFIXES, 2, 2))
}

#[derive(Default)]
struct Plain {
    words: u32,
    children: [Option<Box<Plain>>; LETTERS],
}

impl Plain {
    fn insert(&mut self, word: &[u8]) {
        let mut at = self;
        for letter in word {
            at = at.children[usize::from(*letter)].get_or_insert_default();
        }
        at.words += 1;
    }
}

/// How deep a prefix is found, and how many words end there.
fn depth(tops: &[Plain], prefix: &[u8]) -> u64 {
    let mut at = &tops[usize::from(prefix[0])];
    for (depth, letter) in prefix.iter().enumerate().skip(1) {
        match &at.children[usize::from(*letter)] {
            Some(child) => at = child,
            None => return depth as u64,
        }
    }
    prefix.len() as u64 + u64::from(at.words)
}

fn sequential() -> Outcome<Took> {
    let (words, prefixes) = input();
    let (tops, build) = lap::alone(|| {
        let mut tops: Vec<Plain> = (0..LETTERS).map(|_| Plain::default()).collect();
        for word in &words {
            tops[usize::from(word[0])].insert(&word[1..]);
        }
        tops
    });
    let look_up = || {
        prefixes
            .iter()
            .map(|prefix| depth(&tops, prefix))
            .sum::<u64>()
    };
    let (found, first) = lap::alone(look_up);
    let (again, second) = lap::alone(look_up);
    Ok(took([build, first, second], found + again))
}

fn with_rayon() -> Outcome<Took> {
    let (words, prefixes) = input();
    let (tops, build) = lap::by_others(|| {
        let top = |letter: usize| {
            let mut top = Plain::default();
            for word in words.iter().filter(|word| usize::from(word[0]) == letter) {
                top.insert(&word[1..]);
            }
            top
        };
        (0..LETTERS)
            .into_par_iter()
            .map(top)
            .collect::<Vec<Plain>>()
    });
    let look_up = || {
        let depths = prefixes.par_iter().map(|prefix| depth(&tops, prefix));
        depths.sum::<u64>()
    };
    let (found, first) = lap::by_others(look_up);
    let (again, second) = lap::by_others(look_up);
    Ok(took([build, first, second], found + again))
}

fn took(laps: [Lap; 3], found: u64) -> Took {
    Took {
        laps: laps.to_vec(),
        found,
    }
}

#[derive(Share, Clone, Copy, Default)]
struct Letter {
    words: u32,
    children: [Option<Ref<Letter>>; LETTERS],
}

fn insert(w: &mut Worker<'_>, top: Ref<Letter>, word: &[u8]) {
    let mut at = top;
    for letter in word {
        let child = at.get(w).children[usize::from(*letter)];
        at = child.unwrap_or_else(|| {
            let child = w.alloc(Letter::default());
            at.get_mut(w).children[usize::from(*letter)] = Some(child);
            child
        });
    }
    at.get_mut(w).words += 1;
}

fn shared_depth<'id>(w: &impl Access<'id>, tops: Refs<Letter>, prefix: &[u8]) -> u64 {
    let mut at = tops.at(usize::from(prefix[0]));
    for (depth, letter) in prefix.iter().enumerate().skip(1) {
        match at.get(w).children[usize::from(*letter)] {
            Some(child) => at = child,
            None => return depth as u64,
        }
    }
    prefix.len() as u64 + u64::from(at.get(w).words)
}

fn over_objects(w: &mut Worker<'_>) -> Result<Took> {
    build_and_look_up(w, |w, tops, prefixes| {
        let depths = prefixes.iter();
        Ok(depths.map(|prefix| shared_depth(&*w, tops, prefix)).sum())
    })
}

fn in_passes(w: &mut Worker<'_>) -> Result<Took> {
    build_and_look_up(w, |w, tops, prefixes| {
        let depths = w.in_passes(prefixes, |pass, prefix| {
            Ok(shared_depth(pass, tops, prefix))
        });
        Ok(depths?.iter().sum())
    })
}

/// Where `look_up` adds up the depths of some prefixes.
fn build_and_look_up(
    w: &mut Worker<'_>,
    look_up: impl Fn(&mut Worker<'_>, Refs<Letter>, &[&Word]) -> Result<u64>,
) -> Result<Took> {
    let (words, prefixes) = input();
    let (nodes, me) = (w.nodes(), w.node().index());
    let mine: Vec<&Word> = prefixes.iter().skip(me).step_by(nodes).collect();
    let (tops, build) = lap::together(w, |w| {
        let tops = w.once(|w| Ok(w.alloc_range(LETTERS, |_| Letter::default())))?;
        for word in &words {
            let first = usize::from(word[0]);
            if first % nodes == me {
                insert(w, tops.at(first), &word[1..]);
            }
        }
        Ok(tops)
    })?;
    let mut look_up = || {
        lap::together(w, |w| {
            let found = look_up(w, tops, &mine)?;
            Ok(w.all_reduce(found, |one, next| one + next)?)
        })
    };
    let (found, first) = look_up()?;
    let (again, second) = look_up()?;
    Ok(took([build, first, second], found + again))
}

/// The first letters of a word, one and then one more each time: five bits for a letter, behind a
/// bit that is set.
fn prefixes_of(word: &[u8]) -> impl Iterator<Item = u64> {
    let grows = |known: &mut u64, letter: &u8| {
        *known = *known << 5 | u64::from(*letter);
        Some(*known)
    };
    word.iter().scan(1, grows)
}

fn mapped_depth(w: &Worker<'_>, trie: &FrozenMap<u64, u32>, prefix: &[u8]) -> Result<u64> {
    let mut ends = 0;
    for (depth, known) in (0..).zip(prefixes_of(prefix)) {
        match trie.get(w, &known)? {
            Some(words) => ends = words,
            // The first letters are there always.
            None => return Ok(u64::max(depth, 1)),
        }
    }
    Ok(prefix.len() as u64 + u64::from(ends))
}

/// The trie as a map from the first letters of words to how many words end there.
fn over_dist_map(w: &mut Worker<'_>) -> Result<Took> {
    let (words, prefixes) = input();
    let (nodes, me) = (w.nodes(), w.node().index());
    let (trie, build) = lap::together(w, |w| {
        let trie = w.once(|w| Ok(DistMap::<u64, u32>::new(w)?))?;
        let mine = words.iter().skip(me).step_by(nodes);
        let counts = mine.flat_map(|word| {
            let last = word.len() - 1;
            let prefixes = (0..).zip(prefixes_of(word));
            prefixes.map(move |(place, prefix)| (prefix, u32::from(place == last)))
        });
        let adds = combine!(|words: &mut u32, more| *words += more);
        trie.update_all(w, counts, adds)?;
        Ok(trie.freeze(w)?)
    })?;
    let mut look_up = || {
        lap::together(w, |w| {
            let mine = prefixes.iter().skip(me).step_by(nodes);
            let found = mine.map(|prefix| mapped_depth(w, &trie, prefix));
            let found: u64 = found.sum::<Result<u64>>()?;
            Ok(w.all_reduce(found, |one, next| one + next)?)
        })
    };
    let (found, first) = look_up()?;
    let (again, second) = look_up()?;
    Ok(took([build, first, second], found + again))
}
