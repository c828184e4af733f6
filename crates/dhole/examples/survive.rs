//! A tally that outlives the nodes that write it.
//!
//! ```sh
//! dhole run --survive -n 3 -- target/release/examples/survive 2000000 &
//! kill -9 <one of the processes>
//! ```

use dhole::{Config, replicated};
use serde::{Deserialize, Serialize};

/// What each node has written last.
#[derive(Serialize, Deserialize, Default)]
struct Tally(Vec<u64>);

#[dhole::object]
impl Tally {
    pub fn write(&mut self, node: usize, number: u64) {
        self.0.resize(self.0.len().max(node + 1), 0);
        self.0[node] = number;
    }

    pub fn all(&self) -> Vec<u64> {
        self.0.clone()
    }
}

fn main() -> Result<(), dhole::RunError> {
    let most = std::env::args().nth(1).and_then(|most| most.parse().ok());
    let most: u64 = most.unwrap_or(100);
    if let Some(process) = dhole::process()? {
        eprintln!("{} is process {}", process.node, std::process::id());
    }
    let run = Config::nodes(3).survive(true).run(|w| {
        let tally = w.once(|w| Ok(w.new_object(replicated(), Tally::default())?))?;
        let me = w.node().index();
        for number in 1..=most {
            tally.write(w, me, number)?;
        }
        w.barrier()?; // of those that are left
        Ok(tally.all(w)?)
    })?;
    if run.report.is_first() {
        for lost in &run.report.lost {
            println!("{lost}");
        }
        println!("written: {:?}", run.value);
    }
    let lost = |node: usize| run.report.lost.iter().any(|lost| lost.node.index() == node);
    let mut written = run.value.iter().enumerate();
    assert!(written.all(|(node, number)| *number == most || lost(node)));
    Ok(())
}
