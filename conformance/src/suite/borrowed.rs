//! Arguments that callers lend to operations.

use dhole::{Counters, MessageKind, NodeId, Object, Strategy, Worker, on, replicated};
use serde::{Deserialize, Serialize};

use super::succeed;
use crate::{ByMessage, Platform};

/// An object whose operations borrow in every form.
#[derive(Serialize, Deserialize, Default)]
struct Bench {
    words: Vec<String>,
    numbers: Vec<f64>,
    calls: u64,
}

#[dhole::object(crate = "dhole")]
impl Bench {
    /// Takes what only goes to the object.
    pub fn note(
        &mut self,
        word: &str,
        bytes: &[u8],
        pair: &(u64, String),
        words: &[String],
        numbers: &[f64],
    ) -> (usize, f64) {
        self.calls += 1;
        self.words.push(format!("{word} {} {}", pair.0, pair.1));
        self.words.extend_from_slice(words);
        let bytes = bytes.iter().map(|it| usize::from(*it)).sum();
        (bytes, numbers.iter().sum())
    }

    pub fn count(&self) -> (usize, u64) {
        (self.words.len(), self.calls)
    }

    /// Gives what it had for what it gets.
    pub fn exchange(&mut self, with: &mut Vec<f64>) {
        std::mem::swap(&mut self.numbers, with);
    }

    /// Reads, and changes what it has borrowed alone.
    pub fn scale(&self, by: f64, numbers: &mut [f64], words: &mut [String], count: &mut u64) {
        numbers.iter_mut().for_each(|number| *number *= by);
        words.iter_mut().for_each(|word| word.push('!'));
        *count += numbers.len() as u64;
    }

    /// Fills what it has borrowed; whether it has seen zeros.
    pub fn fill(&self, #[out] small: &mut [i8], from: i8, #[out] wide: &mut [u128]) -> bool {
        let zeros = small.iter().all(|it| *it == 0) && wide.iter().all(|it| *it == 0);
        (from..).zip(&mut *small).for_each(|(n, to)| *to = n);
        wide.fill(u128::MAX);
        zeros
    }

    /// An error of the method is a result.
    pub fn take(&mut self, most: u64, left: &mut u64) -> Result<u64, String> {
        *left = most.saturating_sub(self.calls);
        if self.calls > most {
            return Err(format!("{} calls", self.calls));
        }
        Ok(self.calls)
    }

    /// Waits for as many calls as the caller says, in what it lends.
    #[when(self.calls >= awaited[0])]
    pub fn await_calls(&self, awaited: &mut [u64], names: &[String]) -> usize {
        awaited[0] = self.calls;
        names.len()
    }

    pub fn fail(&mut self, numbers: &mut [u64]) {
        numbers.fill(7);
        panic!("not today");
    }
}

/// Where an object may be kept among three nodes.
pub(super) fn strategies() -> [Strategy; 4] {
    let [a, b, c] = [0, 1, 2].map(|node| on(NodeId(node)));
    [a, b, c, replicated()]
}

fn uses(w: &mut Worker<'_>, bench: Object<Bench>, round: u64) -> dhole::Result<()> {
    let pair = (round, "seven".to_owned());
    let words = ["eins".to_owned(), String::new()];
    let numbers = [0.5, -0.25, 1024.0, -1024.0];
    let noted = bench.note(w, "two words", &[1, 255], &pair, &words, &numbers)?;
    assert_eq!(noted, (256, 0.25));
    let (mut scaled, mut names, mut count) = ([1.5, f64::INFINITY], words.clone(), 40);
    bench.scale(w, 2.0, &mut scaled, &mut names, &mut count)?;
    assert_eq!((scaled, count), ([3.0, f64::INFINITY], 42));
    assert_eq!(names, ["eins!", "!"]);
    let (mut small, mut wide) = ([9; 5], [1; 3]);
    assert!(bench.fill(w, &mut small, -2, &mut wide)?);
    assert_eq!((small, wide), ([-2, -1, 0, 1, 2], [u128::MAX; 3]));
    assert!(bench.fill(w, &mut [], 0, &mut [])?);
    Ok(())
}

/// Nodes call operations that borrow in every form, wherever the object is.
pub fn borrowed_arguments_reach_the_object_and_come_back(platform: &dyn Platform) {
    const ROUNDS: u64 = 5;
    succeed(platform, 3, |w| {
        for strategy in strategies() {
            let bench: Object<Bench> = w.once(|w| Ok(w.new_object(strategy, Bench::default())?))?;
            for round in 0..ROUNDS {
                uses(w, bench, round)?;
            }
            // The last of all calls lets every waiter go on.
            let mut awaited = [3 * ROUNDS];
            assert_eq!(bench.await_calls(w, &mut awaited, &[String::new()])?, 1);
            assert_eq!(awaited, [3 * ROUNDS]);
            let all = 3 * ROUNDS;
            assert_eq!(bench.count(w)?, (3 * all as usize, all));
            let mut left = 0;
            assert_eq!(bench.take(w, 100, &mut left)?, Ok(all));
            assert_eq!(left, 100 - all);
            assert!(bench.take(w, 1, &mut left)?.is_err());
            assert_eq!(left, 0, "what an error gives back is given back");
            w.barrier()?;
            // What one node has lent, the next one gets.
            for node in 0..w.nodes() {
                if w.node().index() == node {
                    let mut lent = vec![node as f64; node];
                    bench.exchange(w, &mut lent)?;
                    let before = node.saturating_sub(1);
                    assert_eq!(lent, vec![before as f64; before]);
                }
                w.barrier()?;
            }
        }
        Ok(())
    });
}

/// A call that is refused, or panics elsewhere, writes nothing into what was lent.
pub fn a_failed_call_leaves_borrowed_arguments_as_they_were(platform: &dyn Platform) {
    succeed(platform, 3, |w| {
        let bench: Object<Bench> =
            w.once(|w| Ok(w.new_object(on(NodeId(1)), Bench::default())?))?;
        if w.node() == NodeId(0) {
            for _ in 0..2 {
                let mut numbers = [1, 2, 3];
                let failed = bench.fail(w, &mut numbers);
                let words = failed.expect_err("it panics").to_string();
                assert!(words.contains("not today"), "{words}");
                assert_eq!(numbers, [1, 2, 3]);
            }
            let mut left = 5;
            assert!(bench.take(w, 0, &mut left).is_err(), "it is poisoned");
            assert_eq!(left, 5);
        }
        w.barrier()?;
        Ok(())
    });
}

/// The messages of all nodes of these kinds.
fn operations(counters: &[Counters]) -> [u64; 2] {
    let kinds = [MessageKind::OperationRequest, MessageKind::OperationReply];
    kinds.map(|kind| counters.iter().map(|it| it.sent(kind)).sum())
}

/// Each call is a request and a reply, or nothing where the object is.
pub fn a_call_with_borrowed_arguments_takes_two_messages(platform: &dyn Platform) {
    const ROUNDS: u64 = 10;
    let sent = |strategy: Strategy, rounds: u64| {
        let outcome = succeed(&ByMessage(platform), 2, |w| {
            let bench: Object<Bench> = w.once(|w| Ok(w.new_object(strategy, Bench::default())?))?;
            if w.node() == NodeId(0) {
                for round in 0..rounds {
                    uses(w, bench, round)?;
                }
            }
            w.barrier()?;
            Ok(())
        });
        operations(&outcome.counters)
    };
    // Making the object elsewhere takes a reply too.
    let of = |strategy: Strategy| {
        let (all, made) = (sent(strategy, ROUNDS), sent(strategy, 0));
        [0, 1].map(|kind| all[kind] - made[kind])
    };
    // Four calls a round.
    assert_eq!(of(on(NodeId(1))), [4 * ROUNDS; 2]);
    assert_eq!(of(on(NodeId(0))), [0; 2]);
    // Of a replica the calls that write are multicasts.
    assert_eq!(of(replicated()), [0; 2]);
}
