//! A log that all nodes write and read. How far each client has read is its own, and goes with its
//! calls.

use dhole::{Client, Config, NodeId, on};
use serde::{Deserialize, Serialize};

/// What a client has of its own: the *user half*.
#[derive(Serialize, Deserialize, Clone, Default)]
struct Reader {
    name: String,
    read_up_to: usize,
}

/// What the log keeps, on its node: nothing of its clients.
#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<String>);

#[dhole::object(client = Reader)]
impl Log {
    /// Makes a log, on the node that keeps it.
    #[new]
    pub fn open(title: &str) -> Self {
        Log(vec![format!("log: {title}")])
    }

    /// Runs at the client.
    pub fn rename(reader: &mut Reader, name: &str) {
        reader.name = name.into();
    }

    /// Sees the user half, which goes to the log.
    pub fn append(&mut self, reader: &Reader, line: &str) {
        self.0.push(format!("{}: {line}", reader.name));
    }

    /// Changes it: it comes back too.
    pub fn news(&self, reader: &mut Reader) -> Vec<String> {
        let news = self.0[reader.read_up_to..].to_vec();
        reader.read_up_to = self.0.len();
        news
    }

    /// Takes none.
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

fn main() -> Result<(), dhole::RunError> {
    const LINES: usize = 4;
    let run = Config::nodes(3).run(|w| {
        let log = w.once(|w| Ok(Log::open_in(w, on(NodeId(0)), "what happened")?))?;
        let mut mine = Client::of(log, Reader::default());
        let before = w.counters().messages;
        mine.rename(&w.node().to_string());
        assert_eq!(w.counters().messages, before); // an ordinary call
        let mut read = Vec::new();
        for line in 0..LINES {
            mine.append(w, &format!("line {line}"))?;
            read.extend(mine.news(w)?);
        }
        w.barrier()?; // all lines are there
        read.extend(mine.news(w)?);
        assert_eq!(mine.length(w)?, 1 + LINES * w.nodes());
        assert!(mine.clone().news(w)?.is_empty()); // a clone goes on where its original is
        let mut sorted = read.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), read.len(), "each line comes once");
        Ok(read)
    })?;
    if run.report.is_first() {
        run.value.iter().for_each(|line| println!("{line}"));
    }
    assert_eq!(run.value.len(), 1 + 3 * LINES);
    Ok(())
}
