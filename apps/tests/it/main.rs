//! The programs beside their sequential versions, and their command lines.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::LazyLock;

mod command_lines;
mod dosa;
mod full_disk;
mod jackal;
mod jackal_programs;
mod memory;
mod orca;
mod processes;
mod programs;
mod raw_programs;
mod surviving;
mod tsplib;
mod uts;
mod vote;
mod water;

/// The program `barnes` of another crate. `cargo test --workspace` builds it beside these.
///
/// # Panics
/// If it is not there: a test that does not run does not pass.
fn barnes_program() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| built("barnes", "barnes"));
    &PATH
}

/// A program that `cargo build -p` another crate makes.
fn built(program: &str, in_crate: &str) -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_sor")).with_file_name(program);
    let said = path.display().to_string();
    assert!(
        path.exists(),
        "no {said}: cargo build -p {in_crate} makes it"
    );
    said
}
