//! Operations with results that are borrowed.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Names(Vec<String>);

#[dhole::object]
impl Names {
    pub fn push(&mut self, name: &str) {
        self.0.push(name.into());
    }
    #[when(!self.0.is_empty())]
    pub fn first(&self) -> &str {
        &self.0[0]
    }
    pub fn last(&self) -> Option<&String> {
        self.0.last()
    }
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let names = w.once(|w| Ok(w.new_object(dhole::replicated(), Names(Vec::new()))?))?;
        names.push(w, "a name")?;
        assert_eq!(names.first(w)?, "a name");
        Ok(names.last(w)?.is_some())
    })?;
    Ok(())
}
