//! `dhole sim` as a user meets it. The programs are shell scripts that say hello as
//! `dhole::run` does, or do not.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::write_script;

/// Runs `dhole sim` with these words.
fn sim(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dhole"))
        .arg("sim")
        .args(words)
        .output()
        .unwrap()
}

/// Runs a shell script inside a simulated cluster of two.
fn script(text: &str) -> Output {
    sim(&["--nodes", "2", "--", "/bin/sh", "-c", text])
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("dhole itself is not killed")
}

fn says(output: &Output, words: &str) -> bool {
    String::from_utf8_lossy(&output.stderr).contains(words)
}

#[test]
fn a_wrong_variable_is_an_error_and_an_empty_one_is_none() {
    let with = |value| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dhole"));
        command.args(["sim", "--nodes", "2", "--", "/bin/sh", "-c"]);
        command.arg("echo run > $DHOLE_HELLO");
        command.env("DHOLE_CONSISTENCY", value).output().unwrap()
    };
    assert_eq!(code(&with("")), 0);
    let output = with("lazy");
    let words = "dhole: DHOLE_CONSISTENCY is `lazy`: one of sequential, release is expected\n";
    assert_eq!(code(&output), 2);
    assert_eq!(String::from_utf8_lossy(&output.stderr), words);
}

#[test]
fn a_simulated_run_survives_where_that_is_asked_for() {
    let said = |options: &[&str]| {
        let text = "echo run > $DHOLE_HELLO; echo survive=$DHOLE_SURVIVE";
        let program = ["--nodes", "2", "--", "/bin/sh", "-c", text];
        let output = sim(&[options, &program].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(said(&["--survive"]), "survive=1\n");
    assert_eq!(said(&[]), "survive=\n");
}

#[test]
fn a_program_gets_the_settings_and_its_arguments() {
    let output = sim(&[
        "--nodes=3",
        "--seed=7",
        "--fixed-cost=2",
        "--",
        "/bin/sh",
        "-c",
        "echo run > $DHOLE_HELLO; echo \"$DHOLE_SIM $0 $1\"",
        "--nodes",
        "--help",
    ]);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let (settings, arguments) = said.trim().split_once(' ').unwrap();
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    assert_eq!(arguments, "--nodes --help");
    let settings: dhole::sim::Settings = settings.parse().unwrap();
    assert_eq!((settings.nodes, settings.seed), (3, 7));
    assert_eq!(
        settings.computation,
        dhole::sim::Computation::FixedCost { unit_ns: 2.0 }
    );
}

#[test]
fn a_programs_exit_code_is_passed_on() {
    let output = script("printf run > $DHOLE_HELLO; exit 42");
    assert_eq!(code(&output), 42);
    assert!(output.stderr.is_empty());
}

#[test]
fn a_program_that_never_calls_run_was_not_simulated() {
    let output = sim(&["--nodes", "2", "--", "/bin/true"]);
    assert_eq!(code(&output), 1);
    let words = "`/bin/true` is not a dhole program: it ended without calling dhole::run, \
                 so nothing was simulated";
    assert!(says(&output, words), "{output:?}");
}

#[test]
fn a_program_that_fails_first_is_not_called_something_else() {
    let output = script("echo out of luck >&2; exit 3");
    assert_eq!(code(&output), 3);
    assert!(says(&output, "out of luck"));
    assert!(says(
        &output,
        "`/bin/sh` failed before it called dhole::run"
    ));
    assert!(!says(&output, "is not a dhole program"));
}

#[test]
fn a_program_that_a_signal_ends_is_reported_as_by_a_shell() {
    let output = script("printf run > $DHOLE_HELLO; kill -9 $$");
    assert_eq!(code(&output), 128 + 9);
    assert!(
        says(&output, "`/bin/sh` was ended by signal 9 (SIGKILL)"),
        "{output:?}"
    );
    let output = script("printf run > $DHOLE_HELLO; kill -11 $$");
    assert_eq!(code(&output), 128 + 11);
    assert!(says(&output, "--stack-kib"), "{output:?}");
}

#[test]
fn a_missing_program_is_named() {
    for program in ["/nowhere/at-all", "no-such-program-in-the-path"] {
        let output = sim(&["--nodes", "2", "--", program]);
        assert_eq!(code(&output), 127);
        assert!(
            says(&output, &format!("there is no program `{program}`")),
            "{output:?}"
        );
    }
}

#[test]
fn a_directory_and_a_plain_file_cannot_be_run() {
    let output = sim(&["--nodes", "2", "--", "/tmp"]);
    assert_eq!(code(&output), 126);
    assert!(
        says(&output, "`/tmp` cannot be run: is a directory"),
        "{output:?}"
    );

    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let output = sim(&["--nodes", "2", "--", path]);
    assert_eq!(code(&output), 126);
    assert!(says(&output, path), "{output:?}");

    let script = tempfile::tempdir().unwrap();
    let path = script.path().join("script");
    write_script(&path, "#!/nowhere/interpreter\n");
    let output = sim(&["--nodes", "2", "--", path.to_str().unwrap()]);
    assert_eq!(code(&output), 126, "{output:?}");
}

#[test]
fn n_is_as_good_as_nodes_and_defaults_are_told_by_variables() {
    let words = "-n 4 --protocol home --races fail -- /bin/sh -c";
    let words: Vec<&str> = words.split(' ').collect();
    let text = "echo run > $DHOLE_HELLO; echo $DHOLE_SIM $DHOLE_PROTOCOL $DHOLE_RACES";
    let output = sim(&[&words[..], &[text]].concat());
    assert_eq!(code(&output), 0, "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("nodes=4") && said.trim().ends_with(" home fail"),
        "{said}"
    );
}

#[test]
fn no_cluster_has_0_or_5000_nodes() {
    for nodes in ["0", "5000"] {
        let output = sim(&["--nodes", nodes, "--", "/bin/true"]);
        assert_eq!(code(&output), 2);
        let words = format!("a simulated cluster has 1 to 1024 nodes, not {nodes}");
        assert!(says(&output, &words), "{output:?}");
    }
}

#[test]
fn what_cannot_be_understood_is_named() {
    for (words, named) in [
        (&["--nodse", "2", "--", "/bin/true"][..], "--nodse"),
        (&["--nodes", "two", "--", "/bin/true"], "two"),
        (
            &["--nodes", "2", "--jitter", "1.5", "--", "/bin/true"],
            "1.5",
        ),
        (
            &["--nodes", "2", "--latency-us=-1", "--", "/bin/true"],
            "-1",
        ),
        (
            &["--nodes", "2", "--bandwidth-mbit", "0", "--", "/bin/true"],
            "--bandwidth-mbit",
        ),
        (
            &["--nodes", "2", "--stack-kib", "1", "--", "/bin/true"],
            "stack_bytes",
        ),
        (
            &["--nodes", "2", "--fixed-cost=-1", "--", "/bin/true"],
            "fixed_cost",
        ),
        (&["--nodes", "2"], "PROGRAM"),
        (&["--", "/bin/true"], "--nodes"),
    ] {
        let output = sim(words);
        assert_eq!(code(&output), 2, "{words:?}: {output:?}");
        assert!(says(&output, named), "{words:?}: {output:?}");
    }
}

#[test]
fn the_hello_file_is_fresh_and_removed() {
    let output = script("cat $DHOLE_HELLO; printf run > $DHOLE_HELLO; echo $DHOLE_HELLO");
    let path = String::from_utf8(output.stdout).unwrap();
    assert!(
        path.starts_with('/') && !fs::exists(path.trim()).unwrap(),
        "{path}"
    );
}

#[test]
fn a_program_reads_the_commands_own_input() {
    let input = tempfile::NamedTempFile::new().unwrap();
    fs::write(input.path(), "a line\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args([
            "sim",
            "--nodes",
            "2",
            "--",
            "/bin/sh",
            "-c",
            "printf run > $DHOLE_HELLO; cat",
        ])
        .stdin(Stdio::from(input.reopen().unwrap()))
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"a line\n");
}

#[test]
fn a_signal_to_the_command_ends_the_program_too() {
    use std::io::{BufRead, BufReader};
    let mut dhole = Command::new(env!("CARGO_BIN_EXE_dhole"))
        .args(["sim", "--nodes", "2", "--", "/bin/sh", "-c"])
        .arg("echo run > $DHOLE_HELLO; echo $$; exec sleep 600")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let stdout = dhole.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut said).unwrap();
    let program = said.trim().to_owned();
    let kill = |pid: &str, signal| {
        let mut kill = Command::new("kill");
        kill.args([signal, pid]).stderr(Stdio::null());
        kill.status().unwrap().success()
    };
    assert!(kill(&dhole.id().to_string(), "-TERM"));
    assert_eq!(dhole.wait().unwrap().code(), Some(143));
    assert!(!kill(&program, "-0"), "the program has ended");
}
