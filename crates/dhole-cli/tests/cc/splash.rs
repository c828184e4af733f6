//! SPLASH-3's programs, unmodified, against what they print when they are built without dhole. They
//! may not be shipped with dhole: `DHOLE_SPLASH` names a checkout of them, and without
//! it these tests pass them over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::{checked, place, text};

/// What of a program's output counts.
#[derive(Clone, Copy)]
enum Check {
    /// The lines in which it says that its own test has passed.
    OwnTest,
    /// All lines but those about time.
    Lines,
    /// All lines but those about time, with numbers that are alike but for rounding: sums of
    /// several threads depend on their turns.
    Numbers,
    /// A picture that it writes.
    Picture(&'static str),
    /// The number of elements in percent of another, within 2: it differs from run to run.
    Elements,
    /// It ends, and prints something.
    Ends,
}

struct Program {
    folder: &'static str,
    name: &'static str,
    words: &'static [&'static str],
    /// Standard input: a file, or words, in which `@` is the number of threads.
    input: &'static str,
    check: Check,
}

const fn program(
    folder: &'static str,
    name: &'static str,
    words: &'static [&'static str],
    check: Check,
) -> Program {
    let input = "";
    Program {
        folder,
        name,
        words,
        input,
        check,
    }
}

const fn reads(input: &'static str, program: Program) -> Program {
    Program { input, ..program }
}

const BODIES: &str = "\n256\n123\n\n0.025\n0.05\n1.0\n2.0\n5.0\n0.075\n0.25\n@\n";
const CLUSTERS: &str = "two cluster\nplummer\n256\n1e-6\n@\n5\n.025\n0.0\ncost zones\n";
const WATER: &str = "1.5e-16 512 3 6\n-1 3000 3 0\n@ 6.212752\n";

/// Folder, program, words in which `@` is the number of threads, and what is compared.
const PROGRAMS: [Program; 14] = [
    program("kernels/fft", "FFT", &["-p@", "-m16", "-t"], Check::OwnTest),
    program(
        "kernels/lu/contiguous_blocks",
        "LU",
        &["-p@", "-n256", "-t"],
        Check::OwnTest,
    ),
    program(
        "kernels/lu/non_contiguous_blocks",
        "LU",
        &["-p@", "-n256", "-t"],
        Check::OwnTest,
    ),
    program(
        "kernels/radix",
        "RADIX",
        &["-p@", "-n65536", "-r256", "-t"],
        Check::OwnTest,
    ),
    program(
        "kernels/cholesky",
        "CHOLESKY",
        &["-p@", "-t", "inputs/tk14.O"],
        Check::OwnTest,
    ),
    reads(BODIES, program("apps/barnes", "BARNES", &[], Check::Ends)),
    reads(
        CLUSTERS,
        program("apps/fmm", "FMM", &["-o"], Check::Numbers),
    ),
    program(
        "apps/ocean/contiguous_partitions",
        "OCEAN",
        &["-p@", "-n66", "-o"],
        Check::Lines,
    ),
    program(
        "apps/ocean/non_contiguous_partitions",
        "OCEAN",
        &["-p@", "-n66", "-o"],
        Check::Lines,
    ),
    program(
        "apps/radiosity",
        "RADIOSITY",
        &["-p", "@", "-batch", "-test"],
        Check::Elements,
    ),
    program(
        "apps/raytrace",
        "RAYTRACE",
        &["-p@", "-m64", "inputs/teapot.env"],
        Check::Picture("inputs/teapot.rl"),
    ),
    program(
        "apps/volrend",
        "VOLREND",
        &["@", "inputs/head-scaleddown4", "4"],
        Check::Picture("inputs/head-scaleddown4_1000"),
    ),
    reads(
        WATER,
        program("apps/water-nsquared", "WATER-NSQUARED", &[], Check::Lines),
    ),
    reads(
        WATER,
        program("apps/water-spatial", "WATER-SPATIAL", &[], Check::Lines),
    ),
];

/// A line that says nothing about time, threads or how they took turns.
fn counts(line: &str) -> bool {
    let words = [
        "time",
        "process",
        "utilization",
        "fraction",
        "seed",
        "track",
        "compute",
        "clock",
    ];
    let lower = line.to_lowercase();
    let number = |word: &str| word.parse::<f64>().is_ok();
    !words.iter().any(|word| lower.contains(word)) && !line.split_whitespace().all(number)
}

impl Program {
    fn output(&self, tree: &Path, mut command: Command, threads: usize) -> Output {
        if let Check::Picture(file) = self.check {
            // What an earlier run has left.
            let _ = std::fs::remove_file(tree.join(self.folder).join(file));
        }
        let threads = threads.to_string();
        let words = self.words.iter().map(|word| word.replace('@', &threads));
        let mut child = command
            .arg(format!("./{}", self.name))
            .args(words)
            .current_dir(tree.join(self.folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = self.input.replace('@', &threads);
        let mut pipe = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut pipe, input.as_bytes()).unwrap();
        drop(pipe);
        child.wait_with_output().unwrap()
    }

    fn result(&self, tree: &Path, output: &Output) -> BTreeSet<String> {
        let printed = text(&output.stdout);
        let lines = printed.lines().map(str::to_owned);
        let all = match self.check {
            Check::OwnTest => lines
                .filter(|line| line.contains("PASSED") || line.contains("FAILED"))
                .collect(),
            Check::Lines | Check::Numbers => lines.filter(|line| counts(line)).collect(),
            Check::Picture(file) => {
                let picture = std::fs::read(tree.join(self.folder).join(file)).unwrap_or_default();
                BTreeSet::from([format!("{picture:?}")])
            }
            Check::Elements => lines.filter(|line| line.contains("Elem(")).collect(),
            Check::Ends => BTreeSet::from([format!("{} lines", lines.count().min(1))]),
        };
        assert!(!all.is_empty(), "{} says something: {printed}", self.name);
        all
    }
}

/// Whether two outputs are alike: their words, and their numbers but for rounding.
fn alike(one: &BTreeSet<String>, other: &BTreeSet<String>, rounding: f64) -> bool {
    let is_near = |(one, other): (&str, &str)| {
        let number = |word: &str| word.trim_matches(['(', ')', ',', '%']).parse::<f64>();
        match (number(one), number(other)) {
            (Ok(one), Ok(other)) => (one - other).abs() <= rounding,
            _ => one == other,
        }
    };
    let words = |lines: &BTreeSet<String>| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.join(" ")
    };
    let (one, other) = (words(one), words(other));
    let (one, other) = (one.split_whitespace(), other.split_whitespace());
    one.clone().count() == other.clone().count() && one.zip(other).all(is_near)
}

fn make(tree: &Path, folder: &str, words: &[&str]) {
    let mut make = Command::new("make");
    make.args(words).current_dir(tree.join(folder));
    make.env("DHOLE_C", place());
    checked(make.output().unwrap());
}

/// A copy of the sources in a folder of its own.
fn copy(from: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let codes = folder.path().join("codes");
    let mut copy = Command::new("cp");
    copy.args(["-r", &format!("{from}/codes")]).arg(&codes);
    checked(copy.output().unwrap());
    (folder, codes)
}

/// Builds and runs all programs as they are, with these macros, on these processes and threads.
fn compare(macros: Option<&str>, runs: &[(usize, usize, &str)]) {
    let Ok(from) = std::env::var("DHOLE_SPLASH") else {
        eprintln!("passed over: DHOLE_SPLASH names no checkout of SPLASH-3");
        return;
    };
    let only = std::env::var("DHOLE_SPLASH_ONLY").unwrap_or_default();
    let ((_stock, stock), (_own, own)) = (copy(&from), copy(&from));
    let compiler = format!("CC={} cc", env!("CARGO_BIN_EXE_dhole"));
    let mut words = vec![compiler.as_str()];
    let macros = macros.map(|macros| format!("MACROS={macros}"));
    words.extend(macros.as_deref());
    let mut wrong = Vec::new();
    for program in PROGRAMS.iter().filter(|it| it.folder.contains(&only)) {
        make(&stock, program.folder, &[]);
        make(&own, program.folder, &words);
        for (processes, threads, domains) in runs {
            let mut plain = Command::new("env");
            if program.name == "VOLREND" {
                // It writes bytes that it never set. So `malloc` returns zeroes, as under dhole.
                // OCEAN would need all of the 21 GiB that it allocates for that.
                plain.env("MALLOC_PERTURB_", "255");
            }
            let expected = checked(program.output(&stock, plain, *threads));
            let expected = program.result(&stock, &expected);
            let mut dhole = Command::new(env!("CARGO_BIN_EXE_dhole"));
            let count = processes.to_string();
            dhole.args(["run", "-n", &count, "--domains", domains]);
            dhole.args(["--prefix", "none", "--"]);
            let began = std::time::Instant::now();
            let output = program.output(&own, dhole, *threads);
            let is_right = output.status.success() && {
                let found = program.result(&own, &output);
                match program.check {
                    Check::Numbers => alike(&found, &expected, 1e-3),
                    Check::Elements => alike(&found, &expected, 2.0),
                    _ => found == expected,
                }
            };
            let said = if is_right { "right" } else { "WRONG" };
            let (name, took) = (program.folder, began.elapsed());
            println!(
                "{name}: {processes} processes ({domains}), {threads} threads: {said}, {took:.1?}"
            );
            if !is_right {
                wrong.push(format!("{name} on {processes}: {}", text(&output.stderr)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn programs_with_its_macros_print_what_they_print_without_dhole() {
    let macros = concat!(env!("CARGO_MANIFEST_DIR"), "/../dhole-c/include/c.m4.dhole");
    let runs = [
        (1, 1, "node"),
        (2, 2, "node"),
        (2, 4, "node"),
        (4, 4, "node"),
    ];
    compare(Some(macros), &runs);
}

#[test]
fn programs_with_posix_threads_print_what_they_print_without_dhole() {
    compare(None, &[(1, 1, "node"), (2, 2, "node"), (4, 4, "node")]);
}

#[test]
fn programs_in_one_domain_print_what_they_print_without_dhole() {
    compare(
        None,
        &[
            (1, 1, "host"),
            (2, 2, "host"),
            (2, 4, "host"),
            (4, 4, "host"),
        ],
    );
}
