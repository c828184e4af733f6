//! What the command `dhole` shares with the programs that it starts.
#![forbid(unsafe_code)]

pub mod paper;
pub mod primitive;
pub mod say;
