//! `dhole paper` as a user meets it. The programs are shell scripts that say hello as
//! `dhole::run` does, and print what the real ones print. `cargo test --workspace` builds `dhole`
//! beside `dhole-papers`; where this crate is tested alone, it is to be built before
//! (`cargo build -p dhole-cli`).

#![forbid(unsafe_code)]

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// What a program prints: as much as tables need.
const PRINTED: &str = r#"{"seconds":2.5,"sequential_seconds":10.0,"messages":9999,"measured":{
"computed_seconds":12.5,"data_bytes":3000000,"messages":1234,"fetch_rounds":77,
"shared_bytes_per_node":500000,"allotted_bytes":7000000,"write_notice_bytes":40000,
"write_faults":9}}"#;

/// A folder with `dhole` and programs that are this script, which may use `$ran`, the file that
/// has a line for each run.
fn bench(script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut copies = Command::new("cp"); // no copy of this process is open for writing
    let papers = Path::new(env!("CARGO_BIN_EXE_dhole-papers"));
    let programs = [papers, &papers.with_file_name("dhole")];
    copies.args(programs).arg(folder.path());
    assert!(copies.status().unwrap().success());
    let ran = folder.path().join("ran");
    let printed = PRINTED.replace('\n', "");
    let script = format!(
        "#!/bin/sh\nran={}\necho \"$0 $*\" >> $ran\n[ -n \"$DHOLE_HELLO\" ] && \
         printf run > $DHOLE_HELLO\n{script}\necho '{printed}'\n",
        ran.display()
    );
    for program in [
        "sor",
        "barnes",
        "water-nsquared",
        "water-spatial",
        "is",
        "lu",
        "tsp",
        "asp",
        "vote",
    ] {
        write_script(&folder.path().join(program), &script);
    }
    folder
}

/// Writes a script that can be run at once. A child writes it, for a file that is open for writing
/// cannot be run: a process that another test starts meanwhile would hold open what is open here.
fn write_script(path: &Path, text: &str) {
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "cat >\"$0\" && chmod 700 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

fn dosa(folder: &Path, words: &[&str]) -> Child {
    let mut command = Command::new(folder.join("dhole"));
    command.args(["paper", "dosa", "--nodes=4,8"]).args(words);
    command.current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn run(folder: &Path, words: &[&str]) -> Output {
    dosa(folder, words).wait_with_output().unwrap()
}

fn runs(folder: &Path) -> usize {
    let ran = fs::read_to_string(folder.join("ran")).unwrap_or_default();
    ran.lines().count()
}

/// Waits until so many have run, of a command that goes on meanwhile.
fn await_runs(count: usize, folder: &Path, command: &mut Child) {
    while runs(folder) < count {
        let ended = command.try_wait().expect("a child");
        assert!(ended.is_none(), "it has ended: {ended:?}");
        std::thread::yield_now();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn tables_and_figures_are_written_and_what_is_done_is_not_run_again() {
    let folder = bench("");
    let folder = folder.path();
    let first = run(folder, &["--small"]);
    assert!(first.status.success(), "{}", said(&first));
    // On this machine 12 times 3, and of 8 problems 2 protocols on 2 numbers of nodes each, and 4
    // optimisations less for three of them.
    assert_eq!(runs(folder), 36 + 32 + 12);
    let page = fs::read_to_string(folder.join("dosa-small/dosa.md")).unwrap();
    for part in [
        "Table 1",
        "Table 3",
        "Table 5",
        "Table 6",
        "Table 7",
        "| messages | 1234 |",
        "| memory a node, allotted (MB) | 7.00 | 0.5000 | 14.00 |",
        "| of it touched (MB) | 0.5000 | 0.5000 | 1.00 |",
        "| memory a node, touched (MB) | 0.5000 | 0.5000 | 1.00 |",
        "| allotted (MB) | 7.00 | 0.5000 | 14.00 |",
    ] {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    let json = fs::read_to_string(folder.join("dosa-small/dosa.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(44));
    assert_eq!(json["runs"][0]["speedup"], 4.0);
    let memory = &json["runs"][0]["memory"];
    assert_eq!(
        (&memory["touched_mb"], &memory["allotted_mb"]),
        (&0.5.into(), &7.0.into())
    );
    assert_eq!(json["runs"][0]["compute_inflation"], 1.25);
    for figure in ["5", "6", "9", "10", "11"] {
        let svg = folder.join(format!("dosa-small/figure-{figure}.svg"));
        assert!(
            fs::read_to_string(svg).unwrap().contains("<rect"),
            "figure {figure}"
        );
    }
    let again = run(folder, &["--small"]);
    assert!(again.status.success());
    assert_eq!(runs(folder), 80, "nothing ran again");
}

#[test]
fn what_does_not_hold_of_the_papers_numbers_is_listed_and_nothing_is_timed_unless_wanted() {
    let folder = bench("");
    let mut command = Command::new(folder.path().join("dhole"));
    command.args(["paper", "dosa", "--simulated"]);
    command.current_dir(folder.path()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // The same as above without the 36 of this machine, and the large SOR twice without hoisting.
    assert_eq!(runs(folder.path()), 32 + 12 + 2);
    let page = fs::read_to_string(folder.path().join("dosa/dosa.md")).unwrap();
    assert!(!page.contains("Table 1"), "{page}");
    // Every run is the same here: no ratio but those of what is level in the paper too.
    for row in [
        "| Barnes-Hut/sm: TreadMarks over DOSA, at least 0.8 of the paper's | overlapped requests \
         0.91, memory a node 2.00 | time 0.67, data 0.26, messages 0.12, time on 16 nodes 0.78 |",
        "| SOR/lg: at most 6% slower with objects | time, DOSA over TreadMarks 1.00 |  |",
        "| Without hoisting over with it (Table 7) | TreadMarks on 32 1.00 of 1.17 | DOSA on 32 \
         1.00 of 1.40 |",
    ] {
        assert!(page.contains(row), "{row} in\n{page}");
    }
}

#[test]
fn a_run_that_fails_is_named_and_the_others_go_on() {
    let folder = bench("case \"$*\" in *treadmarks*) echo 'no such luck' >&2; exit 3;; esac");
    let output = run(folder.path(), &["--small"]);
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("no such luck"), "{said}");
    assert!(said.contains("--protocol treadmarks"), "{said}");
    assert!(said.contains("22 of 80 runs failed"), "{said}");
    let page = fs::read_to_string(folder.path().join("dosa-small/dosa.md")).unwrap();
    assert!(page.contains("a run failed"));
}

#[test]
fn ctrl_c_keeps_what_is_done_and_says_how_to_go_on() {
    let folder = bench("[ $(wc -l < $ran) -ge 40 ] && [ ! -e $ran.on ] && sleep 1");
    let mut child = dosa(folder.path(), &["--small", "--jobs", "1"]);
    await_runs(40, folder.path(), &mut child);
    let pid = child.id().to_string();
    let told = Command::new("kill").args(["-INT", &pid]).status();
    assert!(told.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(said(&output).contains("the same command goes on from there"));
    fs::write(folder.path().join("ran.on"), "").unwrap();
    let output = run(folder.path(), &["--small"]);
    assert!(output.status.success());
    assert_eq!(runs(folder.path()), 80, "each ran once");
}

#[test]
fn ctrl_c_in_a_terminal_ends_the_runs_under_way_too_and_keeps_what_is_done() {
    let folder = bench("[ $(wc -l < $ran) -ge 40 ] && [ ! -e $ran.on ] && sleep 10");
    let mut command = Command::new(folder.path().join("dhole"));
    command.args(["paper", "dosa", "--nodes=4,8", "--small", "--jobs", "1"]);
    command.current_dir(folder.path()).process_group(0);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    await_runs(40, folder.path(), &mut child);
    // A terminal tells everything that the command has started.
    let group = format!("-{}", child.id());
    let told = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(told.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("the same command goes on from there"));
    fs::write(folder.path().join("ran.on"), "").unwrap();
    let output = run(folder.path(), &["--small"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(runs(folder.path()), 81, "what was interrupted ran twice");
}

#[test]
fn what_there_is_no_room_for_is_an_error_that_names_it() {
    let folder = bench("");
    let folder = folder.path();
    assert!(run(folder, &["--small"]).status.success());
    let results = folder.join("dosa-small");
    for file in ["dosa.md", "dosa.json", "figure-5.svg", "figure-11.svg"] {
        let (path, kept) = (results.join(file), results.join("kept"));
        fs::rename(&path, &kept).unwrap();
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let output = run(folder, &["--small"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{file}: {said}");
        assert!(
            said.contains(file) && said.contains("No space left"),
            "{said}"
        );
        fs::rename(&kept, &path).unwrap();
    }
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(folder.join("dhole"));
    command
        .args(["paper", "dosa", "--nodes=4,8", "--small"])
        .current_dir(folder);
    let ended = command.stdout(full).stderr(Stdio::null()).status();
    assert_eq!(ended.unwrap().code(), Some(1));
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = bench("");
    for (words, code, part) in [
        (["--network", "token-ring"], 2, "token-ring"),
        (["--nodes", "0"], 2, "'0'"),
        (["--nodes", "32,5000"], 2, "'5000'"),
        (["--jobs", "0"], 2, "'0'"),
    ] {
        let output = run(folder.path(), &words);
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    fs::remove_file(folder.path().join("barnes")).unwrap();
    let output = run(folder.path(), &["--small"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(
        said(&output).contains("cargo build --release"),
        "{}",
        said(&output)
    );
    fs::remove_file(folder.path().join("dhole-papers")).unwrap();
    let output = run(folder.path(), &["--small"]);
    assert_eq!(output.status.code(), Some(127));
    let said = said(&output);
    assert!(said.contains("/dhole-papers"), "{said}");
    assert!(said.contains("`./install`"), "{said}");
}

#[test]
fn vote_s_tables_are_written() {
    let printed = r#"{"seconds":0.5,"result":{"faults":1,"messages":4,"expected":4,"us":700.0}}"#;
    let folder = bench(&format!("echo '{printed}'; exit"));
    let folder = folder.path();
    let mut command = Command::new(folder.join("dhole"));
    // In this folder `vote` is the program.
    command.args(["paper", "vote", "--out", "tables"]);
    command.current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // 5 kinds of faults with 3 numbers of holders, and 5 patterns of accesses.
    assert_eq!(runs(folder), 15 + 5);
    let page = fs::read_to_string(folder.join("tables/vote.md")).unwrap();
    for part in [
        "| invocation (ROI) | fitted | 165 | 164.8 | 1.00 |",
        "| read fault, cached, 4 KB | follows | 667 | 699.2 | 1.05 |",
        "within 15% | yes | 0.94 to 1.08 of the paper's |",
        "(figure 10): 0.75 to 0.85 | yes | 0.81 |",
        "| working sets reduce faults | no | from 1 to 1 |",
        // The script checks nothing.
        "| the memory is sequentially consistent | no |",
        "| write, cached | 4 | 4 | 4 | 700 |",
    ] {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    let json = fs::read_to_string(folder.join("tables/vote.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["table3"]["vote"]["us"], 700.0);
    let drawn = fs::read_to_string(folder.join("tables/figure-10.svg")).unwrap();
    assert!(drawn.contains("<rect"));
}

#[test]
fn jackal_s_tables_are_written_and_tell_what_does_not_hold() {
    let printed = r#"{"seconds":0.5,"sequential_seconds":2.0,"measured":{"messages":15000,
        "data_bytes":1048576,"by_kind":{"operation_request":{"messages":7000},
        "fetch_reply":{"messages":500}}}}"#;
    let folder = bench(&format!("echo '{}'; exit", printed.replace('\n', "")));
    let folder = folder.path();
    let mut command = Command::new(folder.join("dhole"));
    command.args(["paper", "jackal", "--out", "tables"]);
    command.current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // Five configurations of four programs, two more, and two of each on fewer nodes.
    assert_eq!(runs(folder), 4 * 5 + 2 + 4 * 4 * 2);
    let page = fs::read_to_string(folder.join("tables/jackal.md")).unwrap();
    for part in [
        "| basic | 29000 | 7500 | 39300 | 7500 | 15.9 | 1.0 | 4.52 | 1.00 | 0.500 |",
        "| ASP | 16 | 4.00 | 4.00 | 1.00 |",
        "| remote operation (RMI) | 38.00 |",
        "within 1% | 15000 |  |",
    ] {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    let json = fs::read_to_string(folder.join("tables/jackal.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["runs"][0]["data"], 7500.0);
    for figure in ["6", "7"] {
        let drawn = folder.join(format!("tables/jackal-figure-{figure}.svg"));
        assert!(fs::read_to_string(drawn).unwrap().contains("<rect"));
    }
}

/// `dhole paper multiview`, on simulated hosts only.
fn multiview(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(folder.join("dhole"));
    command
        .args(["paper", "multiview", "--simulated"])
        .args(words);
    command.current_dir(folder).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn multiview_s_tables_are_written_and_what_is_done_is_not_run_again() {
    let folder = bench("[ -e $ran.on ] || case \"$*\" in *--unit*) exit 3;; esac");
    let folder = folder.path();
    let first = multiview(folder, &[]);
    assert_eq!(first.status.code(), Some(1));
    assert!(
        said(&first).contains("2 of 83 runs failed"),
        "{}",
        said(&first)
    );
    // 5 programs on 4 numbers of hosts, with sweeps and without, and on 2 networks of today; LU
    // without prefetch; WATER with 6 chunks, pages and groups on 2 numbers of hosts, and once
    // more without sweeps; 2 programs under 2 protocols; TSP with 3 other minipages, and without
    // its push.
    assert_eq!(runs(folder), 5 * (8 + 2) + 1 + 8 * 3 + 4 + 4);
    fs::write(folder.join("ran.on"), "").unwrap();
    let again = multiview(folder, &[]);
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(runs(folder), 83 + 2, "only what had failed ran again");
    let page = fs::read_to_string(folder.join("multiview/multiview.md")).unwrap();
    for part in [
        "Table 1",
        "Table 2",
        "figure 5",
        "figure 6, left",
        "figure 6, right",
        "figure 7",
        "| set protection | given | 12 | 12.00 | 1.00 |",
        "| SOR | a row, 256 bytes | 8388608 /  | 16 /  | 21 / 0 | - / 0 |",
        "| SOR and IS are \"close to linear\": at least 7.0 of 8 | no |",
        "| operations whose cost is neither given nor fitted cost what Table 1 and section 4.2 \
         say, within 15% | yes | 0.88 to 1.00 of the paper's |",
        // Every run is the same here, so that nothing falls, and all of the time is not counted.
        "| what the time is spent on adds up: all of it but 5% is counted | no |",
        "| the optimal chunk falls if nodes that compute take messages at once | no |",
    ] {
        assert!(page.contains(part), "{part} in\n{page}");
    }
    for figure in ["6-left", "6-right", "7"] {
        let drawn = fs::read_to_string(folder.join(format!("multiview/figure-{figure}.svg")));
        assert!(drawn.unwrap().contains("<rect"), "{figure}");
    }
    let small = multiview(folder, &["--small"]);
    assert!(small.status.success());
    let page = fs::read_to_string(folder.join("multiview-small/multiview.md")).unwrap();
    assert!(
        !page.contains("What holds"),
        "the paper has no such numbers"
    );
    let json = fs::read_to_string(folder.join("multiview/multiview.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(83));
}
