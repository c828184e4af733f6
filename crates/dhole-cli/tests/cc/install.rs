//! `./install`: what it installs works outside of the checkout.

use std::os::unix::fs::symlink;

use super::*;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What `dhole paper` becomes, and the programs of the crates `apps` and `barnes`.
fn programs() -> Vec<String> {
    let manifest = std::fs::read_to_string(format!("{SOURCES}/apps/Cargo.toml")).unwrap();
    let mut of_binary = false;
    let mut names = vec!["dhole-papers".to_owned(), "barnes".to_owned()];
    for line in manifest.lines() {
        if line.starts_with('[') {
            of_binary = line == "[[bin]]";
        }
        let name = line.strip_prefix("name = ").filter(|_| of_binary);
        names.extend(name.map(|name| name.trim_matches('"').to_owned()));
    }
    assert!(names.len() > 8, "{names:?}");
    names
}

/// A folder like `target/release`, whose programs are scripts.
fn built_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_dhole"), folder.path().join("dhole")).unwrap();
    symlink(newest_library(), folder.path().join("libdhole_c.a")).unwrap();
    for program in programs() {
        // A child writes it: a file that is open for writing cannot be run.
        let mut write = Command::new("/bin/sh");
        write.args(["-c", "printf '%s' \"$1\" >\"$0\" && chmod 700 \"$0\""]);
        write
            .arg(folder.path().join(program))
            .arg("#!/bin/sh\necho $0 $*\n");
        assert!(write.status().unwrap().success());
    }
    folder
}

fn install(built: &Path, root: &Path) -> Output {
    let mut install = Command::new(format!("{SOURCES}/install"));
    let words = install.arg("--built").arg(built).arg(root);
    words.current_dir("/").output().unwrap()
}

#[test]
fn what_is_installed_builds_c_and_starts_a_paper_elsewhere() {
    let (built, place) = (built_folder(), tempfile::tempdir().unwrap());
    let root = place.path().join("root");
    // The second time it replaces what is there.
    for _ in 0..2 {
        let said = text(&checked(install(built.path(), &root)).stdout);
        assert!(said.contains("bin/dhole\n"), "{said}");
    }
    for program in programs() {
        assert!(root.join("lib/dhole").join(&program).exists(), "{program}");
    }
    assert!(!root.join("lib/dhole.new").exists());

    let dhole = root.join("bin/dhole");
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(&dhole);
        let command = command.args(words).current_dir(&elsewhere);
        command.env_remove("DHOLE_C").stdin(Stdio::null());
        if let Some(zeros) = without_mpi().filter(|_| words[0] == "cc" && words[1] != "--show") {
            command.arg(format!("-Wl{zeros}"));
        }
        command.output().unwrap()
    };
    let source = source("shared.c");
    let shown = text(&checked(run(&["cc", "--show", &source, "-o", "shared"])).stdout);
    let library = root.join("lib/dhole/libdhole_c.a");
    assert!(shown.contains(library.to_str().unwrap()), "{shown}");
    let headers = root.join("lib/dhole/include");
    assert!(shown.contains(headers.to_str().unwrap()), "{shown}");
    checked(run(&["cc", &source, "-o", "shared"]));
    let printed = checked(run(&["run", "-n", "2", "./shared", "globals", "4"])).stdout;
    assert!(text(&printed).contains("calls 207"), "{}", text(&printed));
    let paper = text(&checked(run(&["paper", "multiview", "--small"])).stdout);
    let started = root.join("lib/dhole/dhole-papers");
    assert_eq!(paper, format!("{} multiview --small\n", started.display()));
}

#[test]
fn what_is_not_built_is_named_and_nothing_is_installed() {
    let (built, root) = (built_folder(), tempfile::tempdir().unwrap());
    std::fs::remove_file(built.path().join("sor")).unwrap();
    let output = install(built.path(), root.path());
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("sor"), "{said}");
    assert!(!root.path().join("bin/dhole").exists());
}

#[test]
fn a_command_alone_says_what_installs_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let mut copy = Command::new("cp"); // no copy of this process is open for writing
    copy.arg(env!("CARGO_BIN_EXE_dhole")).arg(folder.path());
    assert!(copy.status().unwrap().success());
    let mut cc = Command::new(folder.path().join("dhole"));
    cc.args(["cc", &source("shared.c"), "-o", "shared"]);
    cc.env_remove("DHOLE_C").current_dir(folder.path());
    let output = cc.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("`./install`"), "{said}");
}
