//! What the compiler says of mistakes in programs: it names what to do instead, and no second error
//! follows that is wrong.
//!
//! Each program is compiled as cargo compiled this test: with the compiler and the libraries that
//! lie beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Pairs of libraries that are tried before the test gives up.
const MOST_TRIES: usize = 64;

/// Dhole and serde as this test is linked to them.
struct Libraries {
    folder: PathBuf,
    dhole: PathBuf,
    serde: PathBuf,
}

/// The libraries of this name in a folder, the newest first.
fn named(folder: &Path, name: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("the folder of this test");
    let mut found = Vec::new();
    for file in files.filter_map(Result::ok) {
        let path = file.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_it = stem.is_some_and(|stem| stem.starts_with(&format!("lib{name}-")));
        if is_it && path.extension().is_some_and(|it| it == "rlib") {
            let made = file.metadata().and_then(|it| it.modified());
            found.push((made.expect("when it was made"), path));
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

impl Libraries {
    fn compile(&self, program: &str) -> Output {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/compiler/programs");
        let made = tempfile::tempdir().expect("a folder");
        let mut compiler = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
        compiler.args([
            "--edition",
            "2024",
            "--crate-type",
            "bin",
            "--emit=metadata",
        ]);
        compiler.arg("--out-dir").arg(made.path());
        compiler.arg("-L").arg(dependency(&self.folder));
        for (name, path) in [("dhole", &self.dhole), ("serde", &self.serde)] {
            let library = format!("{name}={}", path.display());
            compiler.args(["--extern", &library]);
        }
        compiler.arg(sources.join(format!("{program}.rs")));
        compiler.output().expect("the compiler")
    }

    /// Those with which a program compiles that is right.
    fn find() -> Libraries {
        let this = std::env::current_exe().expect("this test");
        let folder = this.parent().expect("a folder").to_owned();
        let mut said = String::new();
        let all = named(&folder, "dhole").into_iter().flat_map(|dhole| {
            let serde = named(&folder, "serde").into_iter();
            serde.map(move |serde| (dhole.clone(), serde))
        });
        for (dhole, serde) in all.take(MOST_TRIES) {
            let folder = folder.clone();
            let libraries = Libraries {
                folder,
                dhole,
                serde,
            };
            let compiled = libraries.compile("right");
            if compiled.status.success() {
                return libraries;
            }
            said = String::from_utf8_lossy(&compiled.stderr).into_owned();
        }
        panic!("no library here compiles a program that is right: {said}");
    }
}

fn dependency(folder: &Path) -> String {
    format!("dependency={}", folder.display())
}

/// What the compiler says of a program that it refuses, with so many errors.
fn refused(program: &str, errors: usize) -> String {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    let compiled = LIBRARIES.get_or_init(Libraries::find).compile(program);
    let said = String::from_utf8_lossy(&compiled.stderr).into_owned();
    assert!(!compiled.status.success(), "{program} compiles");
    let found = said.lines().filter(|line| line.starts_with("error"));
    // The last line counts them.
    let found = found.filter(|line| !line.starts_with("error: aborting"));
    assert_eq!(found.count(), errors, "{said}");
    said
}

fn says(said: &str, words: &[&str]) {
    for words in words {
        assert!(said.contains(words), "\"{words}\" is not said:\n{said}");
    }
}

#[test]
fn an_error_that_the_question_mark_does_not_turn_is_told_how_to_be_wrapped() {
    let said = refused("unknown_error", 1);
    let wrap = "wrap this error: `.map_err(dhole::Error::program)?`";
    says(&said, &[wrap, "add `impl dhole::IntoError for Report {}`"]);
}

#[test]
fn a_worker_that_is_given_to_threads_names_the_readers() {
    let readers = "lend what is present: `w.readers(|present| ..)`";
    let stays = "`w` stays on its node's thread";
    says(&refused("worker_in_threads", 1), &[stays, readers]);
    says(&refused("worker_to_a_thread", 1), &[stays, readers]);
}

#[test]
fn an_array_of_what_is_no_number_names_the_allocation_with_values() {
    let said = refused("array_of_points", 1);
    says(&said, &["`w.alloc_array_with(len, |i| value)`"]);
}

#[test]
fn a_borrowed_result_of_an_operation_is_all_that_is_refused() {
    let said = refused("borrowed_result", 2);
    says(
        &said,
        &[
            "a result is given by value",
            "a `String` in place of a `&str`",
            "a result has no reference within it",
        ],
    );
    assert!(!said.contains("has no operations"), "{said}");
}

#[test]
fn an_argument_that_cannot_be_borrowed_names_what_to_do_instead() {
    let said = refused("refused_arguments", 8);
    says(
        &said,
        &[
            "is borrowed for the call alone: `&T`, without a lifetime",
            "`&mut String` in place of `&mut str`",
            "a type with a name in place of `dyn`",
            "a type with a size: `&PathBuf`, not `&Path` (a `Path` of your own with its path",
            "has no reference within it",
            "a slice of numbers, as `&mut [f64]` is: others without `#[out]`",
            "that is `#[out]` is a slice of numbers, as `&mut [f64]` is",
            "what is `#[out]` has no value before the operation",
        ],
    );
}

#[test]
fn an_operation_that_gives_something_back_in_its_arguments_is_not_started() {
    let said = refused("started_with_outs", 2);
    says(&said, &["cannot be started", "call it without `start_`"]);
}

#[test]
fn a_user_half_that_is_not_lent_names_what_to_do_instead() {
    let said = refused("clients", 6);
    says(
        &said,
        &[
            "a local method is an ordinary call of the client: it cannot be `async`",
            "an operation borrows the user half",
            "an operation has one user half",
            "its type has no lifetimes",
            "cannot borrow `*reader` as mutable",
            "name the type of the user half: `#[dhole::object(client = User)] impl Plain`",
        ],
    );
}

#[test]
fn a_function_that_makes_no_object_names_what_a_constructor_is() {
    let said = refused("constructors", 6);
    says(
        &said,
        &[
            "a constructor makes the object, so it takes no `self`",
            "a constructor is called by programs: it is `pub`",
            "it is not `async`, not `unsafe`",
            "a constructor returns `Self`, or a `Result<Self, E>`",
            "`&T` in place of `&mut T`",
            "a constructor of `Count` does not return",
            "it returns `Self`, or a `Result<Self, E>` whose error can be displayed",
        ],
    );
}

#[test]
fn a_method_that_cannot_say_what_is_left_names_what_it_is_to_be() {
    let said = refused("no_ends", 4);
    says(
        &said,
        &[
            "the runtime calls what is `#[on_end]`, and no program: it is not `pub`",
            "what is `#[on_end]` is `fn name(&self) -> Option<String>`",
            "a type has one method `#[on_end]`",
        ],
    );
}

#[test]
fn other_methods_that_are_no_operations_are_all_that_is_refused() {
    let said = refused("no_operations", 4);
    let by_reference = "an operation takes `&self` if it only reads, or `&mut self`";
    says(&said, &[by_reference, "no parameters of its own"]);
}

#[test]
fn a_key_that_processes_hash_differently_names_what_to_do_instead() {
    let said = refused("keys", 7);
    says(
        &said,
        &[
            "`f64` is no key of a `DistMap`: it is not known that all nodes hash it alike",
            "take its bits, `x.to_bits()`",
            "`Unnamed` is no key of a `DistMap`",
            "By(u64, Unnamed),",
            "`#[derive(dhole::collections::DistHash)]`",
            "a union is no key",
            "a key does not borrow, for it goes to other nodes",
        ],
    );
    assert!(!said.contains("Place<u8>"), "{said}");
}

#[test]
fn a_borrowed_argument_of_a_process_is_refused_once() {
    let said = refused("borrowed_by_a_process", 1);
    says(&said, &["op!(greet)", "`&str` must implement"]);
}
