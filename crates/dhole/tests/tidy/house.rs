//! The house in order: one public name for one thing, and commits that say in a line what they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Item, UseTree, Visibility};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What a crate makes public: where each type is defined, and what reachable modules publish of
/// modules that are not.
#[derive(Default)]
struct Public {
    /// Name, file, and whether its module can be reached from outside.
    types: Vec<(String, PathBuf, bool)>,
    published: BTreeSet<String>,
}

impl Public {
    fn of(library: &Path) -> Public {
        let mut public = Public::default();
        let folder = library.parent().expect("a library lies in a folder");
        public.module(library, folder, true);
        public
    }

    fn module(&mut self, file: &Path, folder: &Path, reachable: bool) {
        let text = fs::read_to_string(file).expect("a source file");
        let parsed = syn::parse_file(&text).expect("a source file that compiles");
        self.items(&parsed.items, (file, folder), reachable);
    }

    fn items(&mut self, items: &[Item], (file, folder): (&Path, &Path), reachable: bool) {
        let is_public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
        for item in items {
            let (name, visibility) = match item {
                Item::Struct(it) => (&it.ident, &it.vis),
                Item::Enum(it) => (&it.ident, &it.vis),
                Item::Trait(it) => (&it.ident, &it.vis),
                Item::Type(it) => (&it.ident, &it.vis),
                Item::Use(it) if reachable && is_public(&it.vis) => {
                    leaves(&it.tree, &mut self.published);
                    continue;
                }
                Item::Mod(it) => {
                    let inner = folder.join(it.ident.to_string());
                    let reachable = reachable && is_public(&it.vis);
                    let beside = inner.with_extension("rs");
                    match &it.content {
                        Some((_, items)) => self.items(items, (file, &inner), reachable),
                        None if beside.exists() => self.module(&beside, &inner, reachable),
                        None => self.module(&inner.join("mod.rs"), &inner, reachable),
                    }
                    continue;
                }
                _ => continue,
            };
            if is_public(visibility) {
                let file = file.to_owned();
                self.types.push((name.to_string(), file, reachable));
            }
        }
    }

    /// The types that other crates can name, with their files.
    fn reachable(self) -> impl Iterator<Item = (String, PathBuf)> {
        let published = self.published;
        self.types.into_iter().filter_map(move |(name, file, is)| {
            (is || published.contains(&name)).then_some((name, file))
        })
    }
}

/// The names that a `use` publishes.
fn leaves(tree: &UseTree, into: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => leaves(&path.tree, into),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, into)),
        UseTree::Name(name) => drop(into.insert(name.ident.to_string())),
        UseTree::Rename(rename) => drop(into.insert(rename.rename.to_string())),
        UseTree::Glob(_) => {}
    }
}

/// Names that still stand for several things, which each have another crate's or module's word
/// before them where they are used. None may be added.
const SHARED: [&str; 5] = ["Applied", "Outcome", "Report", "Settings", "Waiting"];

#[test]
fn a_public_name_stands_for_one_thing_in_all_crates() {
    let mut files: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for folder in fs::read_dir(crates()).expect("the crates") {
        let library = folder.expect("a crate").path().join("src/lib.rs");
        if library.exists() {
            for (name, file) in Public::of(&library).reachable() {
                files.entry(name).or_default().insert(file);
            }
        }
    }
    assert!(files.len() > 200, "the crates' types were found");
    files.retain(|_, files| files.len() > 1);
    let found: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(found, SHARED, "{files:#?}");
}

/// Names by which a program has the system map memory, or change what may be done there.
const MAPPING: [&str; 9] = [
    "SYS_mmap",
    "SYS_userfaultfd",
    "madvise",
    "mmap",
    "mmap_anonymous",
    "mprotect",
    "mremap",
    "munmap",
    "process_madvise",
];

/// The crate that maps memory.
const MAPS: &str = "dhole-space";

/// The files of other crates that do, and why.
const MAP_TOO: [(&str, &str); 4] = [
    ("dhole-c/src/mapped.rs", "what C programs map is shared"),
    (
        "dhole-c/src/signals.rs",
        "a handler's stack is its thread's",
    ),
    ("dhole-c/src/stacks.rs", "stacks of threads have guards"),
    ("dhole-net/src/shm/segment.rs", "a port needs no objects"),
];

/// Whether some name is among the tokens.
fn name_one(tokens: TokenStream, names: &[&str]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => name_one(group.stream(), names),
        TokenTree::Ident(name) => names.contains(&name.to_string().as_str()),
        _ => false,
    })
}

/// The files below a folder that map memory.
fn mapping(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of a crate") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            mapping(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            if name_one(text.parse().expect("Rust"), &MAPPING) {
                found.insert(path);
            }
        }
    }
}

#[test]
fn one_crate_maps_memory_and_files_of_others_that_are_listed() {
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(crates()).expect("the crates") {
        let sources = folder.expect("a crate").path().join("src");
        mapping(&sources, &mut found);
    }
    let within = |path: &PathBuf| path.strip_prefix(crates()).expect("within").to_owned();
    let (own, others): (Vec<PathBuf>, Vec<PathBuf>) = found
        .iter()
        .map(within)
        .partition(|it| it.starts_with(MAPS));
    assert!(own.len() > 3, "what maps memory was found: {own:?}");
    let listed = MAP_TOO.map(|(file, _)| PathBuf::from(file));
    assert_eq!(others, listed);
}

/// How a thread is started.
const STARTING: [&str; 5] = [
    " thread::spawn(",
    "std::thread::spawn(",
    "thread::Builder",
    "Builder::new().name",
    "scope.spawn(",
];

/// The files that start threads, and why.
const START: [(&str, &str); 5] = [
    ("dhole-live/src/fibers.rs", "the program's"),
    ("dhole-live/src/threads.rs", "the program's"),
    ("dhole-papers/src/cache.rs", "the threads run programs"),
    ("dhole-space/src/runtime_thread.rs", "dhole's own"),
    ("dhole-view/src/threads.rs", "the program's"),
];

/// The files below a folder whose code, beside their tests, has one of these words.
fn having(folder: &Path, words: &[&str], found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of a crate") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if ["tests", "model"].contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            having(&path, words, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let is_test = |line: &&str| {
                [
                    "#[cfg(test",
                    "#[cfg(all(test",
                    "#[cfg(all(loom, test",
                    "#[cfg(loom",
                ]
                .iter()
                .any(|it| line.starts_with(it) && !line.ends_with(';'))
            };
            let mut lines = text.lines().peekable();
            while let Some(line) = lines.next() {
                let next = lines.peek().copied().unwrap_or_default();
                if is_test(&line) && next.starts_with("mod ") && next.ends_with('{') {
                    break;
                }
                let is_code = !line.trim_start().starts_with("//");
                if is_code && words.iter().any(|it| line.contains(it)) {
                    found.insert(path.clone());
                }
            }
        }
    }
}

/// The files of all crates that have one of these words are those that are listed.
#[track_caller]
fn only_these_have(words: &[&str], listed: &[(&str, &str)]) {
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(crates()).expect("the crates") {
        let sources = folder.expect("a crate").path().join("src");
        having(&sources, words, &mut found);
    }
    let within = |path: &PathBuf| path.strip_prefix(crates()).expect("within").to_owned();
    let found: Vec<PathBuf> = found.iter().map(within).collect();
    let listed: Vec<PathBuf> = listed.iter().map(|(file, _)| PathBuf::from(file)).collect();
    assert_eq!(found, listed);
}

#[test]
fn threads_of_dhole_are_started_where_their_signals_are_blocked() {
    only_these_have(&STARTING, &START);
}

/// The protocols, and how a name for some of them is made.
const PROTOCOLS: [&str; 8] = [
    "Lazy",
    "Update",
    "Home",
    "TreadMarks",
    "Member",
    "member",
    "*",
    "{",
];

/// The files that name a protocol or ask which one it is, and why. All others ask for its
/// properties and its rules.
const NAME_PROTOCOLS: [(&str, &str); 5] = [
    ("crates/dhole-cli/src/primitive.rs", "it measures one"),
    ("crates/dhole-model/src/coherence.rs", "names, properties"),
    (
        "crates/dhole-protocol/src/coherence/member.rs",
        "a member is registered",
    ),
    (
        "crates/dhole-protocol/src/coherence/members.rs",
        "a member is made",
    ),
    (
        "crates/dhole-protocol/src/coherence/rules.rs",
        "the list of rules",
    ),
];

/// The tokens of code, one string each, without modules of tests.
fn tokens(code: TokenStream, found: &mut Vec<String>) {
    let mut is_test = false;
    for token in code {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                let inner = group.stream().to_string();
                is_test |= inner.starts_with("cfg") && inner.contains("test");
                tokens(group.stream(), found);
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                if !std::mem::take(&mut is_test) {
                    found.push("{".to_owned());
                    tokens(group.stream(), found);
                    found.push("}".to_owned());
                }
            }
            TokenTree::Group(group) => {
                found.push("(".to_owned());
                tokens(group.stream(), found);
                found.push(")".to_owned());
            }
            other => {
                let word = other.to_string();
                is_test &= word != ";";
                found.push(word);
            }
        }
    }
}

/// Whether code names a protocol, or asks which one it is.
fn names_a_protocol(code: &str) -> bool {
    let mut words = Vec::new();
    tokens(code.parse().expect("Rust"), &mut words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let names = words.windows(4).any(|four| match four {
        ["Coherence", ":", ":", name] => PROTOCOLS.contains(name),
        // A second name for the type.
        [_, "Coherence", "as", _] | [_, "=", "Coherence", ";"] => true,
        [".", "member", "(", ")"] => true,
        _ => false,
    });
    let compares = |six: &[&str]| {
        let default = ["Coherence", ":", ":", "default"];
        six[2..] == default && ["==", "!="].contains(&six[..2].concat().as_str())
    };
    names || words.windows(6).any(compares)
}

/// The files below a folder that do, outside of tests.
fn naming(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            naming(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && name != "tests" {
            let text = fs::read_to_string(&path).expect("a source file");
            if names_a_protocol(&text) {
                found.insert(path);
            }
        }
    }
}

#[test]
fn the_runtime_asks_no_region_which_protocol_it_has() {
    let top = crates().join("..");
    let mut found = BTreeSet::new();
    naming(&top.join("bench/src"), &mut found);
    for room in ["apps", "crates"] {
        for folder in fs::read_dir(top.join(room)).expect("the crates") {
            let sources = folder.expect("a crate").path().join("src");
            if sources.exists() {
                naming(&sources, &mut found);
            }
        }
    }
    let within = |path: &PathBuf| path.strip_prefix(&top).expect("within").to_owned();
    let found: Vec<PathBuf> = found.iter().map(within).collect();
    let listed = NAME_PROTOCOLS.map(|(file, _)| PathBuf::from(file));
    assert_eq!(found, listed);
}

#[test]
fn a_protocol_is_named_in_many_ways() {
    let named = [
        "fn f(c: Coherence) -> bool { c == Coherence::Lazy }",
        "fn f(c: Coherence) -> bool { matches!(c, dhole_model::Coherence::Home) }",
        "use dhole_model::Coherence::Update;",
        "use dhole_model::{Coherence::{Lazy}, Oid};",
        "use Coherence::*;",
        "use Coherence::{\n    Home,\n};",
        "use dhole_model::Coherence as Protocol;",
        "type Protocol = Coherence;",
        "fn f(c: Coherence) -> bool { c.member().is_some() }",
        "fn f(c: Coherence) -> bool { c\n    .member()\n    .is_some() }",
        "fn f(c: Option<Coherence>) { c.and_then(Coherence::member); }",
        "fn f(c: Coherence) { if let Coherence::Member(_) = c {} }",
        "fn f(c: Coherence) -> bool { c != Coherence::default() }",
        "#[cfg(test)]\nmod tests;\nfn f() { g(Coherence::Lazy) }",
    ];
    for code in named {
        assert!(names_a_protocol(code), "{code}");
    }
    let unnamed = [
        "/// As [`Coherence::Lazy`].\nfn f(c: Coherence) { g(c) } // not Coherence::Home",
        "fn f() -> Coherence { Coherence::default() }",
        "fn f(c: Coherence) -> bool { c.properties().has_home }",
        "#[cfg(test)]\nmod tests { fn f() { g(Coherence::Lazy) } }",
    ];
    for code in unnamed {
        assert!(!names_a_protocol(code), "{code}");
    }
}

/// The last commit before there was a limit.
const BEFORE: &str = "ee5c578d";
const LONGEST_SUBJECT: usize = 72;

#[test]
fn commits_say_in_a_short_line_what_they_do() {
    let mut git = Command::new("git");
    git.current_dir(crates())
        .args(["log", "--format=%s", &format!("{BEFORE}..HEAD")]);
    // A package has no history, and a shallow clone only a part of it.
    let Some(log) = git.output().ok().filter(|log| log.status.success()) else {
        return;
    };
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let long = |line: &&str| line.chars().count() > LONGEST_SUBJECT;
    let found: Vec<&str> = log.lines().filter(long).collect();
    assert!(
        found.is_empty(),
        "longer than {LONGEST_SUBJECT}: {found:#?}"
    );
}
