//! Every example runs and finds its own assertions true.

use std::path::{Path, PathBuf};
use std::process::Command;

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

/// Where cargo puts examples, which it builds before it runs tests.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("this test is a file");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("target/<profile>/deps/<test>");
    profile.join("examples")
}

#[test]
fn every_example_runs() {
    let names = sources();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let output = Command::new(built().join(&name)).output();
        let output = output.unwrap_or_else(|error| {
            panic!("{name}: {error}: `cargo test` builds it, `cargo test --test` does not")
        });
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
}
