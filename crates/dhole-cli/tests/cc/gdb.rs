//! A program under `gdb`, which `dhole.gdb` tells what to pass over.

use std::process::{Command, Stdio};

use crate::{cc, checked, place, text};

/// A program that reads and writes what nodes share.
const HELLO: &str = r#"
#include <dhole.h>
#include <stdio.h>

static long sum, numbers[5000];

int main(void) {
    for (long i = 0; i < 5000; i++) numbers[i] = i;
    for (long i = 0; i < 5000; i++) sum += numbers[i];
    printf("hello %ld\\n", sum);
    return 0;
}
"#;

fn has_gdb() -> bool {
    let mut gdb = Command::new("gdb");
    let gdb = gdb.arg("--version").stdout(Stdio::null());
    gdb.status().is_ok_and(|status| status.success())
}

#[test]
fn a_program_ends_normally_under_gdb() {
    if !has_gdb() {
        println!("passed over: there is no gdb here (apt-get install gdb)");
        return;
    }
    let source = place().join("hello.c");
    std::fs::write(&source, HELLO).unwrap();
    let program = place().join("hello");
    checked(
        cc(&["-g", "-Wall", "hello.c", "-o", "hello"])
            .output()
            .unwrap(),
    );
    // Its own memory, so that it faults.
    let run = |words: &[&str]| {
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch"])
            .args(words)
            .args(["-ex", "run", "--args"]);
        let gdb = gdb
            .arg(&program)
            .env("DHOLE_DOMAINS", "node")
            .stdin(Stdio::null());
        text(&gdb.output().unwrap().stdout)
    };
    let script = format!(
        "{}/../dhole-c/include/dhole.gdb",
        env!("CARGO_MANIFEST_DIR")
    );
    for faults in ["uffd", "mprotect"] {
        let said = run(&[
            "-ex",
            &format!("set environment DHOLE_FAULTS {faults}"),
            "-x",
            &script,
        ]);
        assert!(said.contains("hello 12497500"), "{faults}: {said}");
        assert!(said.contains("exited normally"), "{faults}: {said}");
    }
    // Without the file it stops at the first fault.
    let said = run(&[]);
    assert!(said.contains("received signal SIG"), "{said}");
}
