//! The house in order: one public name for one thing, and commits that say in a line what they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
