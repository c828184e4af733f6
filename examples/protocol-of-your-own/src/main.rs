//! A histogram that four nodes fill under a lock, and an array of which each node writes its own
//! elements, kept consistent by one protocol of this crate. The length of the longest word, which
//! all nodes read and few write, is kept consistent by the other one.
//!
//! `dhole run -n 4 -- protocol-of-your-own` and `dhole sim --nodes 4 -- protocol-of-your-own` run
//! it on processes and in the simulator.

use dhole::protocol::CoherenceProtocol;
use dhole::{Config, Lock, RunError};
use protocol_of_your_own::Uncached;
use protocol_of_your_own::pushing::Pushing;

/// Words that the nodes count by their length.
const WORDS: &str = "a protocol of your own keeps objects consistent as you say it should";

/// The lengths that are told apart.
const LENGTHS: usize = 12;

fn main() -> Result<(), RunError> {
    let run = Config::nodes(4).coherence(Uncached::coherence()).run(|w| {
        let histogram = w.once(|w| Ok(w.alloc_range(LENGTHS, |_| 0_u32)))?;
        let words: Vec<&str> = WORDS.split(' ').collect();
        let lengths = w.once(|w| Ok(w.alloc_array::<u32>(words.len())))?;
        let longest = w.once(|w| Ok(w.under(Pushing::coherence()).alloc(0_u32)))?;
        let lock = Lock::numbered(1);
        let (me, nodes) = (w.node().index(), w.nodes());
        for (place, word) in words.iter().enumerate().skip(me).step_by(nodes) {
            *lengths.get_mut(w, place) = word.len() as u32;
            lock.with(w, |w| {
                *histogram.at(word.len()).get_mut(w) += 1;
                if word.len() as u32 > longest.read(w) {
                    *longest.get_mut(w) = word.len() as u32;
                }
                Ok(())
            })?;
        }
        w.barrier()?;
        let letters: u32 = lengths.slice(w, ..).iter().sum();
        assert_eq!(letters as usize + words.len() - 1, WORDS.len());
        let counts: Vec<u32> = histogram.iter().map(|r| r.read(w)).collect();
        Ok((counts, longest.read(w)))
    })?;
    let (counts, longest) = &run.value;
    for (length, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        println!("{count} of {length}");
    }
    println!("the longest: {longest}");
    for (protocol, sent) in &run.report.total().by_protocol {
        println!(
            "{} messages of {protocol}, {} bytes",
            sent.messages, sent.bytes
        );
    }
    Ok(())
}
