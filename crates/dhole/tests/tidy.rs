//! Tidiness is a test, not a habit: every Rust file of the project, line by line.

use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_LINE: usize = 100;
const LONGEST_FILE: usize = 800;
/// Folders that hold no source of ours.
const SKIPPED: [&str; 2] = ["target", ".git"];
/// Written in two halves, so that this file does not find itself.
const STRAY: [&str; 4] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    "\t",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry of the folder").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && !SKIPPED.iter().any(|skipped| name.starts_with(skipped)) {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// Code that somebody left in a comment: a line that ends as a statement does.
fn is_commented_out(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else {
        return false;
    };
    let documentation = comment.starts_with('/') || comment.starts_with('!');
    let code = comment.trim();
    !documentation
        && (code.ends_with(';') || code.ends_with('{') || code == "}")
        && code.chars().any(|c| "(=}{".contains(c))
}

fn complaints(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut complain = |line: usize, what: &str| {
        found.push(format!("{}:{}: {what}", path.display(), line + 1));
    };
    for (number, line) in text.lines().enumerate() {
        let table = line.trim_start().starts_with("//! |");
        if line.chars().count() > LONGEST_LINE && !table && !line.contains("://") {
            complain(number, "the line is too long");
        }
        if !line.is_ascii() {
            complain(number, "a character that is not ASCII");
        }
        for stray in STRAY {
            if line.contains(stray) {
                complain(number, &format!("a stray {stray:?}"));
            }
        }
        if is_commented_out(line) {
            complain(number, "commented-out code");
        }
    }
    if text.lines().count() > LONGEST_FILE {
        complain(
            LONGEST_FILE,
            "the file is too long: do two ideas share a room?",
        );
    }
    found
}

#[test]
fn every_source_file_is_tidy() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    assert!(files.len() > 30, "the project's sources were found");
    let found: Vec<String> = files
        .iter()
        .flat_map(|path| complaints(path, &fs::read_to_string(path).expect("a source file")))
        .collect();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_check_itself_finds_what_it_looks_for() {
    let long = "x".repeat(LONGEST_LINE + 1);
    let untidy = format!(
        "{long}\n// let x = f();\n{}x)\nfn \u{e9}() {{}}\n",
        STRAY[2]
    );
    assert_eq!(complaints(Path::new("x.rs"), &untidy).len(), 4);
    assert_eq!(
        complaints(Path::new("x.rs"), "// Why this is so: because.\n"),
        [""; 0]
    );
}
