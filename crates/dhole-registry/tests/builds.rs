//! The table is whole however the program is built: without optimisation and with it, in one unit
//! of code and in many, and under both kinds of link-time optimisation.

#![cfg(all(target_os = "linux", not(miri)))]

use std::path::{Path, PathBuf};
use std::process::Command;

fn rustc(arguments: &[&str], how: &[&str], into: &Path) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--out-dir"]).arg(into);
    command.arg("-L").arg(into).args(arguments).args(how);
    let built = command.output().expect("the compiler starts");
    let words = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{command:?}: {words}");
}

/// Builds the program in one way, and returns what it says.
fn said(way: &str, how: &[&str]) -> Vec<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let into = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(way);
    std::fs::create_dir_all(&into).expect("a place for what is built");
    let source = |path: &str| here.join(path).to_str().expect("a path").to_owned();
    let rlib = |name: &str| format!("{name}={}/lib{name}.rlib", into.display());
    let (ship, library) = (rlib("dhole_registry"), rlib("library"));
    let lib = ["--crate-type", "rlib", "--crate-name"];
    let [kind, rlib, name] = lib;
    rustc(
        &[kind, rlib, name, "dhole_registry", &source("src/lib.rs")],
        how,
        &into,
    );
    let of_ship = ["--extern", &ship];
    let path = source("tests/program/library.rs");
    let arguments = [&[kind, rlib, name, "library", &path][..], &of_ship].concat();
    rustc(&arguments, how, &into);
    let path = source("tests/program/program.rs");
    let arguments = [
        &["--crate-name", "program", &path, "--extern", &library][..],
        &of_ship,
    ];
    rustc(&arguments.concat(), how, &into);
    let ran = Command::new(into.join("program")).output();
    let ran = ran.expect("the program starts");
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{way}: {words}");
    let said = String::from_utf8(ran.stdout).expect("it writes text");
    said.lines().map(str::to_owned).collect()
}

fn is_whole(way: &str, how: &[&str]) {
    let said = said(way, how);
    let does: Vec<&str> = said
        .iter()
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(does[..5], ["40", "40", "40", "21", "17"], "{way}: {said:?}");
    let names = [
        "u64, program::Double",
        "u64, program::Twice",
        "i64, program::Twice",
    ];
    for (line, name) in said.iter().zip(names) {
        assert!(line.contains(name), "{way}: {line}");
    }
    assert!(
        said[5].starts_with("the name 1048576 "),
        "{way}: {}",
        said[5]
    );
}

#[test]
fn in_a_debug_build() {
    is_whole("debug", &["-Copt-level=0", "-Cdebuginfo=1"]);
}

#[test]
fn in_a_release_build() {
    is_whole("release", &["-Copt-level=3", "-Ccodegen-units=16"]);
}

#[test]
fn under_thin_link_time_optimisation() {
    is_whole(
        "thin",
        &["-Copt-level=3", "-Cembed-bitcode=yes", "-Clto=thin"],
    );
}

#[test]
fn under_fat_link_time_optimisation() {
    let how = [
        "-Copt-level=3",
        "-Cembed-bitcode=yes",
        "-Clto=fat",
        "-Ccodegen-units=1",
    ];
    is_whole("fat", &how);
}

#[test]
fn at_a_fixed_address() {
    let how = ["-Copt-level=3", "-Crelocation-model=static", "-Clto=fat"];
    is_whole("fixed", &[&how[..], &["-Cembed-bitcode=yes"]].concat());
}
