//! Clients: what travels of the user half, and what becomes of it where the object moves.

use dhole::{Client, Config, NodeId, Object, on, replicated};
use serde::{Deserialize, Serialize};

/// What a client has of its own.
#[derive(Serialize, Deserialize, Clone, Default)]
struct Reader {
    padding: Vec<u8>,
    read_up_to: usize,
}

#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<u64>);

#[dhole::object(client = Reader)]
impl Log {
    pub fn pad(reader: &mut Reader, bytes: usize) {
        reader.padding = vec![7; bytes];
    }

    pub fn append(&mut self, line: u64) {
        self.0.push(line);
    }

    pub fn news(&self, reader: &mut Reader) -> Vec<u64> {
        let news = self.0[reader.read_up_to..].to_vec();
        reader.read_up_to = self.0.len();
        news
    }

    pub fn plain(&self) {}

    pub fn seen(&self, reader: &Reader) -> bool {
        reader.padding.iter().all(|it| *it == 7)
    }

    pub fn changed(&self, reader: &mut Reader) -> bool {
        reader.padding.reverse();
        true
    }
}

fn settings(nodes: usize, seed: u64) -> dhole::sim::Settings {
    let mut settings = dhole::sim::Settings::fixed_cost(nodes);
    (settings.seed, settings.network.jitter) = (seed, 0.9);
    settings
}

/// The bytes of 1,000 calls by node 0 of an object on node 1, beyond those of a run without them.
fn bytes_of(
    padding: usize,
    calls: impl Fn(&mut Client<Log>, &mut dhole::Worker<'_>) + Sync,
) -> u64 {
    let bytes = |rounds: usize| {
        let run = Config::nodes(2).simulate(settings(2, 1), |w| {
            let log = w.once(|w| Ok(w.new_object(on(NodeId(1)), Log::default())?))?;
            let mut client = Client::of(log, Reader::default());
            let before = w.counters().messages;
            for _ in 0..rounds {
                client.pad(padding);
            }
            assert_eq!(w.counters().messages, before, "a local method");
            if w.node() == NodeId(0) {
                (0..rounds).for_each(|_| calls(&mut client, w));
                assert_eq!(w.counters().messages - before, rounds as u64);
            }
            w.barrier()?;
            Ok(())
        });
        run.expect("it runs").report.total().data_bytes
    };
    bytes(1_000) - bytes(0)
}

#[test]
fn a_user_half_adds_its_own_bytes_to_the_calls_that_name_it_and_to_no_others() {
    for (padding, varint) in [(0, 1), (1, 1), (127, 1), (128, 2), (5_000, 2)] {
        // The padding with its length, and where the client has read up to.
        let user_half = 1_000 * (padding as u64 + varint + 1);
        // A result of one byte where the other has none.
        let without = bytes_of(padding, |it, w| it.plain(w).expect("a call"));
        let there = bytes_of(padding, |it, w| assert!(it.seen(w).expect("a call")));
        let back = bytes_of(padding, |it, w| assert!(it.changed(w).expect("a call")));
        assert_eq!(there - without, user_half + 1_000, "{padding}");
        assert_eq!(back - without, 2 * user_half + 1_000, "{padding}");
    }
}

#[test]
fn a_replicated_dual_object_is_read_without_a_message() {
    let run = Config::nodes(3).run(|w| {
        let log = w.once(|w| Ok(w.new_object(replicated(), Log(vec![1, 2]))?))?;
        let mut client = Client::of(log, Reader::default());
        let before = w.counters().messages;
        for _ in 0..100 {
            assert!(client.seen(w)?);
            assert_eq!(client.news(w)?.len() % 2, 0);
        }
        assert_eq!(w.counters().messages, before);
        Ok(())
    });
    run.expect("it runs");
}

/// Every client reads each line once, while the log moves and is replicated.
#[test]
fn a_dual_object_moves_while_likenesses_are_in_use() {
    for seed in 0..60 {
        let run = Config::nodes(3).simulate(settings(3, seed), |w| {
            let log = w.once(|w| Ok(w.new_object(on(NodeId(1)), Log::default())?))?;
            let me = w.node().0;
            let (mut client, mut read) = (Client::of(log, Reader::default()), Vec::new());
            for step in 0..8_u16 {
                w.work(w.random() % 3000);
                client.append(w, u64::from(step * 3 + me))?;
                read.extend(client.news(w)?);
                if (step + me) % 3 == 0 {
                    let to = [replicated(), on(NodeId(step % 3)), on(NodeId(2))];
                    Object::strategy(&log, w, to[(w.random() % 3) as usize])?;
                }
            }
            w.barrier()?;
            read.extend(client.news(w)?);
            read.sort_unstable();
            assert_eq!(read, (0..24).collect::<Vec<_>>());
            w.barrier()?;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
