//! Clients: handles of an object with a user half of their own.

use dhole::{Client, NodeId};
use serde::{Deserialize, Serialize};

use super::borrowed::strategies;
use super::succeed;
use crate::Platform;

/// What a client has of its own.
#[derive(Serialize, Deserialize, Clone, PartialEq, Default, Debug)]
struct Reader {
    name: String,
    read_up_to: usize,
}

#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<String>);

#[dhole::object(crate = "dhole", client = Reader)]
impl Log {
    pub fn rename(reader: &mut Reader, name: &str) {
        reader.name = name.into();
    }

    pub fn name(reader: &Reader) -> &str {
        &reader.name
    }

    pub fn append(&mut self, reader: &Reader, line: &str) {
        self.0.push(format!("{}: {line}", reader.name));
    }

    pub fn news(&self, most: usize, reader: &mut Reader) -> Vec<String> {
        let news: Vec<_> = self.0[reader.read_up_to..]
            .iter()
            .take(most)
            .cloned()
            .collect();
        reader.read_up_to += news.len();
        news
    }

    #[when(self.0.len() > reader.read_up_to)]
    pub fn await_news(&self, reader: &Reader) -> usize {
        self.0.len() - reader.read_up_to
    }

    pub fn length(&self) -> usize {
        self.0.len()
    }
}

/// A client, its clone and a clone of that on another node: one log, and a user half each.
pub fn a_clone_shares_the_prototype_and_not_the_user_half(platform: &dyn Platform) {
    succeed(platform, 3, |w| {
        for strategy in strategies() {
            let log = w.once(|w| Ok(w.new_object(strategy, Log::default())?))?;
            // A client that has read two lines goes to the other nodes by value.
            let mut mine = Client::of(log, Reader::default());
            let first = w.node() == NodeId(0);
            if first {
                mine.rename("first");
                for line in ["a", "b", "c"] {
                    mine.append(w, line)?;
                }
                assert_eq!(mine.news(w, 2)?, ["first: a", "first: b"]);
            }
            let mut given = w.broadcast(mine.clone())?;
            assert_eq!(Client::user(&given).read_up_to, 2);
            given.rename(&w.node().to_string());
            assert_eq!(given.name(), w.node().to_string());
            assert_eq!(given.news(w, 9)?, ["first: c"]);
            let mut again = given.clone();
            Client::user_mut(&mut again).read_up_to = 0;
            assert_eq!(again.news(w, 1)?, ["first: a"]);
            assert_eq!(Client::user(&given).read_up_to, 3);
            assert_eq!(Client::object(&again), log);
            w.barrier()?;
            // What one appends, all read, each once.
            given.append(w, "line")?;
            w.barrier()?;
            let mut news = given.news(w, 9)?;
            news.sort();
            assert_eq!(news, ["node 0: line", "node 1: line", "node 2: line"]);
            assert!(given.news(w, 9)?.is_empty());
            assert_eq!(again.await_news(w)?, 5);
            assert_eq!(given.length(w)?, 6);
            w.barrier()?;
            if first {
                assert_eq!(mine.name(), "first");
                assert_eq!(mine.await_news(w)?, 4);
                mine.start_append(w, "started")?.wait(w)?;
                assert_eq!(mine.length(w)?, 7);
            }
            w.barrier()?;
        }
        Ok(())
    });
}

/// Each node clones what the node before it has, reads a line with it, and gives a clone on.
pub fn a_clone_of_a_clone_on_a_third_node_does_too(platform: &dyn Platform) {
    succeed(platform, 3, |w| {
        let me = w.node().index();
        for strategy in strategies() {
            let log = w.once(|w| Ok(w.new_object(strategy, Log::default())?))?;
            let mut mine = Client::of(log, Reader::default());
            if me == 0 {
                for line in ["a", "b", "c"] {
                    mine.append(w, line)?;
                }
            }
            w.barrier()?;
            for (giver, line) in [": a", ": b"].into_iter().enumerate() {
                if me == giver {
                    assert_eq!(mine.news(w, 1)?, [line]);
                }
                let given = w.all_gather(mine.clone())?;
                if me == giver + 1 {
                    mine = given[giver].clone();
                }
            }
            assert_eq!(Client::user(&mine).read_up_to, [1, 2, 2][me]);
            assert_eq!(Client::object(&mine), log);
            mine.rename(&w.node().to_string());
            mine.append(w, "line")?;
            w.barrier()?;
            assert_eq!(mine.length(w)?, 6);
            assert_eq!(mine.news(w, 9)?.len(), [5, 4, 4][me]);
            w.barrier()?;
        }
        Ok(())
    });
}
