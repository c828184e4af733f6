//! Every example runs and finds its own assertions true.

use std::path::Path;
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

#[test]
fn every_example_runs() {
    let names = sources();
    assert!(names.len() >= 4, "{names:?}");
    // As `cargo test --workspace` has built them.
    let here = std::env::current_exe().expect("this program");
    let folder = here.parent().and_then(Path::parent).expect("its folder");
    let target = folder.parent().expect("what is built");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--workspace", "--examples"]);
    cargo.arg("--target-dir").arg(target);
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
    for name in names {
        let output = Command::new(folder.join("examples").join(&name)).output();
        let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
}
