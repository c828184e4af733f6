//! The programs that take jobs, on processes of which one is killed while it computes: what the
//! others find is what the sequential version finds. And `tsp`, told to stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use apps::input::Lines;
use apps::{ida, raytrace, tsp};
use serde_json::Value;

use crate::built;

const NODES: usize = 3;
/// How long a run may take on a machine that much else uses.
const PATIENCE: Duration = Duration::from_secs(300);

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data")
        .join(name)
}

/// Starts a program on processes that survive the loss of one.
fn start(program: &str, options: &[&str]) -> Child {
    Command::new(built("dhole", "dhole-cli"))
        .args([
            "run",
            "--survive",
            "-n",
            &NODES.to_string(),
            "--prefix",
            "none",
            "--",
            program,
        ])
        .args(options)
        .arg("--json")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A file of a process, while there is one.
fn about(process: u32, what: &str) -> Option<String> {
    let read = fs::read(format!("/proc/{process}/{what}")).ok()?;
    Some(String::from_utf8_lossy(&read).into_owned())
}

/// The process of a node.
fn node(parent: u32, node: usize) -> Option<u32> {
    let mut children = about(parent, &format!("task/{parent}/children"))?;
    for entry in fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten() {
        let thread = entry.file_name().into_string().ok()?;
        children += " ";
        children += &about(parent, &format!("task/{thread}/children"))?;
    }
    let its = format!("DHOLE_NODE={node}");
    let mut children = children.split_whitespace().filter_map(|it| it.parse().ok());
    children.find(|child| {
        let environment = about(*child, "environ").unwrap_or_default();
        environment.split('\0').any(|it| it == its)
    })
}

/// How long a process has computed. All its threads count.
fn computed(process: u32) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let thread = thread.ok()?.file_name().into_string().ok()?;
        // A thread may end between the list and this look.
        let Some(times) = about(process, &format!("task/{thread}/schedstat")) else {
            continue;
        };
        let computed = times.split(' ').next()?.parse().ok()?;
        sum += Duration::from_nanos(computed);
    }
    Some(sum)
}

/// Signals a process; whether there is one.
fn signal(process: u32, signal: &str) -> bool {
    let kill = format!("kill -{signal} {process}");
    let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
    killed.success()
}

/// Waits until a process has computed for so long, or the run is over.
fn await_computed(
    run: &mut Child,
    process: impl Fn() -> Option<u32>,
    time: Duration,
) -> Option<u32> {
    let began = Instant::now();
    while run.try_wait().unwrap().is_none() {
        assert!(
            began.elapsed() < PATIENCE,
            "it computes for less than {time:?}"
        );
        if let Some(process) = process().filter(|it| computed(*it) >= Some(time)) {
            return Some(process);
        }
        // The processor time of another process can only be polled for.
        sleep(Duration::from_millis(1));
    }
    None
}

/// Kills a node when it has computed for so long; what the run prints. How long a node computes
/// before its run begins and until it is over differs between machines. A kill that comes too
/// early or too late is tried again halfway to the other.
fn killed(program: &str, options: &[&str], victim: usize, milliseconds: u64) -> Value {
    const TRIES: usize = 30;
    let mut after = Duration::from_millis(milliseconds);
    let (mut too_early, mut too_late) = (Duration::ZERO, None);
    for _ in 0..TRIES {
        let mut run = start(program, options);
        let parent = run.id();
        let process = await_computed(&mut run, || node(parent, victim), after);
        let struck = process.is_some_and(|process| signal(process, "KILL"));
        let output = run.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let has_begun = !["joining the cluster", "beginning a run"]
            .iter()
            .any(|early| errors.contains(early));
        if struck && !has_begun {
            too_early = after;
        } else if !struck || errors.contains("was over") {
            // Nobody does for a node what it had to do when the run was over.
            too_late = Some(after);
        } else {
            let what = format!("{program}, node {victim} killed after {after:?}: {output:?}");
            assert!(output.status.success(), "{what}");
            return printed(&output);
        }
        after = too_late.map_or(after * 2, |too_late| (too_early + too_late) / 2);
    }
    panic!("{program}: node {victim} runs for none of {too_early:?} to {too_late:?}");
}

/// The object that a program prints.
fn printed(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|wrong| panic!("{wrong}: {output:?}"))
}

/// Kills nodes of `raytrace`, after so long each: every picture is the sequential one.
fn pictures(kills: impl Iterator<Item = (usize, u64)>) {
    let scene = data("spheres.scene");
    let problem = raytrace::Problem {
        scene: raytrace::Scene::parse(&Lines::read(&scene, 1 << 20).unwrap()).unwrap(),
        size: (2400, 1800),
        output: None,
    };
    let (alone, _) = (raytrace::PROGRAM.sequential)(&problem);
    let sequential = (raytrace::PROGRAM.result)(&problem, &alone);
    let file = std::env::temp_dir().join(format!("dhole-survives-{}.png", std::process::id()));
    let options = format!(
        "--width 2400 --height 1800 --input {} --output {}",
        scene.display(),
        file.display()
    );
    let options: Vec<&str> = options.split(' ').collect();
    for (victim, milliseconds) in kills {
        let raytrace = env!("CARGO_BIN_EXE_raytrace");
        let report = killed(raytrace, &options, victim, milliseconds);
        let result = &report["result"];
        assert_eq!(
            result["checksum"], sequential["checksum"],
            "{victim}, {milliseconds}"
        );
        assert_eq!(
            result["rays"], sequential["rays"],
            "{victim}, {milliseconds}"
        );
        let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(&file).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        assert_eq!(pixels, alone.picture.pixels(), "{victim}, {milliseconds}");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn raytrace_draws_the_sequential_picture_though_a_node_is_killed() {
    pictures([(1, 120), (0, 80), (2, 160)].into_iter());
}

#[test]
#[ignore = "half a minute; docs/testing.md"]
fn raytrace_draws_the_sequential_picture_in_twenty_runs() {
    pictures((0..20).map(|run| (run % NODES, 80 + 30 * run as u64)));
}

#[test]
fn the_salesman_and_the_puzzle_survive_a_kill() {
    let cities = data("burma14.tsp");
    let options = ["--input", cities.to_str().unwrap()];
    let report = killed(env!("CARGO_BIN_EXE_tsp"), &options, 1, 150);
    assert_eq!(report["result"]["optimum"], 3323);
    let position = "0,1,9,7,11,13,5,3,14,12,4,2,8,6,10,15";
    let report = killed(env!("CARGO_BIN_EXE_ida"), &["--position", position], 0, 300);
    let (alone, _) = (ida::PROGRAM.sequential)(&ida::Position::parse(position).unwrap());
    assert_eq!(report["result"]["moves"], alone.moves);
    assert_eq!(report["result"]["nodes_expanded"], alone.nodes_expanded);
}

#[test]
fn tsp_prints_the_shortest_tour_so_far_when_it_is_told_to_stop() {
    let file = std::env::temp_dir().join(format!("dhole-cities-{}.tsp", std::process::id()));
    let place = |city: usize| format!("{} {} {}\n", city + 1, city * 379 % 1000, city * 571 % 997);
    let places: String = (0..60).map(place).collect();
    let head = "DIMENSION: 60\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n";
    fs::write(&file, format!("{head}{places}")).unwrap();
    let instance = tsp::Instance::parse(&Lines::read(&file, 1 << 20).unwrap()).unwrap();
    for name in ["INT", "TERM"] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_tsp"))
            .args(["--nodes", "2", "--json", "--input", file.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let process = run.id();
        assert!(await_computed(&mut run, || Some(process), Duration::from_millis(200)).is_some());
        assert!(signal(process, name), "{name}");
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let result = &printed(&output)["result"];
        let tour = result["tour"].as_array().unwrap();
        let tour: Vec<usize> = tour
            .iter()
            .map(|it| it.as_u64().unwrap() as usize - 1)
            .collect();
        let ways = tour.iter().zip(tour.iter().cycle().skip(1));
        let length: u64 = ways
            .map(|(from, to)| u64::from(instance.distance(*from, *to)))
            .sum();
        assert_eq!(
            (tour.len(), &result["shortest_so_far"]),
            (60, &length.into())
        );
        assert!(result["optimum"].is_null(), "{result}");
    }
    fs::remove_file(&file).unwrap();
}
