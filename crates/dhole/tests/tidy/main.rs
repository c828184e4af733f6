//! Tidiness is a test, not a habit: every Rust file of the project, line by line. A program
//! of its own, for it is run before every change lands and is built in seconds.

mod circles;
mod house;

use std::collections::BTreeSet;
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

/// The variables that code names: whole string literals, but for those of tests.
fn variables(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let names = code.split("\"DHOLE_").skip(1);
    let names = names.filter_map(|rest| rest.split_once('"').map(|(name, _)| name));
    let is_name = |name: &&str| {
        let letters = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        !name.is_empty() && name.chars().all(letters)
    };
    let names = names.filter(is_name);
    names.map(|name| format!("DHOLE_{name}")).collect()
}

#[test]
fn every_variable_that_the_sources_name_is_in_the_table() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    let in_crates = |path: &&PathBuf| path.components().any(|part| part.as_os_str() == "src");
    let texts = files.iter().filter(in_crates).map(fs::read_to_string);
    let named: BTreeSet<String> = texts.flat_map(|text| variables(&text.unwrap())).collect();
    assert!(named.len() > 20, "{named:?}");
    let known = dhole::Defaults::known();
    let is_free = |name: &str| name.starts_with(dhole::settings::UnknownVariable::FREE);
    let unknown = |name: &&String| !known.contains(&name.as_str()) && !is_free(name);
    let unknown: Vec<&String> = named.iter().filter(unknown).collect();
    assert!(unknown.is_empty(), "not in `dhole::settings`: {unknown:?}");
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

/// A sentence with more words is two.
const LONGEST_SENTENCE: usize = 45;

/// Paragraphs and list items of a page, each with its line: no code, tables or headings.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut fenced, mut follows) = (false, false);
    for (number, line) in page.lines().enumerate() {
        let line = line.trim();
        fenced ^= line.starts_with("```");
        let marker = |c: char| c.is_ascii_digit() || c == '-' || c == '*';
        let item = line.split(' ').next().is_some_and(|first| {
            !first.is_empty() && first.trim_end_matches('.').chars().all(marker)
        });
        if fenced || line.is_empty() || line.starts_with(['|', '#']) || line.starts_with("```") {
            follows = false;
            continue;
        }
        match found.last_mut().filter(|_| follows && !item) {
            Some((_, text)) => {
                text.push(' ');
                text.push_str(line);
            }
            None => found.push((number + 1, line.to_owned())),
        }
        follows = true;
    }
    found
}

/// The words of each sentence.
fn sentences(paragraph: &str) -> Vec<usize> {
    let (mut lengths, mut words) = (Vec::new(), 0);
    let mut rest = paragraph.split_whitespace().peekable();
    while let Some(word) = rest.next() {
        words += 1;
        let ends = word
            .trim_end_matches([')', '"', '*'])
            .ends_with(['.', '!', '?']);
        let begins = rest
            .peek()
            .is_none_or(|next| next.starts_with(|c: char| c.is_uppercase() || "`*([".contains(c)));
        if ends && begins {
            lengths.push(std::mem::take(&mut words));
        }
    }
    lengths.push(words);
    lengths
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of pages");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect()
}

#[test]
fn every_sentence_of_the_documents_is_short_enough_to_be_read_once() {
    let mut files = pages(&root());
    files.extend(pages(&root().join("docs")));
    assert!(files.len() > 10, "the project's pages were found");
    let mut found = Vec::new();
    for path in files {
        let page = fs::read_to_string(&path).expect("a page");
        for (line, paragraph) in paragraphs(&page) {
            let longest = sentences(&paragraph).into_iter().max().unwrap_or(0);
            if longest > LONGEST_SENTENCE {
                found.push(format!(
                    "{}:{line}: a sentence of {longest} words",
                    path.display()
                ));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Folders of the project, as the documents name them.
const FOLDERS: [&str; 9] = [
    "apps",
    "bench",
    "check",
    "conformance",
    "crates",
    "data",
    "docs",
    "examples",
    "fuzz",
];

/// Folders that pages name and that are there only once something was fuzzed.
const MADE: [&str; 2] = ["fuzz/target", "fuzz/findings"];

/// What a page names of the project: paths from its root in backquotes, and links from the page.
fn named(page: &str) -> (Vec<&str>, Vec<&str>) {
    let is_path = |text: &&str| {
        let folder = text.split_once('/').map_or("", |(folder, _)| folder);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        FOLDERS.contains(&folder) && text.chars().all(is_plain) && !MADE.contains(text)
    };
    let paths = page.split('`').filter(is_path).collect();
    let links = page.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split([')', '#']).next());
    let is_file = |link: &&str| !link.is_empty() && !link.contains("://");
    (paths, links.filter(is_file).collect())
}

#[test]
fn what_the_documents_name_exists() {
    let docs = root().join("docs");
    let mut files = pages(&root());
    files.extend(pages(&docs).into_iter().chain(pages(&docs.join("papers"))));
    let (mut names, mut missing) = (0, Vec::new());
    for path in files {
        let page = fs::read_to_string(&path).expect("a page");
        let (paths, links) = named(&page);
        let folder = path.parent().expect("a page lies in a folder");
        let from_root = paths.into_iter().map(|name| (root(), name));
        let from_page = links.into_iter().map(|name| (folder.to_owned(), name));
        for (from, name) in from_root.chain(from_page) {
            names += 1;
            if !from.join(name).exists() {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(names > 200, "paths and links were found: {names}");
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
}

#[test]
fn sentences_are_counted_as_they_are_read() {
    let page = "# A heading of many words\n\nOne two\nthree. Four `five.six` seven.\n\n- Eight\n  \
                nine.\n- Ten.\n\n```\nno words at all\n```\n| no | words |\n";
    let found = paragraphs(page);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 6, 8]);
    assert_eq!(sentences(&found[0].1), [3, 3, 0]);
    assert_eq!(sentences(&found[1].1), [3, 0]);
}

/// A walk through the functions that something takes, as the architecture lists it.
struct Walk {
    /// File and function, each pair once.
    functions: BTreeSet<(String, String)>,
    /// How many functions and files the page says there are.
    said: Vec<usize>,
}

fn walks(page: &str) -> Vec<Walk> {
    let code = |cell: &str| -> Vec<String> {
        let every_second = cell.split('`').skip(1).step_by(2);
        every_second.map(str::to_owned).collect()
    };
    let tables = page.split("| node | file | functions |").skip(1);
    let walk = |table: &str| {
        let mut walk = Walk {
            functions: BTreeSet::new(),
            said: Vec::new(),
        };
        let mut lines = table.lines().skip(2);
        for row in lines.by_ref().take_while(|row| row.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').collect();
            for file in code(cells[2]) {
                let functions = code(cells[3]).into_iter();
                walk.functions
                    .extend(functions.map(|it| (file.clone(), it)));
            }
        }
        let said = lines.next().unwrap_or_default().split(' ');
        walk.said = said.filter_map(|word| word.parse().ok()).collect();
        walk
    };
    tables.map(walk).collect()
}

#[test]
fn the_functions_of_the_architectures_walks_are_where_it_says() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the architecture");
    let walks = walks(&page);
    assert_eq!(
        walks.len(),
        4,
        "a miss, a call, an ordered write and a fault"
    );
    for Walk { functions, said } in walks {
        let mut files = BTreeSet::new();
        for (file, function) in &functions {
            let (package, module) = file.split_once('/').expect("a crate and a module");
            let path = root().join(format!("crates/{package}/src/{module}.rs"));
            let source = fs::read_to_string(&path).expect("the file of a function");
            let name = function.rsplit("::").next().expect("a name");
            let is_there = ["(", "<"].map(|next| source.contains(&format!("fn {name}{next}")));
            assert!(is_there.contains(&true), "no {function} in {file}");
            files.insert(file);
        }
        assert_eq!(said, [functions.len(), files.len()], "functions and files");
    }
}

/// The crates of dhole that a manifest names among its dependencies, without those of tests.
fn uses(manifest: &str) -> BTreeSet<&str> {
    let (mut used, mut is_list) = (BTreeSet::new(), false);
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_list = line == "[dependencies]" || line.ends_with(".dependencies]");
        }
        let name = line.split(['.', ' ']).next().unwrap_or_default();
        if is_list && (name == "dhole" || name.starts_with("dhole-")) {
            used.insert(name.trim_start_matches("dhole-"));
        }
    }
    used
}

#[test]
fn the_crates_use_what_the_architecture_says() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the architecture");
    let mut crates = 0;
    for row in page.lines().filter(|line| line.starts_with("| `dhole")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = cells[0].trim_start_matches("| ").trim_matches('`');
        let Ok(manifest) = fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml")))
        else {
            continue;
        };
        let said = cells[2].trim_end_matches(" |").split(", ");
        let said = said.map(|it| it.trim_matches('`'));
        let said: BTreeSet<&str> = said.filter(|it| *it != "nothing").collect();
        assert_eq!(uses(&manifest), said, "{name}");
        crates += 1;
    }
    let folders = fs::read_dir(root().join("crates")).expect("the crates");
    assert_eq!(crates, folders.count(), "every crate has a row");
}

/// What is packaged with a crate and also lies elsewhere in the repository: each package carries
/// the licences, and the front page of `dhole` is built from what is in its package.
#[test]
fn what_is_packaged_twice_is_the_same() {
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let crates = fs::read_dir(root().join("crates")).expect("the crates");
    let mut twice: Vec<(PathBuf, PathBuf)> = Vec::new();
    for package in crates {
        let package = package.expect("a crate").path();
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            twice.push((root().join(licence), package.join(licence)));
        }
    }
    assert!(twice.len() > 2, "there are crates");
    for page in ["coming-from.md", "guide.md", "mpi.md", "objects.md"] {
        let copy = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs")
            .join(page);
        twice.push((root().join("docs").join(page), copy));
    }
    for (one, other) in twice {
        let is_same = read(&one) == read(&other);
        assert!(is_same, "cp {} {}", one.display(), other.display());
    }
}
