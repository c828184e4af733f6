//! Arguments that cannot be borrowed as they are.

use std::fmt::Debug;
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Names(Vec<String>);

#[dhole::object]
impl Names {
    pub fn for_ever(&mut self, name: &'static str) {
        self.0.push(name.into());
    }
    pub fn grow(&self, name: &mut str) {
        name.make_ascii_uppercase();
    }
    pub fn show(&self, name: &dyn Debug) -> bool {
        self.0.contains(&format!("{name:?}"))
    }
    pub fn open(&self, name: &Path) -> bool {
        name.exists()
    }
    pub fn maybe(&mut self, name: Option<&str>) {
        self.0.extend(name.map(String::from));
    }
    pub fn list(&self, #[out] names: &mut [String]) {
        names.clone_from_slice(&self.0);
    }
    pub fn count(&self, #[out] count: usize) -> usize {
        count
    }
    #[when(self.0.len() >= sizes.len())]
    pub fn sizes(&self, #[out] sizes: &mut [u64]) {
        sizes.fill(0);
    }
    pub fn all(&self) -> usize {
        self.0.len()
    }
}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let names = w.once(|w| Ok(w.new_object(dhole::replicated(), Names::default())?))?;
        names.for_ever(w, "a name")?;
        names.maybe(w, Some("a name"))?;
        names.sizes(w, &mut [0])?;
        names.list(w, &mut [])?;
        Ok(names.all(w)?)
    })?;
    Ok(())
}
