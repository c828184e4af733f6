//! The programs on processes, over every transport, against their sequential versions: as a user
//! starts them, with `dhole run`, which is to be built before where this crate is tested alone
//! (`cargo build -p dhole-cli`).

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{barnes_program, built};

const TRANSPORTS: [&str; 4] = ["shm", "tcp", "udp", "mixed"];

/// The command, which `cargo test --workspace` builds beside the programs.
fn dhole() -> String {
    built("dhole", "dhole-cli")
}

/// Runs a program on three processes over each transport: none may be further from its sequential
/// version than `most`.
fn verify(program: &str, options: &[&str], most: f64) {
    let dhole = dhole();
    for transport in TRANSPORTS {
        let output = Command::new(&dhole)
            .args(["run", "-n", "3", "--transport", transport, "--", program])
            .args(options)
            .args(["--verify", "--json"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let all = || format!("{program} over {transport}: {output:?}");
        assert!(output.status.success(), "{}", all());
        let printed = String::from_utf8_lossy(&output.stdout);
        let report: Value = serde_json::from_str(printed.trim()).unwrap();
        assert_eq!(report["transport"], transport, "{}", all());
        assert_eq!(report["nodes"], 3, "{}", all());
        let error = report["result"]["max_error"].as_f64();
        assert!(error.is_some_and(|error| error <= most), "{}", all());
        assert_eq!(report["result"]["verified"], true, "{}", all());
    }
}

/// The command has decided on the nodes. Options that ask for others are refused, not passed over.
#[test]
fn another_number_of_nodes_than_there_are_is_refused() {
    let size = ["--rows", "16", "--columns", "16", "--steps", "1"];
    for (command, nodes, code) in [
        (&["run", "-n", "2"][..], "4", 2),
        (&["run", "-n", "2"], "2", 0),
        (&["sim", "-n", "2", "--fixed-cost"], "4", 2),
        (&["sim", "-n", "2", "--fixed-cost"], "2", 0),
    ] {
        let output = Command::new(dhole())
            .args(command)
            .args(["--", env!("CARGO_BIN_EXE_sor"), "--nodes", nodes])
            .args(size)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{command:?} {nodes}: {said}"
        );
        let refused = said.contains("error: --nodes 4: the program is started on 2 nodes");
        assert_eq!(refused, code != 0, "{said}");
    }
}

/// A program over raw memory names the lines that wait for it, as those over objects do.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_report_names_the_lines_of_misses_in_raw_memory() {
    let is = [
        env!("CARGO_BIN_EXE_is"),
        "--keys-log2",
        "10",
        "--rankings",
        "3",
        "--report",
    ];
    let output = Command::new(dhole())
        .args(["run", "-n", "2", "--domains", "node", "--"])
        .args(is)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    for does in ["write", "read"] {
        let line =
            format!(" to {does} rows of raw memory that are borrowed at apps/src/is/memory.rs:");
        assert!(said.contains(&line), "{said}");
    }
}

#[test]
fn sor_on_processes_is_exact() {
    let options = ["--rows", "64", "--columns", "64", "--steps", "6"];
    verify(env!("CARGO_BIN_EXE_sor"), &options, 0.0);
}

#[test]
fn barnes_on_processes_is_exact() {
    let options = ["--bodies", "256", "--steps", "2"];
    verify(barnes_program(), &options, 0.0);
}

#[test]
fn water_nsquared_on_processes_differs_by_rounding_alone() {
    let options = ["--molecules", "64", "--steps", "2"];
    verify(env!("CARGO_BIN_EXE_water-nsquared"), &options, 1e-9);
}

#[test]
fn water_spatial_on_processes_differs_by_rounding_alone() {
    let options = ["--molecules", "64", "--steps", "2"];
    verify(env!("CARGO_BIN_EXE_water-spatial"), &options, 1e-9);
}

/// Runs `barnes` as these words say, and returns what goes to standard output and error.
fn barnes(words: &[&str]) -> (String, String) {
    let output = Command::new(dhole())
        .args(words)
        .args(["--", barnes_program()])
        .args(["--bodies", "256", "--steps", "2", "--json"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_report_of_processes_has_the_lines_of_all_nodes() {
    for transport in ["shm", "tcp"] {
        let words = [
            "run",
            "-n",
            "3",
            "--transport",
            transport,
            "--prefix",
            "none",
        ];
        let (printed, said) = barnes(&[&words[..], &["--report=json"]].concat());
        let report: Value = serde_json::from_str(said.trim()).unwrap();
        assert_eq!(
            (&report["nodes"], &report["transport"]),
            (&3.into(), &transport.into())
        );
        let counted: Value = serde_json::from_str(printed.trim()).unwrap();
        let missed = &report["waits"]["miss"];
        assert_eq!(missed["waits"], counted["fetch_rounds"], "{said}");
        assert_eq!(missed["misses"], counted["misses"], "{said}");
        let lines = report["lines"].as_array().unwrap();
        let is_walk = |line: &&Value| {
            let at = line["at"].as_str().unwrap();
            at.contains("apps/barnes/src/shared/walk.rs:") && line["cause"] == "miss"
        };
        let walk = lines.iter().find(is_walk).expect(&said);
        // Whoever allocated the objects, node 0 knows the line.
        let made = walk["allocated_at"].as_str().expect("it is known");
        let those_of_trees = ["apps/barnes/src/", "apps/common/src/pool.rs:"];
        assert!(
            those_of_trees.iter().any(|file| made.starts_with(file)),
            "{made}"
        );
        assert!(
            report["waits"]["barrier"]["waits"].as_u64() > Some(0),
            "{said}"
        );
    }
}

#[test]
fn a_report_for_people_goes_to_standard_error_once() {
    let (printed, said) = barnes(&["sim", "--nodes", "3", "--fixed-cost", "--report"]);
    assert!(
        serde_json::from_str::<Value>(printed.trim()).is_ok(),
        "{printed}"
    );
    assert_eq!(
        said.matches("3 nodes over sim, protocol lazy, ").count(),
        1,
        "{said}"
    );
    assert!(
        said.contains(" for the other nodes at apps/barnes/src/"),
        "{said}"
    );
    let (_, said) = barnes(&["run", "-n", "2", "--report"]);
    assert!(
        said.starts_with("[0] 2 nodes over shm, protocol lazy, "),
        "{said}"
    );
    assert!(said.lines().all(|line| line.starts_with("[0] ")), "{said}");
    let (_, said) = barnes(&["run", "-n", "2"]);
    assert_eq!(said, "");
}

#[test]
fn node_0_alone_draws_the_bodies_and_refuses_what_it_cannot_write() {
    let folder = std::env::temp_dir().join(format!("dhole-processes-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let barnes = |file: &str| {
        let path = folder.join(file);
        Command::new(dhole())
            .args(["run", "-n", "3", "--", barnes_program()])
            .args(["--bodies", "256", "--steps", "2", "--json", "--picture"])
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .map(|output| (output, path))
            .unwrap()
    };
    let (output, path) = barnes("bodies.png");
    assert!(output.status.success(), "{output:?}");
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let info = png::Decoder::new(file).read_info().unwrap().info().size();
    assert_eq!(info, (900, 600));

    let (output, path) = barnes("none/bodies.png");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let words = format!("[0] error: writing {}: ", path.display());
    assert_eq!(said.matches("error: writing").count(), 1, "{said}");
    assert!(said.contains(&words), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}
