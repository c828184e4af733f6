//! What one node measured, kept as an object from which all nodes hear it.

use serde::{Deserialize, Serialize};

/// What was measured, round by round.
#[derive(Serialize, Deserialize)]
pub struct Took(pub Vec<f64>);

#[dhole::object]
impl Took {
    /// Replaces what was measured.
    pub fn say(&mut self, all: Vec<f64>) {
        self.0 = all;
    }

    /// What was measured.
    pub fn told(&self) -> Vec<f64> {
        self.0.clone()
    }
}
