//! Red zones: bytes behind each allocation that no program should write
//! ([`MemoryLayout::Isolate`](dhole_node::MemoryLayout)).
//!
//! A minipage has whole pages of its own then. Behind the allocation's bytes lies a pattern, and at
//! the end of the last page what each node needs to check it: how many bytes the allocation has,
//! and which place in the program made it. All of that is a part of the minipage, so it comes with
//! each copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use dhole_model::NodeId;
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::{MINIPAGE_PAGE, Minipage, MinipageRun};

use crate::arena::Arena;
use crate::sites::shortened;

/// Bytes of the pattern at the least.
const LEAST_PATTERN: u64 = 64;

/// Bytes of words about the place at the most.
const MOST_WORDS: usize = 256;

/// The last bytes of a red zone.
const MARK: u64 = 0x9e4d_5a6f_6e65_c7b1;

/// Behind the words: their length, the bytes of the allocation, and the mark.
const NUMBERS: u64 = 2 + 4 + 8;

/// What is behind an allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
struct RedZone {
    /// Bytes of the allocation.
    bytes: u32,
    /// Bytes of the minipage.
    all: u32,
    /// How many bytes a program's allocation has, and the place in the program.
    words: Arc<str>,
}

impl RedZone {
    /// How many bytes a minipage has, whole pages, behind whose first bytes one fits.
    fn pages_for(bytes: u64, words: &str) -> u64 {
        let all = bytes + LEAST_PATTERN + words.len() as u64 + NUMBERS;
        all.next_multiple_of(MINIPAGE_PAGE)
    }

    /// All of its bytes.
    fn contents(&self) -> Vec<u8> {
        let len = (self.all - self.bytes) as usize;
        // Of a byte that a program writes often, each 256th is the same.
        let pattern = (0..len).map(|at| (at as u8).wrapping_mul(167).wrapping_add(0x5b));
        let mut contents: Vec<u8> = pattern.collect();
        let words = self.words.as_bytes();
        let tail = [
            words,
            &(words.len() as u16).to_le_bytes(),
            &self.bytes.to_le_bytes(),
            &MARK.to_le_bytes(),
        ];
        let tail = tail.concat();
        contents[len - tail.len()..].copy_from_slice(&tail);
        contents
    }

    /// The one at the end of a minipage's bytes.
    fn parse(found: &[u8]) -> Option<RedZone> {
        let rest = found.strip_suffix(&MARK.to_le_bytes())?;
        let (rest, bytes) = rest.split_last_chunk::<4>()?;
        let (rest, len) = rest.split_last_chunk::<2>()?;
        let words = rest.len().checked_sub(u16::from_le_bytes(*len).into())?;
        let zone = RedZone {
            bytes: u32::from_le_bytes(*bytes),
            all: found.len() as u32,
            words: std::str::from_utf8(&rest[words..]).ok()?.into(),
        };
        // What another node has sent may say anything.
        let needed = LEAST_PATTERN + zone.words.len() as u64 + NUMBERS;
        let own = found.get(zone.bytes as usize..)?;
        if (own.len() as u64) < needed {
            return None;
        }
        (own == zone.contents()).then_some(zone)
    }

    /// Its place in a minipage.
    fn within(&self, minipage: Minipage) -> Minipage {
        Minipage {
            at: minipage.at + u64::from(self.bytes),
            bytes: self.all - self.bytes,
        }
    }
}

/// Minipages that were allocated together.
struct Allocated {
    /// The address behind the last.
    end: u64,
    zone: Arc<RedZone>,
}

/// The red zones of a node.
pub(crate) struct RedZones {
    node: NodeId,
    /// Programs know places by their addresses in the process.
    is_placed: bool,
    /// By the address of the first: what this node manages.
    allocated: BTreeMap<u64, Allocated>,
    /// By address: minipages of which this node has had a copy.
    known: BTreeMap<u64, Arc<RedZone>>,
}

impl RedZones {
    pub fn new(node: NodeId, is_placed: bool) -> RedZones {
        RedZones {
            node,
            is_placed,
            allocated: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// Bytes of a minipage with so many for the program.
    pub fn minipage_bytes(bytes: u64, words: &str) -> u64 {
        RedZone::pages_for(bytes, &cut(words))
    }

    /// This node has allocated minipages, of which each has so many bytes for the program, with
    /// words about it.
    pub fn allocated(&mut self, run: &MinipageRun, bytes: u64, words: &str) {
        let zone = Arc::new(RedZone {
            bytes: bytes as u32,
            all: run.bytes,
            words: cut(words).into(),
        });
        let end = run.at + run.count * u64::from(run.bytes);
        self.allocated.insert(run.at, Allocated { end, zone });
    }

    /// A copy of a minipage has come, or threads of this node are to have the first one.
    pub fn learn(&mut self, minipage: Minipage, arena: &Arena) {
        if self.known.contains_key(&minipage.at) {
            return;
        }
        let before = self.allocated.range(..=minipage.at).next_back();
        let own = before.filter(|(_, it)| minipage.at < it.end);
        let zone = match own {
            Some((_, allocated)) => {
                let zone = Arc::clone(&allocated.zone);
                arena.scatter(zone.within(minipage), &zone.contents());
                Some(zone)
            }
            None => {
                let mut found = Vec::new();
                arena.gather(minipage, &mut found);
                RedZone::parse(&found).map(Arc::new)
            }
        };
        if let Some(zone) = zone {
            self.known.insert(minipage.at, zone);
        }
    }

    /// An address as the program knows it.
    fn named(&self, at: u64, arena: &Arena) -> u64 {
        let place = arena.place_of(at, 1).filter(|_| self.is_placed);
        place.map_or(at, |place| place.addr().get() as u64)
    }

    /// A minipage is freed, and holds zeros.
    pub fn forget(&mut self, minipage: Minipage) {
        self.known.remove(&minipage.at);
    }

    /// Whether a minipage's red zone is as it was.
    ///
    /// # Errors
    /// [`ProtocolError::MinipageOverflow`]
    pub fn check(&self, minipage: Minipage, arena: &Arena) -> Result<(), ProtocolError> {
        let zone = self.known.get(&minipage.at);
        zone.map_or(Ok(()), |zone| self.check_one(minipage.at, zone, arena))
    }

    /// As [`check`](RedZones::check), of all minipages of which this node has had a copy.
    ///
    /// # Errors
    /// As there, of the first.
    pub fn check_all(&self, arena: &Arena) -> Result<(), ProtocolError> {
        let mut all = self.known.iter();
        all.try_for_each(|(at, zone)| self.check_one(*at, zone, arena))
    }

    fn check_one(&self, at: u64, zone: &RedZone, arena: &Arena) -> Result<(), ProtocolError> {
        let minipage = Minipage {
            at,
            bytes: zone.all,
        };
        let mut found = Vec::new();
        arena.gather(zone.within(minipage), &mut found);
        let expected = zone.contents();
        let mut pairs = found.iter().zip(&expected);
        match pairs.rposition(|(found, expected)| found != expected) {
            None => Ok(()),
            Some(last) => Err(ProtocolError::MinipageOverflow {
                end: self.named(at, arena) + u64::from(zone.bytes),
                past: last as u32 + 1,
                node: self.node,
                allocation: zone.words.to_string(),
            }),
        }
    }
}

fn cut(words: &str) -> String {
    let mut words = shortened(words.to_owned());
    let mut end = words.len().min(MOST_WORDS);
    while !words.is_char_boundary(end) {
        end -= 1;
    }
    words.truncate(end);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(bytes: u32, words: &str) -> RedZone {
        RedZone {
            bytes,
            all: RedZone::pages_for(bytes.into(), words) as u32,
            words: words.into(),
        }
    }

    #[test]
    fn a_zone_is_found_behind_any_allocation_and_nowhere_else() {
        for bytes in [1, 100, 3_900, 4_000, 4_096, 8_191, 100_000] {
            let zone = zone(bytes, "src/main.rs:12:7");
            let zone_words = zone.words.len();
            assert!(zone.all.is_multiple_of(4096) && zone.all - zone.bytes >= 94);
            let mut all = vec![7; bytes as usize];
            all.extend(zone.contents());
            assert_eq!(all.len(), zone.all as usize);
            assert_eq!(RedZone::parse(&all), Some(zone));
            // The first byte of the pattern, the last one, and the numbers.
            let last = all.len() - (NUMBERS as usize + zone_words) - 1;
            for wrong in [bytes as usize, last, all.len() - 9, all.len() - 1] {
                all[wrong] ^= 1;
                assert_eq!(RedZone::parse(&all), None, "{wrong}");
                all[wrong] ^= 1;
            }
        }
        let mut forged = vec![0; 4096];
        for bytes in [0, 4_082, 4_096, u32::MAX] {
            let numbers = [
                &0_u16.to_le_bytes()[..],
                &bytes.to_le_bytes(),
                &MARK.to_le_bytes(),
            ];
            forged[4_082..].copy_from_slice(&numbers.concat());
            assert_eq!(RedZone::parse(&forged), None, "{bytes}");
        }
        assert_eq!(RedZone::parse(&[]), None);
        assert_eq!(RedZone::parse(&MARK.to_le_bytes()), None);
        assert_eq!(cut(&"\u{e4}".repeat(300)).len(), 256);
    }
}
