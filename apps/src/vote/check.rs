//! Whether what the programs of all nodes saw is sequentially consistent: whether there is one
//! order of all accesses, in which each node's stand as it made them, and each read sees the last
//! write (Lamport 1979).
//!
//! A page counts its writes, so their order is known, and which of them each read saw. What is left
//! to ask is whether the orders of the programs and the pages have a common one.

use std::collections::BTreeMap;

use dhole::NodeId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::actor::{Access, Saw};

/// An access of a program, and what it saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The page.
    pub page: u32,
    /// The access.
    pub access: Access,
    /// What it saw.
    pub saw: Saw,
}

/// What no sequentially consistent memory does.
#[derive(Error, Clone, PartialEq, Eq, Debug)]
pub enum Inconsistent {
    /// Two nodes wrote the same version of a page.
    #[error("page {page}: {first} and {second} each made write {number} of it, so one is lost")]
    Lost {
        /// The page.
        page: u32,
        /// The place of the write in the page's order.
        number: u64,
        /// One writer.
        first: NodeId,
        /// The other.
        second: NodeId,
    },
    /// A read saw a word that was not the page's at that time.
    #[error(
        "page {page}: {node} read {value} in word {word} after write {number}, where {was} was"
    )]
    Value {
        /// The page.
        page: u32,
        /// The word.
        word: u32,
        /// The reader.
        node: NodeId,
        /// The number of the page's last write that it saw.
        number: u64,
        /// What it read.
        value: u64,
        /// What the last write of the word had written.
        was: u64,
    },
    /// There is no order of all accesses.
    #[error(
        "no order of all accesses has those of each node as it made them: page {page} as {node} \
         saw it in its access {index} was older than what it had seen elsewhere"
    )]
    NoOrder {
        /// The page of an access that has no place in it.
        page: u32,
        /// Its node.
        node: NodeId,
        /// Its place among the node's accesses.
        index: usize,
    },
}

/// The accesses of a page, by the writes.
#[derive(Default)]
struct Page {
    /// The write of each number: its access, and what it wrote where.
    writes: BTreeMap<u64, (usize, u32, u64)>,
    /// The reads that saw the page after the write of this number.
    reads: BTreeMap<u64, Vec<usize>>,
}

/// Looks for an order of what each node saw, in the order of the nodes.
///
/// # Errors
/// [`Inconsistent`], the first that is found.
pub fn check(journals: &[Vec<Record>]) -> Result<(), Inconsistent> {
    let all: Vec<(NodeId, usize, Record)> = journals
        .iter()
        .enumerate()
        .flat_map(|(node, records)| {
            let node = NodeId(node as u16);
            let numbered = records.iter().copied().enumerate();
            numbered.map(move |(index, record)| (node, index, record))
        })
        .collect();
    let pages = by_page(&all)?;
    values(&all, &pages)?;
    let mut after = vec![Vec::new(); all.len()];
    for (place, pair) in all.windows(2).enumerate() {
        if pair[0].0 == pair[1].0 {
            after[place].push(place + 1);
        }
    }
    for page in pages.values() {
        let mut last: Option<usize> = None;
        let mut since = page.reads.get(&0).cloned().unwrap_or_default();
        for (number, (write, ..)) in &page.writes {
            for before in since.iter().chain(&last) {
                after[*before].push(*write);
            }
            since = page.reads.get(number).cloned().unwrap_or_default();
            after[*write].extend(&since);
            last = Some(*write);
        }
    }
    in_order(&after).map_err(|place| {
        let (node, index, record) = all[place];
        let page = record.page;
        Inconsistent::NoOrder { page, node, index }
    })
}

fn by_page(all: &[(NodeId, usize, Record)]) -> Result<BTreeMap<u32, Page>, Inconsistent> {
    let mut pages: BTreeMap<u32, Page> = BTreeMap::new();
    for (place, (node, _, record)) in all.iter().enumerate() {
        let page = pages.entry(record.page).or_default();
        let number = record.saw.writes;
        match record.access {
            Access::Load(_) => page.reads.entry(number).or_default().push(place),
            Access::Store(word, value) => {
                let before = page.writes.insert(number, (place, word, value));
                if let Some((other, ..)) = before {
                    return Err(Inconsistent::Lost {
                        page: record.page,
                        number,
                        first: all[other].0,
                        second: *node,
                    });
                }
            }
        }
    }
    Ok(pages)
}

/// Each read saw what the last write of its word had written, of those that the page had seen.
fn values(
    all: &[(NodeId, usize, Record)],
    pages: &BTreeMap<u32, Page>,
) -> Result<(), Inconsistent> {
    for (number, page) in pages {
        let mut words: BTreeMap<u32, u64> = BTreeMap::new();
        let mut reads = page.reads.iter().peekable();
        let versions = [(&0, None)].into_iter();
        let versions = versions.chain(page.writes.iter().map(|(at, write)| (at, Some(write))));
        for (at, write) in versions {
            // What is seen before this write, and was not written before it, is of no write.
            while let Some((_, places)) = reads.next_if(|(seen, _)| *seen < at) {
                read(all, (*number, &words), places)?;
            }
            words.extend(write.map(|(_, word, value)| (*word, *value)));
        }
        for (_, places) in reads {
            read(all, (*number, &words), places)?;
        }
    }
    Ok(())
}

fn read(
    all: &[(NodeId, usize, Record)],
    (page, words): (u32, &BTreeMap<u32, u64>),
    places: &[usize],
) -> Result<(), Inconsistent> {
    for place in places {
        let (node, _, record) = all[*place];
        let Access::Load(word) = record.access else {
            continue;
        };
        let was = words.get(&word).copied().unwrap_or_default();
        let Saw { writes, value } = record.saw;
        if was != value {
            return Err(Inconsistent::Value {
                page,
                word,
                node,
                number: writes,
                value,
                was,
            });
        }
    }
    Ok(())
}

/// Whether there is an order in which each comes before those that are after it; if not, one that
/// is in a circle, or after one.
fn in_order(after: &[Vec<usize>]) -> Result<(), usize> {
    let mut before = vec![0_usize; after.len()];
    after.iter().flatten().for_each(|it| before[*it] += 1);
    let mut free: Vec<usize> = (0..after.len()).filter(|it| before[*it] == 0).collect();
    while let Some(first) = free.pop() {
        for next in &after[first] {
            before[*next] -= 1;
            if before[*next] == 0 {
                free.push(*next);
            }
        }
    }
    match before.iter().position(|left| *left > 0) {
        None => Ok(()),
        Some(left) => Err(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(page: u32, writes: u64, value: u64) -> Record {
        let (access, saw) = (Access::Load(0), Saw { writes, value });
        Record { page, access, saw }
    }

    fn store(page: u32, writes: u64, value: u64) -> Record {
        let (access, saw) = (Access::Store(0, value), Saw { writes, value });
        Record { page, access, saw }
    }

    #[test]
    fn a_program_alone_sees_its_writes() {
        let mine = vec![load(0, 0, 0), store(0, 1, 7), load(0, 1, 7), store(0, 2, 8)];
        assert_eq!(check(&[mine, vec![load(0, 1, 7), load(0, 2, 8)]]), Ok(()));
    }

    #[test]
    fn two_nodes_that_each_miss_the_others_write_have_no_order() {
        let [one, other] =
            [(0, 1), (1, 0)].map(|(mine, its)| vec![store(mine, 1, 5), load(its, 0, 0)]);
        let found = check(&[one, other]);
        assert!(
            matches!(found, Err(Inconsistent::NoOrder { .. })),
            "{found:?}"
        );
    }

    #[test]
    fn a_page_that_goes_back_has_no_order() {
        let found = check(&[vec![store(0, 1, 5)], vec![load(0, 1, 5), load(0, 0, 0)]]);
        assert!(
            matches!(found, Err(Inconsistent::NoOrder { .. })),
            "{found:?}"
        );
    }

    #[test]
    fn a_write_that_another_overwrites_unseen_is_lost() {
        let found = check(&[vec![store(0, 1, 5)], vec![store(0, 1, 6)]]);
        let (first, second) = (NodeId(0), NodeId(1));
        let (page, number) = (0, 1);
        let lost = Inconsistent::Lost {
            page,
            number,
            first,
            second,
        };
        assert_eq!(found, Err(lost));
    }

    #[test]
    fn a_value_that_nobody_wrote_is_found() {
        let found = check(&[vec![store(0, 1, 5)], vec![load(0, 1, 6)]]);
        assert!(
            matches!(found, Err(Inconsistent::Value { was: 5, .. })),
            "{found:?}"
        );
        let early = check(&[vec![store(0, 1, 5)], vec![load(0, 0, 5)]]);
        assert!(
            matches!(early, Err(Inconsistent::Value { was: 0, .. })),
            "{early:?}"
        );
    }
}
