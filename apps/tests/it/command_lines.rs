//! The programs as a user runs them.

use std::process::{Command, Output};

use serde_json::Value;

use crate::barnes_program;

const SOR: &str = env!("CARGO_BIN_EXE_sor");
const TSP: &str = env!("CARGO_BIN_EXE_tsp");
const NSQUARED: &str = env!("CARGO_BIN_EXE_water-nsquared");
const SPATIAL: &str = env!("CARGO_BIN_EXE_water-spatial");

fn run(program: &str, args: &str) -> Output {
    let mut command = Command::new(program);
    command
        .args(args.split_whitespace())
        .env_remove("DHOLE_SIM");
    command.output().expect("the program can be started")
}

fn refused(program: &str, args: &str) -> String {
    let output = run(program, args);
    assert_eq!(output.status.code(), Some(2), "{args}: {output:?}");
    assert!(output.stdout.is_empty(), "{args}: nothing was run");
    String::from_utf8(output.stderr).unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    let text = std::str::from_utf8(&output.stdout).unwrap();
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}

#[test]
fn nothing_of_what_there_must_be_some_is_refused() {
    for (program, size) in [
        (SOR, "--rows"),
        (SOR, "--columns"),
        (barnes_program(), "--bodies"),
        (NSQUARED, "--molecules"),
        (SPATIAL, "--molecules"),
    ] {
        for option in ["--nodes", "--steps", size] {
            let error = refused(program, &format!("{option} 0"));
            let named = error.contains("'0'") && error.contains(option);
            assert!(named, "{program} {option}: {error}");
        }
        assert!(refused(program, "--nodes 5000").contains("'5000'"));
    }
}

#[test]
fn bad_input_is_refused_with_the_value_that_is_wrong() {
    for (program, args, named) in [
        (SOR, "--rows 3 --nodes 4", "4 nodes are more than 3 rows"),
        (SOR, "--omega 2.5", "2.5"),
        (
            SOR,
            "--rows 100000000 --columns 100000000",
            "100000000 x 100000000",
        ),
        (SOR, "--bodies 5", "'--bodies'"),
        (SOR, "--layout trees", "'trees'"),
        (SOR, "--nodes", "'--nodes <N>'"),
        (barnes_program(), "--nodes 1025", "'1025'"),
        (barnes_program(), "--bodies -1", "'-1'"),
        (barnes_program(), "--theta -0.5", "an opening angle of -0.5"),
        (barnes_program(), "--theta NaN", "an opening angle of NaN"),
        (
            barnes_program(),
            "--bodies 7 --nodes 8",
            "8 nodes are more than 7 bodies",
        ),
        (barnes_program(), "--rows 5", "'--rows'"),
        (barnes_program(), "nonsense", "'nonsense'"),
        (NSQUARED, "--molecules 100000000", "'100000000'"),
        (NSQUARED, "--cutoff -6", "-6"),
        (NSQUARED, "--cutoff NaN", "NaN"),
        (
            NSQUARED,
            "--molecules 7 --nodes 8",
            "8 nodes are more than 7 molecules",
        ),
        (NSQUARED, "--bodies 5", "'--bodies'"),
        (SPATIAL, "--cutoff 0.1", "0.1"),
        (
            SPATIAL,
            "--molecules 512 --nodes 65",
            "65 nodes are more than 64 cells",
        ),
        (SOR, "--chunk 2", "--chunk: only raw memory has it"),
        (SOR, "--element f32", "--element: only raw memory has it"),
        (
            NSQUARED,
            "--share memory",
            "--record split: not with --share memory",
        ),
        (TSP, "--nodes 1", "--input <FILE>|--cities <N>"),
        (TSP, "--input a --cities 9", "--cities <N>"),
        (
            TSP,
            "--cities 33 --share memory",
            "33 cities: with --share memory there may be 32",
        ),
        (
            TSP,
            "--cities 9 --share memory --time-limit 1",
            "--time-limit: not with --share memory",
        ),
        (TSP, "--cities 9 --unit 256", "--unit: only raw memory"),
        (
            TSP,
            "--cities 33 --share sections",
            "33 cities: with --share sections there may be 32",
        ),
        (
            TSP,
            "--cities 9 --share calls --time-limit 1",
            "--time-limit: not with --share calls",
        ),
        (
            TSP,
            "--cities 9 --share memory --preset",
            "--preset: not with --share memory",
        ),
        (
            SOR,
            "--protocol eager",
            "one of lazy, update, home, treadmarks, directory is expected",
        ),
    ] {
        let error = refused(program, args);
        assert!(error.contains(named), "{args}: {error}");
    }
}

#[test]
fn what_the_command_says_of_protocol_and_races_is_a_default() {
    let size = [
        "--rows",
        "8",
        "--columns",
        "9",
        "--steps",
        "1",
        "-n",
        "2",
        "--json",
    ];
    let told = |protocol: &str, races: &str, words: &[&str]| {
        let mut command = Command::new(SOR);
        command.args(size).args(words).env_remove("DHOLE_SIM");
        let command = command
            .env("DHOLE_PROTOCOL", protocol)
            .env("DHOLE_RACES", races);
        command.output().expect("the program can be started")
    };
    assert_eq!(json(&told("home", "fail", &[]))["protocol"], "home");
    assert_eq!(
        json(&told("home", "", &["--protocol", "update"]))["protocol"],
        "update"
    );
    assert_eq!(json(&told("", "", &[]))["protocol"], "lazy");
    for (protocol, races, words, named) in [
        ("hoem", "", &[][..], "DHOLE_PROTOCOL is `hoem`"),
        ("", "perhaps", &[], "DHOLE_RACES is `perhaps`"),
        (
            "treadmarks",
            "fail",
            &[],
            "--races: treadmarks looks for none",
        ),
        (
            "treadmarks",
            "",
            &["--read-aggregation", "on"],
            "--read-aggregation: treadmarks",
        ),
    ] {
        let output = told(protocol, races, words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(named), "{said}");
    }
}

#[test]
fn a_switch_that_the_protocol_lacks_is_refused_and_a_default_is_silent() {
    let lacked = [
        ("treadmarks", "--read-aggregation on"),
        ("treadmarks", "--read-aggregation off"),
        ("treadmarks", "--notice-reduction 16"),
        ("treadmarks", "--write-detection marks"),
        ("treadmarks", "--allocation first-touch"),
        ("treadmarks", "--detector vm"),
        ("treadmarks", "--races warn-all"),
        ("update", "--read-aggregation on"),
        ("update", "--write-detection twins"),
        ("home", "--read-aggregation off"),
        ("home", "--write-detection objects"),
        ("home", "--notice-reduction 0"),
    ];
    for (protocol, switch) in lacked {
        for program in [SOR, barnes_program(), NSQUARED, SPATIAL] {
            let error = refused(program, &format!("--protocol {protocol} {switch}"));
            let name = switch.split(' ').next().unwrap();
            let named = error.starts_with(&format!("error: {name}")) && error.contains(protocol);
            assert!(named, "{protocol} {switch}: {error}");
        }
    }
    for (protocol, switches) in [
        ("treadmarks", ""),
        (
            "treadmarks",
            "--allocation everywhere --detector check --races ignore",
        ),
        ("update", "--notice-reduction 4 --allocation everywhere"),
        ("home", "--detector vm --races fail"),
        (
            "lazy",
            "--read-aggregation off --notice-reduction 0 --write-detection twins",
        ),
    ] {
        let args = format!("--rows 8 --columns 9 --steps 1 --nodes 2 --protocol {protocol}");
        let output = run(SOR, &format!("{args} {switches}"));
        assert!(output.status.success(), "{protocol} {switches}: {output:?}");
    }
}

#[test]
fn a_bad_cluster_in_the_environment_is_refused() {
    let output = Command::new(SOR)
        .env("DHOLE_SIM", "nodes=5000")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("5000"));
}

#[test]
fn a_program_that_cannot_survive_the_loss_of_a_node_refuses_to() {
    let asp = env!("CARGO_BIN_EXE_asp");
    for (program, name) in [
        (SOR, "sor"),
        (barnes_program(), "barnes"),
        (NSQUARED, "water-nsquared"),
        (SPATIAL, "water-spatial"),
        (asp, "asp"),
    ] {
        let output = Command::new(program).env("DHOLE_SURVIVE", "1").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{name} was run");
        let said = String::from_utf8(output.stderr).unwrap();
        let told = format!("error: --survive: {name} cannot go on when a node is lost");
        assert!(said.starts_with(&told), "{said}");
    }
    let ida = Command::new(env!("CARGO_BIN_EXE_ida"))
        .args(["--nodes", "2", "--json", "--position"])
        .arg("1,0,2,3,4,5,6,7,8,9,10,11,12,13,14,15")
        .env("DHOLE_SURVIVE", "1")
        .output();
    assert_eq!(json(&ida.unwrap())["result"]["moves"], 1);
}

#[test]
fn the_last_line_is_one_object_with_what_the_papers_tables_need() {
    for (program, max_rounding, args) in [
        (
            SOR,
            0.0,
            "--rows 20 --columns 31 --steps 3 --nodes 3 --verify --json",
        ),
        (
            barnes_program(),
            0.0,
            "--bodies 200 --steps 2 --nodes 3 --verify --json",
        ),
        (
            NSQUARED,
            1e-12,
            "--molecules 64 --steps 2 --nodes 3 --verify --json",
        ),
        (
            SPATIAL,
            1e-12,
            "--molecules 64 --steps 2 --nodes 3 --verify --json",
        ),
    ] {
        let object = json(&run(program, args));
        for field in [
            "messages",
            "data_bytes",
            "fetch_rounds",
            "misses",
            "write_faults",
            "write_notice_bytes",
            "shared_bytes_per_node",
            "seconds",
            "speedup",
            "sequential_seconds",
        ] {
            assert!(object[field].is_number(), "{field} in {object}");
        }
        for field in ["program", "transport", "protocol", "detector"] {
            assert!(object[field].is_string(), "{field} in {object}");
        }
        assert_eq!(object["nodes"], 3);
        let max_error = object["result"]["max_error"].as_f64().unwrap();
        assert!(max_error <= max_rounding, "{max_error} in {object}");
        let verified = object["result"]["verified"].as_bool();
        assert_eq!(verified, Some(true), "{object}");
        assert!(object["counters"]["by_kind"].is_object());
    }
}

#[test]
fn without_json_a_screen_is_printed_and_with_counters_the_table() {
    let args = "--bodies 100 --steps 1 --nodes 2 --verify";
    let output = run(barnes_program(), args);
    assert!(output.status.success());
    let screen = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines[0], "galaxy of 100 bodies, 1 step, 2 nodes (threads)");
    // A single step has no energy before it and behind it.
    let found = "  result    equal to the sequential program's; energy -0.";
    assert!(lines[1].starts_with(found), "{screen}");
    let two = run(barnes_program(), "--bodies 100 --steps 2 --nodes 2");
    let two = String::from_utf8(two.stdout).unwrap();
    assert!(two.contains("  result    energy drift "), "{two}");
    for (name, said) in [
        ("time", "; sequential "),
        ("a node", "computed "),
        ("traffic", " messages, "),
        ("worst", ""),
        ("more", "--report (lines), --counters (all), --json"),
    ] {
        let named = |line: &&&str| line.starts_with(&format!("  {name:<9} "));
        let line = lines.iter().find(named);
        assert!(
            line.is_some_and(|line| line.contains(said)),
            "{name} in:\n{screen}"
        );
    }
    assert!(lines.len() <= 8, "it is seen at one look:\n{screen}");
    let output = run(barnes_program(), &format!("{args} --counters"));
    let shown = String::from_utf8(output.stdout).unwrap();
    for part in [
        "messages",
        "one sided reads",
        "barrier_arrive",
        "Body",
        "kinetic energy",
    ] {
        assert!(shown.contains(part), "{part} in:\n{shown}");
    }
    let zeros = shown.lines().filter(|line| line.ends_with(" 0"));
    assert_eq!(zeros.count(), 0, "{shown}");
    assert!(
        output.stderr.is_empty(),
        "no bar where there is no terminal"
    );
}

/// The screen of a program that compares its result with the sequential program's.
fn screen(program: &str, args: &str) -> Vec<String> {
    let output = run(program, &format!("{args} --nodes 2 --verify"));
    assert!(output.status.success(), "{output:?}");
    let screen = String::from_utf8(output.stdout).unwrap();
    screen.lines().map(str::to_owned).collect()
}

#[test]
fn every_program_says_what_it_solved_and_found_and_how_long_that_takes_alone() {
    let asp = env!("CARGO_BIN_EXE_asp");
    let ida = env!("CARGO_BIN_EXE_ida");
    let raytrace = env!("CARGO_BIN_EXE_raytrace");
    for (program, args, title, found) in [
        (
            SOR,
            "--rows 16 --columns 16 --steps 2",
            "grid of 16 x 16 points, 2 steps",
            "digest ",
        ),
        (
            NSQUARED,
            "--molecules 27 --steps 1",
            "water of 27 molecules, 1 step",
            "energy drift ",
        ),
        (
            SPATIAL,
            "--molecules 64 --steps 1",
            "water of 64 molecules, 1 step",
            "energy drift ",
        ),
        (
            TSP,
            "--cities 7",
            "tour of random-7, 7 cities",
            "the shortest is ",
        ),
        (
            asp,
            "--vertices 40",
            "shortest paths between 40 vertices over ",
            " pairs have a path; ",
        ),
        (
            ida,
            "--position 1,2,0,3,4,5,6,7,8,9,10,11,12,13,14,15",
            "15-puzzle ",
            " moves, in ",
        ),
    ] {
        has_its_screen(program, args, title, found);
    }
    let scene = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/spheres.scene");
    let args = format!("--input {scene} --width 16 --height 12");
    let title = "ray-traced picture of 16 x 12 pixels";
    has_its_screen(raytrace, &args, title, " rays traced; ");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn so_does_every_program_over_raw_memory() {
    let (is, lu) = (env!("CARGO_BIN_EXE_is"), env!("CARGO_BIN_EXE_lu"));
    let grid = "--rows 16 --columns 16 --steps 2 --share memory";
    for (program, args, title, found) in [
        (SOR, grid, "grid of 16 x 16 points, 2 steps", "digest "),
        (
            is,
            "--keys-log2 12 --values-log2 6 --rankings 3",
            "4,096 keys of 64 values, ranked 3 times",
            "ranks ",
        ),
        (
            lu,
            "--size 32 --block 8",
            "LU factors of a matrix of 32 x 32, in blocks of 8 x 8",
            "digest ",
        ),
    ] {
        has_its_screen(program, args, title, found);
    }
}

#[track_caller]
fn has_its_screen(program: &str, args: &str, title: &str, found: &str) {
    let lines = screen(program, args);
    let shown = lines.join("\n");
    assert!(lines[0].starts_with(title), "{title}: {shown}");
    assert!(lines[0].ends_with(", 2 nodes (threads)"), "{shown}");
    let result = "  result    equal to the sequential program's";
    assert!(
        lines[1].starts_with(result) && lines[1].contains(found),
        "{found}: {shown}"
    );
    let time = "  time      ";
    assert!(
        lines[2].starts_with(time) && lines[2].contains("; sequential "),
        "{shown}"
    );
}

#[test]
fn the_costs_are_told_behind_the_result_where_they_are_asked_for() {
    let output = run(
        barnes_program(),
        "--bodies 200 --steps 2 --nodes 2 --report --json",
    );
    assert!(json(&output)["messages"].is_number());
    let said = String::from_utf8(output.stderr).unwrap();
    let head = "2 nodes over threads, protocol lazy, ";
    assert!(said.starts_with(head), "{said}");
    assert!(said.contains(" at apps/barnes/src/"), "{said}");
}

#[test]
fn a_simulated_cluster_tells_its_speedup_and_repeats_itself() {
    let simulated = |program: &str, args: &str| {
        let mut command = Command::new(program);
        command
            .args(args.split_whitespace())
            .env("DHOLE_SIM", "nodes=6,seed=3,fixed_cost=1");
        json(&command.output().unwrap())
    };
    for (program, args) in [
        (SOR, "--rows 60 --columns 63 --steps 4 --json"),
        (barnes_program(), "--bodies 400 --steps 3 --json"),
        (NSQUARED, "--molecules 125 --steps 3 --json --verify"),
        (SPATIAL, "--molecules 125 --steps 3 --json --verify"),
    ] {
        let (one, other) = (simulated(program, args), simulated(program, args));
        assert_eq!(one, other);
        assert_eq!(
            (&one["nodes"], &one["transport"]),
            (&6.into(), &"sim".into())
        );
        assert!(one["speedup"].is_number(), "{one}");
    }
}

#[test]
fn what_cannot_be_written_is_an_error_and_no_silence() {
    let scene = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/spheres.scene");
    let size = "--width 8 --height 8 --nodes 2 --output /nowhere/picture.png";
    let raytrace = env!("CARGO_BIN_EXE_raytrace");
    let said = refused(raytrace, &format!("--input {scene} {size}"));
    assert!(
        said.contains("error: writing /nowhere/picture.png: "),
        "{said}"
    );

    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut sor = Command::new(SOR);
    sor.args(["--rows", "4", "--columns", "4", "--json"]);
    let output = sor.stdout(full.unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("writing the report"), "{said}");

    for program in [SOR, barnes_program(), NSQUARED, SPATIAL, raytrace] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut help = Command::new(program);
        let output = help.arg("--help").stdout(full.unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let expected = "error: writing the help: No space left on device (os error 28)\n";
        assert_eq!(said, expected, "{program}");
    }
}

/// A file of this test's own.
fn file(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("dhole-lines-{}-{name}", std::process::id()))
}

#[test]
fn barnes_draws_the_same_bodies_on_any_number_of_nodes() {
    let pixels = |options: &str| {
        let path = file("bodies.png");
        let all = format!(
            "--bodies 300 --steps 2 --json --picture {} {options}",
            path.display()
        );
        let report = json(&run(barnes_program(), &all));
        assert_eq!(report["result"]["picture"], path.display().to_string());
        let read = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
        let mut reader = png::Decoder::new(read).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((info.width, info.height), (900, 600));
        // A body glows, and is brighter than that.
        let bright = |pixel: &&[u8]| {
            let [red, green, blue] = [0, 1, 2].map(|colour| u32::from(pixel[colour]));
            3 * red + 5 * green + 2 * blue > 1700
        };
        let lit = pixels.chunks(3).filter(bright).count();
        assert!((200..=300).contains(&lit), "{lit} pixels of 300 bodies");
        pixels
    };
    let alone = pixels("--nodes 1");
    for protocol in ["lazy", "update", "home", "directory", "treadmarks"] {
        assert!(
            alone == pixels(&format!("--nodes 3 --protocol {protocol}")),
            "{protocol}"
        );
    }
    let splash = pixels("--nodes 1 --record splash");
    assert!(splash == pixels("--nodes 3 --record splash"));
    assert!(splash != alone, "two models, and not one");
}

#[test]
fn barnes_draws_an_animation_of_the_collision() {
    let path = file("frames.png");
    let size = "--galaxy collision --bodies 300 --steps 5 --nodes 2 --verify --json";
    let report = json(&run(
        barnes_program(),
        &format!("{size} --frames 4 --picture {}", path.display()),
    ));
    assert_eq!(report["result"]["verified"], true);
    let read = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let mut reader = png::Decoder::new(read).read_info().unwrap();
    let frames = reader.info().animation_control.unwrap().num_frames;
    assert_eq!(frames, 4);
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let mut seen = Vec::new();
    for _ in 0..frames {
        reader.next_frame(&mut pixels).unwrap();
        assert!(!seen.contains(&pixels), "each frame is another");
        seen.push(pixels.clone());
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_picture_that_cannot_be_written_is_refused_before_the_bodies_move() {
    let folder = file("pictures");
    std::fs::create_dir(&folder).unwrap();
    let locked = folder.join("locked.png");
    std::fs::write(&locked, "as it was").unwrap();
    let mut rights = std::fs::metadata(&locked).unwrap().permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&locked, rights).unwrap();
    // The system lets its administrator write whatever there is.
    let is_locked = std::fs::File::options().write(true).open(&locked).is_err();
    let mut wrong = vec![
        folder.clone(),
        folder.join("none/a.png"),
        locked.join("a.png"),
    ];
    wrong.extend(is_locked.then(|| locked.clone()));
    for path in wrong {
        // So many steps would take hours.
        let size = "--bodies 100000 --steps 100000 --nodes 2";
        let said = refused(
            barnes_program(),
            &format!("{size} --picture {}", path.display()),
        );
        let words = format!("error: writing {}: ", path.display());
        assert!(said.starts_with(&words), "{said}");
    }
    assert_eq!(std::fs::read(&locked).unwrap(), b"as it was");
    std::fs::remove_dir_all(&folder).unwrap();
}
