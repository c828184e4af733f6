//! Functions that make no objects.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<String>);

#[dhole::object]
impl Log {
    #[new]
    pub fn again(&self) -> Self {
        Log(self.0.clone())
    }
    #[new]
    fn hidden() -> Self {
        Log::default()
    }
    #[new]
    pub async fn later() -> Self {
        Log::default()
    }
    #[new]
    pub fn nothing() {}
    #[new]
    pub fn changes(lines: &mut Vec<String>) -> Self {
        Log(std::mem::take(lines))
    }
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Count(u64);

#[dhole::object]
impl Count {
    #[new]
    pub fn other() -> Option<Self> {
        Some(Count(0))
    }
    pub fn get(&self) -> u64 {
        self.0
    }
}

fn main() {}
