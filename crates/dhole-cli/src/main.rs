//! The `dhole` command.
fn main() {}
