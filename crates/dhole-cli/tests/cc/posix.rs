//! What POSIX says of threads, locks and semaphores: programs print what they print without dhole.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::{built, cc, checked, is_as_without_dhole, place, run, text};

const OPTIONS: [&str; 2] = ["-pthread", "--shared-stacks"];

#[test]
fn functions_on_threads_and_locks_refuse_what_they_refuse_without_dhole() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    is_as_without_dhole(built(&BUILT, "refusals", &OPTIONS), "refusals");
}

#[test]
fn threads_are_cancelled_where_they_sleep_wait_or_ask() {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    is_as_without_dhole(built(&BUILT, "cancel", &OPTIONS), "cancel");
}

#[test]
fn a_program_with_shared_stacks_links_with_an_archive_that_another_compiler_made() {
    let folder = place().join("foreign");
    std::fs::create_dir(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("twice.c", "int twice(int x) { return 2 * x; }");
    write(
        "main.c",
        "#include <stdio.h>\nint twice(int x);\n\
         int main(void) { printf(\"%d\\n\", twice(21)); return 0; }",
    );
    let tool = |tool: &str, words: &[&str]| {
        let mut command = std::process::Command::new(tool);
        checked(command.args(words).current_dir(&folder).output().unwrap());
    };
    tool("cc", &["-c", "twice.c"]);
    tool("ar", &["rcs", "libtwice.a", "twice.o"]);
    for library in [&["libtwice.a"][..], &["-L.", "-ltwice"], &["twice.o"]] {
        let words = [&["--shared-stacks", "main.c"], library, &["-o", "main"]].concat();
        checked(cc(&words).current_dir(&folder).output().unwrap());
        let output = checked(run(&folder.join("main"), 1, &[]));
        assert_eq!(text(&output.stdout), "42\n", "{library:?}");
    }
}
