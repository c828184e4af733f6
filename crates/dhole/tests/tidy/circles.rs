//! No two modules of a crate need each other, directly, through others, or by what is within them.
//! A module and those within it may.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, UseTree};

/// A module by its path from the crate's root, which is empty.
type Module = Vec<String>;

/// The modules of a crate, and what each of them names.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<Module>,
    /// Paths that a module names, from the crate's root on.
    named: BTreeMap<Module, BTreeSet<Module>>,
    /// What a module publishes of others: under which name, and which path that is.
    published: BTreeMap<(Module, String), Module>,
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        let said = it.to_token_stream().to_string().replace(' ', "");
        said == "#[cfg(test)]" || said.starts_with("#[cfg(all(test,")
    })
}

/// The attributes of what may be there for tests alone.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Const(it) => &it.attrs,
        _ => &[],
    }
}

impl Crate {
    fn of(folder: &Path) -> Crate {
        let mut found = Crate::default();
        found.file(&folder.join("lib.rs"), folder, &Vec::new());
        found
    }

    fn file(&mut self, file: &Path, folder: &Path, module: &Module) {
        let text = fs::read_to_string(file).expect("a source file");
        let parsed = syn::parse_file(&text).expect("a source file that compiles");
        self.items(&parsed.items, folder, module);
    }

    fn items(&mut self, items: &[Item], folder: &Path, module: &Module) {
        self.modules.insert(module.clone());
        for item in items {
            match item {
                Item::Mod(it) if is_test(&it.attrs) => {}
                Item::Mod(it) => {
                    let name = it.ident.to_string();
                    let (inner, within) = (folder.join(&name), [&module[..], &[name]].concat());
                    let beside = inner.with_extension("rs");
                    match &it.content {
                        Some((_, items)) => self.items(items, &inner, &within),
                        None if beside.exists() => self.file(&beside, &inner, &within),
                        None => self.file(&inner.join("mod.rs"), &inner, &within),
                    }
                }
                Item::Use(it) if is_test(&it.attrs) => {}
                Item::Use(it) => {
                    let published = !matches!(it.vis, syn::Visibility::Inherited);
                    self.uses(&it.tree, module, Vec::new(), published);
                }
                item if is_test(attributes(item)) => {}
                item => self.tokens(item.to_token_stream(), module),
            }
        }
    }

    /// Where a path leads that a module names.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        match &first[..] {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let parent = module.split_last()?.1.to_vec();
                match rest.first().map(String::as_str) {
                    Some("super") => self.absolute(&parent, rest),
                    _ => Some([&parent, rest].concat()),
                }
            }
            // A module within this one, or another crate.
            _ => Some([module, path].concat()),
        }
    }

    fn name(&mut self, module: &Module, path: &[String]) {
        if let Some(path) = self.absolute(module, path) {
            self.named.entry(module.clone()).or_default().insert(path);
        }
    }

    fn uses(&mut self, tree: &UseTree, module: &Module, before: Module, published: bool) {
        let with = |name: &dyn ToString| [&before[..], &[name.to_string()]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => {
                let before = with(&path.ident);
                return self.uses(&path.tree, module, before, published);
            }
            UseTree::Group(group) => {
                let all = group.items.iter();
                return all.for_each(|tree| self.uses(tree, module, before.clone(), published));
            }
            UseTree::Name(name) if name.ident == "self" => (before.clone(), before.last().cloned()),
            UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(it) => (with(&it.ident), Some(it.rename.to_string())),
            UseTree::Glob(_) => (before.clone(), None),
        };
        self.name(module, &path);
        if let (true, Some(name), Some(path)) = (published, name, self.absolute(module, &path)) {
            self.published.insert((module.clone(), name), path);
        }
    }

    /// Paths in code that begin at the crate's root, or at the module around.
    fn tokens(&mut self, tokens: TokenStream, module: &Module) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream(), module),
                TokenTree::Ident(first) if first == "crate" || first == "super" => {
                    let mut path = vec![first.to_string()];
                    let colon = |it: &TokenTree| it.to_string() == ":";
                    while tokens.next_if(colon).is_some() {
                        tokens.next_if(colon);
                        match tokens.next_if(|it| matches!(it, TokenTree::Ident(_))) {
                            Some(name) => path.push(name.to_string()),
                            None => break,
                        }
                    }
                    self.name(module, &path);
                }
                _ => {}
            }
        }
    }

    /// The module in which that is which a path names.
    fn home(&self, path: &Module, most: usize) -> Option<Module> {
        let ends = (0..=path.len()).rev();
        let module = ends
            .map(|end| path[..end].to_vec())
            .find(|it| self.modules.contains(it))?;
        let Some(name) = path.get(module.len()) else {
            return Some(module);
        };
        match self.published.get(&(module.clone(), name.clone())) {
            Some(path) if most > 0 => self.home(path, most - 1),
            _ => Some(module),
        }
    }

    /// What modules of one folder need of each other, with all that is within them.
    fn needs(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut needs: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, paths) in &self.named {
            for home in paths.iter().filter_map(|path| self.home(path, 8)) {
                let both = module.iter().zip(&home);
                let common = both.take_while(|(one, other)| one == other).count();
                // A module may need what is within it, and the other way round.
                if common < module.len().min(home.len()) {
                    let from = module[..=common].to_vec();
                    needs
                        .entry(from)
                        .or_default()
                        .insert(home[..=common].to_vec());
                }
            }
        }
        needs
    }

    /// What a module needs, directly or through others.
    fn reached(&self, from: &Module) -> BTreeSet<Module> {
        let needs = self.needs();
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = next.pop() {
            for needed in needs.get(&module).into_iter().flatten() {
                if seen.insert(needed.clone()) {
                    next.push(needed.clone());
                }
            }
        }
        seen
    }

    /// The circles, as the names of their modules.
    fn circles(&self) -> Vec<String> {
        let reached = |from: &Module| (from.clone(), self.reached(from));
        let reach: BTreeMap<_, _> = self.needs().keys().map(reached).collect();
        let meets =
            |one: &Module, other: &Module| reach.get(one).is_some_and(|it| it.contains(other));
        let mut circles = BTreeSet::new();
        for module in reach.keys().filter(|it| meets(it, it)) {
            let all = reach
                .keys()
                .filter(|it| meets(module, it) && meets(it, module));
            circles.insert(all.map(|it| it.join("::")).collect::<Vec<_>>().join(" "));
        }
        circles.into_iter().collect()
    }
}

/// Circles that are still there. They may become smaller, and none may be added.
const LEFT: [&str; 2] = [
    "dhole-node: __private node object spawn worker",
    "dhole-node: object::handle object::invoke object::pending object::step",
];

#[test]
fn no_modules_need_each_other_but_those_that_are_listed() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = fs::read_dir(crates).expect("the crates");
    let mut folders: Vec<_> = folders.map(|it| it.expect("a crate").path()).collect();
    folders.sort();
    let mut found = Vec::new();
    for folder in folders.iter().filter(|it| it.join("src/lib.rs").exists()) {
        let name = folder.file_name().unwrap_or_default().display();
        let circles = Crate::of(&folder.join("src")).circles();
        found.extend(circles.iter().map(|circle| format!("{name}: {circle}")));
    }
    assert_eq!(found, LEFT);
}

#[test]
fn synchronisation_needs_nothing_of_coherence() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dhole-protocol/src");
    let protocol = Crate::of(&source);
    let [sync, coherence] = ["sync", "coherence"].map(|name| vec![name.to_owned()]);
    assert!(protocol.reached(&coherence).contains(&sync));
    assert!(!protocol.reached(&sync).contains(&coherence));
}

#[test]
fn a_circle_is_found_through_others_and_through_what_is_within_a_module() {
    let mut found = Crate::default();
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    for name in ["a", "b", "b::c", "d", "e"] {
        found.modules.insert(module(name));
    }
    for (from, to) in [
        ("a", "b"),
        ("b", "b::c"),
        ("b::c", "a"),
        ("b::c", "b"),
        ("d", "e"),
    ] {
        let path = [&["crate".to_owned()][..], &module(to)].concat();
        found.name(&module(from), &path);
    }
    assert_eq!(found.circles(), ["a b"]);
    found.name(&module("e"), &module("super::d"));
    assert_eq!(found.circles(), ["a b", "d e"]);
}
