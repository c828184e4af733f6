//! Methods that cannot be operations, and a type that has no others.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Names(Vec<String>);

#[dhole::object]
impl Names {
    pub fn close(self) {}
    pub fn name<T: Into<String>>(&mut self, name: T) {
        self.0.push(name.into());
    }
    pub fn all(&mut self, names: impl Iterator<Item = String>) {
        self.0.extend(names);
    }
    pub async fn later(&mut self) {}
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let names = w.once(|w| Ok(w.new_object(dhole::replicated(), Names(Vec::new()))?))?;
        names.name(w, "a name")?;
        names.all(w, std::iter::empty())?;
        names.later(w)?;
        Ok(names.close(w)?)
    })?;
    Ok(())
}
