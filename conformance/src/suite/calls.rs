//! Operations on objects, called from everywhere.

use std::collections::BTreeSet;

use dhole::{NodeId, Object, Ref, on, replicated};
use serde::{Deserialize, Serialize};

use super::{keeps_pages, succeed};
use crate::Platform;

/// A counter, and the number of the last caller, beside it in shared memory.
#[derive(Serialize, Deserialize, Default)]
struct Desk {
    calls: u64,
    left: Option<Left>,
    /// Of each node, whether what it left was not taken, or not read yet.
    unread: [bool; 3],
    stamps: u64,
}

/// The node that left a number, the number, and the object with a copy of it.
type Left = (usize, u64, Ref<u64>);

#[dhole::object(crate = "dhole")]
impl Desk {
    /// The number of the call.
    pub fn call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether a node may write its number anew, and leave it.
    pub fn may_leave(&self, node: usize) -> bool {
        !self.unread[node]
    }

    /// Leaves a number, written in shared memory too, and takes the one that was left before.
    pub fn swap(&mut self, node: usize, number: u64, written: Ref<u64>) -> Option<Left> {
        self.unread[node] = true;
        self.left.replace((node, number, written))
    }

    pub fn was_read(&mut self, node: usize) {
        self.unread[node] = false;
    }

    pub fn stamp(&mut self) {
        self.stamps += 1;
    }

    #[when(self.stamps > 0)]
    pub fn take_stamp(&mut self) {
        self.stamps -= 1;
    }
}

/// The numbers that were given out.
#[derive(Serialize, Deserialize, Default)]
struct Seen(BTreeSet<u64>);

#[dhole::object(crate = "dhole")]
impl Seen {
    pub fn is_new(&mut self, number: u64) -> bool {
        self.0.insert(number)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Flags([bool; 2]);

#[dhole::object(crate = "dhole")]
impl Flags {
    pub fn raise(&mut self, flag: usize) {
        self.0[flag] = true;
    }

    pub fn is_up(&self, flag: usize) -> bool {
        self.0[flag]
    }

    #[when(self.0[*flag])]
    pub fn await_up(&self, flag: usize) {}
}

/// Node 0 writes when node 2 has a copy, and announces it through an object. Node 2 calls the
/// object until it hears of it. After its copy, node 2 synchronises only by these calls, which
/// carry no write notices.
pub fn who_asks_until_it_hears_that_something_was_written_sees_it(platform: &dyn Platform) {
    if keeps_pages(platform) {
        return;
    }
    succeed(platform, 3, |w| {
        let numbers = w.once(|w| Ok(w.alloc_range(20, |_| 0_u64)))?;
        for number in numbers.iter() {
            let flags: Object<Flags> =
                w.once(|w| Ok(w.new_object(on(NodeId(1)), Flags::default())?))?;
            w.barrier()?;
            match w.node() {
                NodeId(0) => {
                    flags.await_up(w, 0)?;
                    *number.get_mut(w) = 1;
                    flags.raise(w, 1)?;
                }
                NodeId(2) => {
                    assert_eq!(number.read(w), 0);
                    flags.raise(w, 0)?;
                    while !flags.is_up(w, 1)? {}
                }
                _ => flags.await_up(w, 1)?,
            }
            assert_eq!(number.read(w), 1);
        }
        Ok(())
    });
}

/// Calls of which most have nothing to tell, others hand over what was written before them, or wait
/// for their guards, while the object moves: each takes effect once, and tells what it should.
pub fn calls_take_effect_once_and_tell_all_wherever_an_object_is(platform: &dyn Platform) {
    const ROUNDS: u64 = 40;
    if keeps_pages(platform) {
        return;
    }
    let outcome = succeed(platform, 3, |w| {
        let (desk, seen): (Object<Desk>, Object<Seen>) = w.once(|w| {
            let desk = w.new_object(on(NodeId(1)), Desk::default())?;
            Ok((desk, w.new_object(on(NodeId(0)), Seen::default())?))
        })?;
        // Everybody has a copy of what others write before they leave it.
        let cells = w.once(|w| Ok(w.alloc_range(3, |_| u64::MAX)))?;
        assert!(cells.iter().all(|cell| cell.read(w) == u64::MAX));
        w.barrier()?;
        let me = w.node().index();
        for round in 0..ROUNDS {
            match w.random() % 10 {
                0 | 1 if desk.may_leave(w, me)? => {
                    let mine = cells.at(me);
                    *mine.get_mut(w) = round;
                    if let Some((node, number, written)) = desk.swap(w, me, round, mine)? {
                        assert_eq!(written.read(w), number, "what was left is not visible");
                        desk.was_read(w, node)?;
                    }
                }
                2 => {
                    desk.stamp(w)?;
                    desk.take_stamp(w)?;
                }
                3 if me == 0 => {
                    let place = w.random() % 4;
                    let to = match place {
                        3 => replicated(),
                        node => on(NodeId(node as u16)),
                    };
                    Object::strategy(&desk, w, to)?;
                }
                _ => {
                    let number = desk.call(w)?;
                    assert!(seen.is_new(w, number)?, "{number} was given out twice");
                }
            }
        }
        w.barrier()?;
        assert_eq!(desk.calls(w)?, seen.count(w)? as u64);
        Ok(())
    });
    assert!(outcome.races.is_empty(), "{:?}", outcome.races);
}

/// The words, and the node of each.
#[derive(Serialize, Deserialize, Default)]
struct Board(Vec<(u16, Vec<u8>)>);

#[dhole::object(crate = "dhole")]
impl Board {
    /// Which of all words it is, and the word.
    pub fn say(&mut self, node: u16, word: Vec<u8>) -> (usize, Vec<u8>) {
        self.0.push((node, word.clone()));
        (self.0.len(), word)
    }

    /// How many words there are, once there are so many.
    #[when(self.0.len() >= *least)]
    pub fn at_least(&self, least: usize) -> usize {
        self.0.len()
    }

    pub fn nth(&self, place: usize) -> (u16, Vec<u8>) {
        self.0[place].clone()
    }
}

/// Many calls of every node are under way at once, with arguments and results of all lengths. Some
/// wait for their guards, some fail, and some are for objects on other nodes. Each has its own
/// result.
pub fn calls_that_go_together_have_each_its_own_result(platform: &dyn Platform) {
    const WORDS: usize = 150;
    succeed(platform, 3, |w| {
        let boards: [Object<Board>; 3] = w.once(|w| {
            let mut new = |strategy| w.new_object(strategy, Board::default());
            Ok([new(on(NodeId(0)))?, new(on(NodeId(2)))?, new(replicated())?])
        })?;
        let me = w.node().0;
        let word = |place: usize| {
            let length = [0, 1, 62, 63, 64, 200, 3, 2000][place % 8];
            vec![place as u8 ^ me as u8; length]
        };
        let (mut said, mut later, mut none) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..WORDS {
            let board = &boards[place / 50];
            said.push(board.start_say(w, me, word(place))?);
            if place % 7 == 0 {
                later.push((3 * (place % 50), board.start_at_least(w, 3 * (place % 50))?));
            }
            if place % 11 == 0 {
                none.push(board.start_nth(w, usize::MAX)?);
            }
            // Nobody waits for this one.
            drop(board.start_at_least(w, 50)?);
        }
        let mut places = Vec::new();
        for (place, pending) in said.into_iter().enumerate().rev() {
            let (number, same) = pending.wait(w)?;
            assert!(same == word(place), "word {place} of node {me}");
            places.push((place, number));
        }
        for (least, pending) in later {
            assert!(pending.wait(w)? >= least);
        }
        for pending in none {
            let error = pending.wait(w).unwrap_err().to_string();
            assert!(error.contains("out of bounds"), "{error}");
        }
        for (place, number) in places {
            let there = boards[place / 50].nth(w, number - 1)?;
            assert!(there == (me, word(place)), "word {place} of node {me}");
        }
        w.barrier()?;
        for board in &boards {
            assert_eq!(board.at_least(w, 0)?, WORDS);
        }
        Ok(())
    });
}
