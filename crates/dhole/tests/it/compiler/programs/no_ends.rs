//! Methods that say nothing at the end of a run.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<String>);

#[dhole::object]
impl Log {
    #[on_end]
    pub fn shown(&self) -> Option<String> {
        None
    }
    #[on_end]
    fn changes(&mut self) -> Option<String> {
        self.0.pop()
    }
    #[on_end]
    fn nothing(&self) {}
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Count(u64);

#[dhole::object]
impl Count {
    #[on_end]
    fn one(&self) -> Option<String> {
        None
    }
    #[on_end]
    fn two(&self) -> Option<String> {
        None
    }
    pub fn get(&self) -> u64 {
        self.0
    }
}

fn main() {}
