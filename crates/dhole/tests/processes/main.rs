//! Programs on real processes: a test starts this very file once for each node, and looks at what
//! each of them says and how it ends.

mod cluster;
mod failing;
mod large;
#[path = "../it/space/leaves.rs"]
mod leaves;
mod one_sided;
mod programs;
mod sharing;

/// What a started process does; nothing where the tests themselves run.
#[test]
fn as_one_node() {
    if let Ok(name) = std::env::var(cluster::PROGRAM) {
        std::process::exit(programs::run(&name));
    }
}
