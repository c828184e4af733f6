//! Every example runs and finds its own assertions true, but for one that shows an error.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = std::fs::read_dir(folder).expect("examples");
    let name = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.expect("a file").path();
        let name = path.file_stem().expect("a name");
        name.to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = files.map(name).collect();
    names.sort();
    names
}

/// The example that ends with an error.
const FAILS: &str = "deadlock";

/// The variable that names the folder of examples that are built already. Without it a test waits
/// for every other cargo that builds.
const EXAMPLES: &str = "DHOLE_EXAMPLES";

/// Builds the examples, once; where they are.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| std::env::var_os(EXAMPLES).map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    // As `cargo test --workspace` has built them.
    let here = std::env::current_exe().expect("this program");
    let folder = here.parent().and_then(Path::parent).expect("its folder");
    let target = folder.parent().expect("what is built");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--workspace", "--examples"]);
    cargo.arg("--target-dir").arg(target);
    // With the features of the tests, or all crates would be built anew.
    let mpi = ["--features", "dhole-mpi/mpi,conformance/mpi,apps/mpi"];
    cargo.args(mpi.into_iter().filter(|_| cfg!(feature = "mpi")));
    // What cargo says of this package to its tests, and what build scripts would be run anew for.
    let ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        if ours(&name) {
            cargo.env_remove(name);
        }
    }
    cargo.args((!cfg!(debug_assertions)).then_some("--release"));
    let built = cargo.status().expect("cargo");
    assert!(built.success(), "the examples cannot be built");
    folder.join("examples")
}

#[test]
fn every_example_runs() {
    let names = sources();
    assert!(names.len() >= 4, "{names:?}");
    for name in names.into_iter().filter(|name| name != FAILS) {
        let output = Command::new(built().join(&name)).output();
        let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
}

/// What the example `kdtree` says when it is asked for this.
fn searched(arguments: &[&str]) -> Output {
    let output = Command::new(built().join("kdtree"))
        .args(arguments)
        .output();
    output.expect("it can be started")
}

#[test]
fn a_tree_of_owned_points_answers_as_one_of_referred_points() {
    let distance = |arguments: &[&str]| {
        let output = searched(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        let last = said.lines().last().unwrap_or_default().to_owned();
        assert!(last.starts_with("mean distance 0."), "{said}");
        last
    };
    let owned = distance(&["--own", "3000", "400"]);
    assert_eq!(owned, distance(&["3000", "400"]));
    assert_eq!(owned, distance(&["--prefetch", "3000", "400"]));
    assert_eq!(owned, distance(&["3000", "--own", "400", "--prefetch"]));
    assert_eq!(owned, distance(&["--unlearned", "3000", "400"]));
    assert!(owned.ends_with(", 4 checked"), "{owned}");
    // Fewer points than nodes, and nodes without a search.
    for few in [["1", "1"], ["2", "3"], ["3", "1"], ["5", "2"]] {
        distance(&few);
    }
    for wrong in [&["0"][..], &["1", "0"], &["--owned"], &["1", "2", "3"]] {
        let refused = searched(wrong);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.starts_with("usage: kdtree [--own]"), "{said}");
    }
}

/// The components of a graph in a file; a file that ends early is told with its line.
#[test]
fn components_of_a_graph_in_a_file_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let counted = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it has room");
        let output = Command::new(built().join("components")).arg(&path).output();
        output.expect("it can be started")
    };
    let output = counted("whole", "p edge 6 3\ne 1 2\ne 3 2\ne 6 5\n");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "6 vertices, 6 arcs, 3 components\n");
    let output = counted("short", "p edge 6 3\ne 1 2\n");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let words: Vec<&str> = said.split_whitespace().collect();
    let fault = "short, line 3: the file ends early";
    assert!(words.join(" ").contains(fault), "{said}");
}

/// What a user sees of an error that `main` returns: its words, a line for each wait.
#[test]
fn a_program_whose_main_returns_a_deadlock_shows_its_words() {
    let output = Command::new(built().join(FAILS))
        .env("COLUMNS", "90")
        .output();
    let output = output.expect("it can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let [first, waits @ ..] = &lines[..] else {
        panic!("nothing is said");
    };
    let node = first.strip_prefix("Error: node ").expect(&said).as_bytes()[0] as char;
    let deadlock = format!("Error: node {node} failed: node {node} is in a deadlock:");
    assert_eq!(**first, deadlock, "{said}");
    let site = |what: &str| {
        let source = include_str!("../../examples/deadlock.rs").lines();
        let (line, _) = (1..)
            .zip(source)
            .find(|(_, line)| line.contains(what))
            .expect(what);
        format!("at crates/dhole/examples/deadlock.rs:{line}:")
    };
    let [mine, others] = ["let mine", "let others"].map(site);
    let cycle = [
        format!("    node 0 waits for lock 2 {others}"),
        format!("    which node 1 acquired {mine}"),
        format!("    node 1 waits for lock 1 {others}"),
        format!("    which node 0 acquired {mine}"),
    ];
    for wait in &cycle {
        let is_there = waits[..4].iter().any(|line| line.starts_with(wait));
        assert!(is_there, "{wait}: {said}");
    }
    // Both may find it in the same moment: then both say the same.
    let other = if node == '0' { '1' } else { '0' };
    let too = format!("node {other} failed too: node {other} is in a deadlock:");
    let is_known = |line: &&str| **line == too || cycle.iter().any(|wait| line.starts_with(wait));
    assert!(
        waits[4..].iter().all(is_known),
        "nothing else is said: {said}"
    );
}

/// Runs an example in a process that may have so many KiB of address space.
fn with_address_space(kib: u64, name: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("ulimit -v {kib}; exec \"$0\""));
    shell.arg(built().join(name)).output().expect("a shell")
}

#[cfg(target_os = "linux")]
#[test]
fn where_address_space_is_limited_a_program_runs_or_says_what_to_do() {
    let output = with_address_space(4 << 20, "job_queue");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let output = with_address_space(300 << 10, "job_queue");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let words: Vec<&str> = said.split_whitespace().collect();
    let words = words.join(" ");
    for part in [
        "Error: starting 4 nodes: reserving address space for shared objects:",
        "refuses 256 MiB for 4 nodes",
        "`ulimit -v` says 307200 KiB",
        "Raise the limit (`ulimit -v unlimited`)",
    ] {
        assert!(words.contains(part), "{part}: {said}");
    }
}
