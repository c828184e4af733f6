//! Services that find each other by name. No node hands a handle to another: each binds what it
//! offers, and waits for what it needs.

use dhole::names::NameError;
use dhole::{Config, JobQueue, NodeId, Object, on};
use serde::{Deserialize, Serialize};

/// The words that a node knows.
#[derive(Serialize, Deserialize, Default)]
struct Dictionary(Vec<(String, String)>);

#[dhole::object]
impl Dictionary {
    pub fn learn(&mut self, word: &str, meaning: &str) {
        self.0.push((word.into(), meaning.into()));
    }

    pub fn meaning(&self, word: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| known == word);
        found.map(|(_, meaning)| meaning.clone())
    }
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(3).run(|w| {
        // Node 1 offers a dictionary, when it is filled.
        if w.node() == NodeId(1) {
            let words = w.new_object(on(NodeId(1)), Dictionary::default())?;
            words.learn(w, "cuon alpinus", "dhole")?;
            w.bind("dictionary", &words)?;
        }
        let words: Object<Dictionary> = w.await_name("dictionary")?;
        let meaning = words.meaning(w, "cuon alpinus")?;
        assert_eq!(meaning.as_deref(), Some("dhole"));

        // Whichever node asks first makes the queue; all get the same one.
        let squares = w.bind_or_get("squares", |w| Ok(JobQueue::<u64, u64>::of(w, 1..=100)?))?;
        squares.work(w, |_, n| Ok(n * n))?;
        let sum: u64 = squares.results(w)?.into_iter().sum();
        w.barrier()?;

        // A name that is misspelt is an error that knows better.
        let misspelt = w.lookup::<Object<Dictionary>>("dictionery");
        let Err(NameError::NoSuch { similar, .. }) = misspelt else {
            return Err("nobody has bound that".into());
        };
        assert_eq!(similar.as_deref(), Some("dictionary"));
        assert_eq!(w.names()?, ["dictionary", "squares"]);
        w.barrier()?;
        if w.node() == NodeId(1) {
            w.unbind("dictionary")?;
        }
        Ok(sum)
    })?;
    if run.report.is_first() {
        println!("the sum of the squares is {}", run.value);
    }
    assert_eq!(run.value, 338_350);
    Ok(())
}
