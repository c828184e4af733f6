//! The Open POSIX Test Suite, unmodified, built with gcc and with dhole. It is not shipped with
//! dhole: `DHOLE_OPEN_POSIX` names `testcases/open_posix_testsuite` of a checkout of
//! `linux-test-project/ltp`, and without it the test passes it over.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::cc;

/// How long a program may run.
const LIMIT: Duration = Duration::from_secs(15);
/// Programs that run at once: most of them sleep.
const AT_ONCE: usize = 7;
/// The user `nobody`: one who may not set priorities.
const NOBODY: u32 = 65_534;
/// So many pass at least, on one process and on two.
const ASKED: usize = 340;

/// How the programs are built and run.
const WAYS: [&str; 3] = ["gcc", "dhole, one process", "dhole, two processes"];

/// The programs of the interfaces of threads and semaphores.
fn programs(suite: &Path) -> Vec<PathBuf> {
    let of = |folder: &Path| -> Vec<PathBuf> {
        let entries = folder.read_dir().unwrap().flatten();
        let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        all.sort();
        all
    };
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let is_assertion = |path: &PathBuf| {
        let name = name(path);
        let numbers = name.split_once('-').map(|(one, two)| [one, two]);
        let is_number = |it: &str| it.parse::<u32>().is_ok();
        is_source(path) && numbers.is_some_and(|all| all.into_iter().all(is_number))
    };
    let interfaces = of(&suite.join("conformance/interfaces")).into_iter();
    let interfaces = interfaces.filter(|folder| {
        let name = name(folder);
        name.starts_with("pthread_") || name.starts_with("sem_") || name == "sched_yield"
    });
    let assertions = interfaces
        .flat_map(|folder| of(&folder))
        .filter(is_assertion);
    let functional = ["functional/semaphores", "functional/threads/condvar"];
    let functional = functional
        .into_iter()
        .flat_map(|folder| of(&suite.join(folder)));
    assertions
        .chain(functional.filter(|path| is_source(path)))
        .collect()
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "c")
}

/// Builds a program. Whether that went well.
fn build(mut compiler: Command, suite: &Path, source: &Path, program: &Path) -> bool {
    compiler
        .args(["-std=gnu99", "-O1", "-w", "-I"])
        .arg(suite.join("include"))
        .arg("-I")
        .arg(source.parent().unwrap())
        .arg(source)
        .arg(suite.join("lib/common.c"))
        .arg("-o")
        .arg(program)
        .args(["-lpthread", "-lrt"])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    compiler.status().unwrap().success()
}

/// Whether a program says in its time that it passed.
fn passes(mut command: Command, folder: &Path) -> bool {
    if rustix::process::getuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut child = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if began.elapsed() > LIMIT {
            break None;
        }
        // Whether a process has ended within a time can only be polled for.
        std::thread::sleep(Duration::from_millis(20));
    };
    // What it has left, of a run that is over too.
    let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    let _ = child.wait();
    status.is_some_and(|status| status.success())
}

/// In which of the ways a program passes.
fn run(suite: &Path, source: &Path, folder: &Path) -> [bool; WAYS.len()] {
    let (stock, own) = (folder.join("stock"), folder.join("own"));
    let on = |processes: &str| {
        let mut dhole = Command::new(env!("CARGO_BIN_EXE_dhole"));
        dhole.args(["run", "-n", processes, "--"]).arg(&own);
        dhole
    };
    let stock =
        build(Command::new("gcc"), suite, source, &stock) && passes(Command::new(&stock), folder);
    let is_built = build(cc(&["--shared-stacks"]), suite, source, &own);
    let [one, two] = ["1", "2"].map(|processes| is_built && passes(on(processes), folder));
    [stock, one, two]
}

#[test]
fn the_suite_passes_as_far_as_the_guide_says() {
    let Ok(suite) = std::env::var("DHOLE_OPEN_POSIX") else {
        eprintln!("passed over: DHOLE_OPEN_POSIX names no checkout of the suite");
        return;
    };
    let (suite, next) = (PathBuf::from(suite), AtomicUsize::new(0));
    let (programs, passed) = (programs(&suite), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(source) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let folder = tempfile::tempdir().unwrap();
                    let open = std::fs::Permissions::from_mode(0o777);
                    std::fs::set_permissions(folder.path(), open).unwrap();
                    let ways = run(&suite, source, folder.path());
                    passed.lock().unwrap().push((source.clone(), ways));
                }
            });
        }
    });
    let passed = passed.into_inner().unwrap();
    let count = |way: usize| passed.iter().filter(|(_, ways)| ways[way]).count();
    println!("{} programs", passed.len());
    for (way, name) in WAYS.iter().enumerate() {
        println!("{name}: {} pass", count(way));
    }
    let short = |path: &Path| path.strip_prefix(&suite).unwrap().display().to_string();
    for (way, name) in WAYS.iter().enumerate().skip(1) {
        let lost = passed.iter().filter(|(_, ways)| ways[0] && !ways[way]);
        let lost: BTreeSet<String> = lost.map(|(path, _)| short(path)).collect();
        println!("{name}: these pass with gcc alone: {lost:#?}");
        assert!(
            count(way) >= ASKED,
            "{name}: {} of {}",
            count(way),
            passed.len()
        );
    }
}
