//! `dhole cc`: programs in C on one process and on several, which print what they print on one.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "cc/ending.rs"]
mod ending;
#[path = "cc/gdb.rs"]
mod gdb;
#[path = "cc/install.rs"]
mod install;
#[path = "cc/isolate.rs"]
mod isolate;
#[path = "cc/mapped.rs"]
mod mapped;
#[path = "cc/open_posix.rs"]
mod open_posix;
#[path = "cc/place.rs"]
mod place;
#[path = "cc/posix.rs"]
mod posix;
#[path = "cc/release.rs"]
mod release;
#[path = "cc/report.rs"]
mod report;
#[path = "cc/splash.rs"]
mod splash;
#[path = "cc/system.rs"]
mod system;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

/// Where the library is that this test was built with, and where programs go.
struct Place {
    folder: TempDir,
}

/// The newest library of this build: its file's name has a number that tests are not told.
fn newest_library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let built = own.parent().unwrap().read_dir().unwrap().flatten();
    let named = built.filter(|entry| {
        let name = entry.file_name().into_string().unwrap_or_default();
        name.starts_with("libdhole_c-") && name.ends_with(".a")
    });
    let newest = named.max_by_key(|entry| entry.metadata().and_then(|it| it.modified()).unwrap());
    newest.expect("dhole-c is built for this test").path()
}

fn place() -> &'static Path {
    static PLACE: OnceLock<Place> = OnceLock::new();
    let made = PLACE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libdhole_c.a");
        std::os::unix::fs::symlink(newest_library(), library).unwrap();
        Place { folder }
    });
    made.folder.path()
}

/// The names of an MPI library that the library leaves open, if it was built with the feature
/// `mpi`, as all of a build is: there is no static MPI library. No program here calls them, so each
/// is 0.
fn without_mpi() -> Option<&'static str> {
    static FOUND: OnceLock<String> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let mut nm = Command::new("nm");
        let listed = checked(nm.arg("-u").arg(newest_library()).output().unwrap());
        let open = text(&listed.stdout);
        let names = open
            .lines()
            .filter_map(|line| line.trim().strip_prefix("U "));
        let of_mpi = |name: &&str| {
            ["MPI_", "PMPI_", "ompi_"]
                .iter()
                .any(|it| name.starts_with(it))
        };
        let names: std::collections::BTreeSet<&str> = names.filter(of_mpi).collect();
        let zeros = names.iter().map(|name| format!(",--defsym={name}=0"));
        zeros.collect()
    });
    (!found.is_empty()).then_some(found)
}

fn cc(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
    command.arg("cc").args(words).current_dir(place());
    if let Some(zeros) = without_mpi() {
        command.arg(format!("-Wl{zeros}"));
    }
    command.env("DHOLE_C", place());
    command
}

fn source(name: &str) -> String {
    format!("{}/tests/c/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn checked(output: Output) -> Output {
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// A program that is built once for all tests.
fn built(of: &'static OnceLock<PathBuf>, name: &str, options: &[&str]) -> &'static Path {
    of.get_or_init(|| {
        let stacks = if options.contains(&"--shared-stacks") {
            "-shared-stacks"
        } else {
            ""
        };
        let program = place().join(format!("{name}{stacks}"));
        let (source, path) = (source(&format!("{name}.c")), program.to_str().unwrap());
        let words = [options, &["-Wall", "-O1", &source, "-o", path]].concat();
        let output = checked(cc(&words).output().unwrap());
        assert_eq!(text(&output.stderr), "", "no warnings");
        program
    })
}

#[test]
fn a_folder_that_is_named_and_has_no_library_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("shared");
    let (source, path) = (source("shared.c"), output.to_str().unwrap());
    let mut cc = cc(&[&source, "-o", path]);
    let output = cc.env("DHOLE_C", folder.path()).output().unwrap();
    let said = text(&output.stderr);
    let named = format!("it is not in any of {}:", folder.path().display());
    assert!(!output.status.success() && said.contains(&named), "{said}");
}

#[test]
fn variables_that_are_empty_say_nothing() {
    let program = place().join("empty");
    let path = program.to_str().unwrap();
    let mut cc = cc(&["-std=gnu89", &source("shared.c"), "-o", path]);
    checked(cc.env("DHOLE_CC", "").output().unwrap());
    let mut command = command("node", &program, 2, &["sync", "4"]);
    let of_memory = ["DHOLE_FAULTS", "DHOLE_STORE_FENCE", "DHOLE_MOST_MAPPINGS"];
    let others = ["DHOLE_SIM", "DHOLE_SECRET_FILE", "DHOLE_TLS"];
    command.envs(of_memory.into_iter().chain(others).map(|name| (name, "")));
    checked(command.output().unwrap());
}

fn shared() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    built(&BUILT, "shared", &["-std=gnu89"])
}

/// A program with these arguments, on as many processes, which have the same memory.
fn run(program: &Path, processes: usize, words: &[&str]) -> Output {
    run_in("host", program, processes, words)
}

/// The same in such domains.
fn run_in(domains: &str, program: &Path, processes: usize, words: &[&str]) -> Output {
    command(domains, program, processes, words)
        .output()
        .unwrap()
}

fn command(domains: &str, program: &Path, processes: usize, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
    let count = processes.to_string();
    command.args(["run", "-n", &count, "--domains", domains]);
    command.args(["--prefix", "none", "--"]);
    command.arg(program).args(words).stdin(Stdio::null());
    command
}

fn lines(output: &Output) -> Vec<String> {
    let printed = text(&output.stdout);
    let short = |line: &str| match line.len() {
        0..200 => line.to_owned(),
        long => format!("{} {long} times", &line[..1]),
    };
    let mut lines: Vec<String> = printed.lines().map(short).collect();
    lines.sort();
    lines
}

/// A case of `shared.c` prints the same on one, two and four processes.
fn prints(case: &str, threads: &str, expected: &[&str]) {
    for processes in [1, 2, 4] {
        for domains in ["node", "host", "2"] {
            let output = run_in(domains, shared(), processes, &[case, threads]);
            let said = text(&output.stderr);
            let printed = lines(&checked(output));
            assert_eq!(printed, expected, "{case} on {processes}: {said}");
        }
    }
}

#[test]
fn globals_and_what_is_allocated_are_one_for_all_nodes() {
    let sums = "counter 200 with_value 240 sum 6.24875e+06 list 200 300";
    prints("globals", "4", &["calls 207", sums]);
}

#[test]
fn locks_barriers_conditions_and_semaphores_order_all_threads() {
    prints(
        "sync",
        "4",
        &["locked 4000 turns 40 passed 60 given 40", "one of 4"],
    );
}

#[test]
fn memory_is_zero_aligned_grows_and_is_freed_by_any_node() {
    let refused = "allocating 1125899906842624 bytes at a multiple of 16: out of range";
    prints("heap", "3", &["11 first line", "a string 1", refused]);
}

#[test]
fn node_0_allocates_for_all_where_it_manages_all_memory() {
    let sums = "counter 200 with_value 240 sum 6.24875e+06 list 200 300";
    let refused = "allocating 1125899906842624 bytes at a multiple of 16: out of range";
    let heap = ["11 first line", "a string 1", refused];
    for (words, expected) in [
        (["globals", "4"], &["calls 207", sums][..]),
        (["heap", "3"], &heap),
    ] {
        for (processes, domains) in [(2, "node"), (4, "2"), (2, "host")] {
            let mut command = command(domains, shared(), processes, &words);
            let output = checked(command.env("DHOLE_MANAGERS", "one").output().unwrap());
            assert_eq!(
                lines(&output),
                expected,
                "{words:?} on {processes}, {domains}"
            );
        }
    }
}

#[test]
fn system_calls_read_and_write_shared_memory() {
    let expected = [
        "5000 5000 za",
        "pread 1 a unlinked 0",
        "read 10000",
        "sum 970000 buffer zz",
        "wrote 10000",
        "x 9999 times",
    ];
    prints("io", "4", &expected);
}

#[test]
fn exit_ends_the_run_with_its_code_after_what_runs_at_exit() {
    for processes in [1, 2, 4] {
        let output = run(shared(), processes, &["exit", "4"]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "at exit 5\n");
        let said = "dhole: the program on node 0 exited with 3\n";
        assert_eq!(text(&output.stderr), said);
    }
}

#[test]
fn mistakes_are_named_with_address_block_and_reason() {
    ["node", "host"].into_iter().for_each(mistakes_are_named);
}

fn mistakes_are_named(domains: &str) {
    let said = |case: &str, code: i32, words: &[&str]| {
        let output = run_in(domains, shared(), 2, &[case]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        for word in words {
            assert!(said.contains(word), "{case}: {word}: {said}");
        }
    };
    let aborted = 128 + 6;
    let freed = "these 112 bytes of node 0 were freed before, on node 0";
    said("twice", aborted, &["error: freeing 0x20", freed]);
    said(
        "middle",
        aborted,
        &["freeing 0x20", "no block begins there"],
    );
    // The program's own fault ends the node as ever, and the command names both.
    let nothing = "error: node 1: an access to 0x8, where this process has nothing\n";
    said("fault", 128 + 11, &["node 1 was", "SIGSEGV", nothing]);
    let local = "to 0x7ffbffa00000, where this process has nothing: if it is a local variable of a \
                 thread on another node, link the program with `dhole cc --shared-stacks`";
    said("stray", 128 + 11, &["node 1 was", local]);
    let none = "error: node 1: an access to what can be no address\n";
    said("noncanonical", 128 + 11, &["node 1 was", none]);
    let output = checked(run_in(domains, shared(), 2, &["full"]));
    let printed = text(&output.stdout);
    assert!(
        printed.starts_with("blocks 127 of 2: Cannot allocate memory\n"),
        "{printed}"
    );
    assert!(
        printed.contains("bytes of this node's part of the memory are used"),
        "{printed}"
    );
}

#[test]
fn a_child_has_none_of_the_memory() {
    for domains in ["node", "host"] {
        let output = checked(run_in(domains, shared(), 2, &["fork"]));
        assert_eq!(text(&output.stdout), "child: signal 11\n");
        let why = "nothing: a child of fork has none of the shared memory";
        assert!(
            text(&output.stderr).contains(why),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn what_headers_call_by_other_names_is_shared_too() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let options = ["-pthread", "-O2", "-D_FILE_OFFSET_BITS=64"];
    let expected = [
        "7 a line",
        "cleaned up the thread",
        "limit 0 1",
        "stat 0 lstat 0 fstat 0 7 7 7",
        "truncated 0",
    ];
    for processes in [1, 2] {
        let output = checked(run(built(&BUILT, "large", &options), processes, &[]));
        assert_eq!(lines(&output), expected, "{}", text(&output.stderr));
    }
}

/// A program prints what it prints when it is built without dhole.
fn is_as_without_dhole(program: &Path, name: &str) {
    let stock = place().join(format!("{name}-stock"));
    let mut compile = Command::new("cc");
    compile.args(["-pthread", "-O1", &source(&format!("{name}.c")), "-o"]);
    checked(compile.arg(&stock).arg("-lm").output().unwrap());
    for (processes, threads) in [(1, "3"), (2, "2"), (4, "6")] {
        let expected = checked(Command::new(&stock).arg(threads).output().unwrap());
        for domains in ["node", "host", "2"] {
            let output = checked(run_in(domains, program, processes, &[threads]));
            assert_eq!(lines(&output), lines(&expected), "{name} on {processes}");
        }
    }
}

#[test]
fn a_program_with_posix_threads_prints_what_it_prints_without_dhole() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    is_as_without_dhole(built(&BUILT, "posix", &["-pthread"]), "posix");
}

#[test]
fn waits_with_a_limit_end_as_they_do_without_dhole() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    is_as_without_dhole(built(&BUILT, "timed", &["-pthread"]), "timed");
}

#[test]
fn a_program_with_c11_s_threads_prints_what_it_prints_without_dhole() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    is_as_without_dhole(built(&BUILT, "c11", &["-std=c11"]), "c11");
}

#[test]
fn constructors_and_destructors_allocate_print_and_lock() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let output = checked(run(built(&BUILT, "ends", &["-pthread"]), 2, &[]));
    assert_eq!(lines(&output), ["freed", "the end", "the end"]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn it_works_as_a_compiler_does() {
    let write = |name: &str, text: &str| std::fs::write(place().join(name), text).unwrap();
    write(
        "one.c",
        "int two(void); int zero; int main(void) { return two() + zero; }",
    );
    write(
        "two.c",
        "static int value = 2; int two(void) { return value; }",
    );
    write("send.c", "int send(void) { return 40; }");
    write(
        "main.c",
        "int send(void), two(void); int main(void) { return send() + two(); }",
    );
    write(
        "lacks.c",
        "int pthread_getname_np();\nint main(void) { return pthread_getname_np() != 0; }",
    );
    write("bad.c", "int main(void) { return }");
    write(
        "mine.c",
        "__attribute__((section(\"mine\"))) int x = 1; int main(void) { return x; }",
    );
    let made = |words: &[&str]| checked(cc(words).output().unwrap());
    made(&["-c", "one.c", "two.c", "send.c"]);
    let mut archive = Command::new("ar");
    archive.args(["rcs", "libtwo.a", "two.o"]);
    archive.current_dir(place());
    checked(archive.output().unwrap());
    made(&["-o", "archive", "one.o", "-L.", "-ltwo", "-lm"]);
    assert_eq!(run(&place().join("archive"), 1, &[]).status.code(), Some(2));
    // A function of the program's own that is called as one of the C library.
    made(&["--pack-globals", "main.c", "send.o", "libtwo.a", "-oown"]);
    assert_eq!(run(&place().join("own"), 1, &[]).status.code(), Some(42));
    let shown = text(&made(&["--show", "-O2", "one.c", "-o", "x"]).stdout);
    assert!(
        shown.contains("-fno-common") && shown.contains("-static -no-pie"),
        "{shown}"
    );
    assert!(!place().join("x").exists());
    assert!(
        text(&made(&["--version"]).stdout).contains("Free Software"),
        "the compiler's"
    );
    write(
        "header.c",
        "#include <dhole.h>\nint main(void) { return dh_nodes() - 1; }",
    );
    for standard in ["-std=c89", "-std=c99", "-std=c11", "-std=c17", "-std=c2x"] {
        let strict = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-c", "header.c"];
        made(&[&[standard], &strict[..]].concat());
    }
    let refused = |words: &[&str], code: i32, said: &str| {
        let output = cc(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(
            text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
    };
    refused(&["bad.c"], 1, "expected expression");
    refused(
        &["-c", "mine.c"],
        1,
        "variables in section mine cannot be shared",
    );
    assert!(!place().join("mine.o").exists(), "nobody may link it");
    refused(
        &["one.c", "-o", "one.c"],
        2,
        "-o one.c: the output is an input",
    );
    refused(
        &["-c", "one.c", "two.txt"],
        2,
        "compiling two.txt: its name ends",
    );
    refused(&["-shared", "one.c"], 2, "-shared: a shared library");
    refused(&["two.c"], 1, "defines `main`");
    refused(
        &["main.c", "two.cpp"],
        2,
        "compiling two.cpp: its name ends",
    );
    refused(&["lacks.c"], 1, "dhole_does_not_have_pthread_getname_np");
    refused(&["one.o"], 1, "undefined reference to `two'");
}
