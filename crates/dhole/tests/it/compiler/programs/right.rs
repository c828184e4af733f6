//! Errors of others become a program's, and an object is used.

use dhole::{Config, Error, NodeId, on};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Names(Vec<String>);

#[dhole::object]
impl Names {
    pub fn push(&mut self, name: String) {
        self.0.push(name);
    }
}

struct Report;

impl From<Report> for Box<dyn std::error::Error + Send + Sync> {
    fn from(_: Report) -> Self {
        "a report".into()
    }
}

fn report() -> Result<u64, Report> {
    Err(Report)
}

fn main() -> Result<(), dhole::RunError> {
    Config::nodes(2).run(|w| {
        let names = w.new_object(on(NodeId(0)), Names(Vec::new()))?;
        let text = std::fs::read_to_string("names")?;
        names.push(w, text.clone())?;
        let number: u32 = text.trim().parse()?;
        let part: f64 = text.trim().parse()?;
        let under: dhole::Coherence = text.trim().parse()?;
        let of = report().map_err(Error::program)?;
        Ok((number > 0 && part > 0.0 && under == dhole::Coherence::Lazy, of))
    })?;
    Ok(())
}
