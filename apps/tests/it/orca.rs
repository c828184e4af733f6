//! Orca's programs against their sequential versions, and what they send.

use std::path::Path;

use apps::input::Lines;
use apps::mistake::Mistake;
use apps::solve::{Program, Steps};
use apps::{asp, ida, raytrace, tsp};
use dhole::sim::Settings;
use dhole::{Barriers, Config, MessageKind, Run, Worker};

fn lines(name: &str) -> Lines {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data")
        .join(name);
    Lines::read(&path, 1 << 20).unwrap()
}

fn instance(name: &str) -> tsp::Instance {
    tsp::Instance::parse(&lines(name)).unwrap()
}

/// A scene to be traced in so many pixels.
fn spheres(size: (u32, u32)) -> raytrace::Problem {
    raytrace::Problem {
        scene: raytrace::Scene::parse(&lines("spheres.scene")).unwrap(),
        size,
        output: None,
    }
}

/// Solves a problem alone, on threads and in a simulation, which must agree.
fn solve<P: Sync, R: Send + Sync>(program: &Program<P, R>, problem: &P, nodes: usize) -> Run<R> {
    let (alone, _) = (program.sequential)(problem);
    let check = |run: &Run<R>| {
        let differ = (program.differ)(&alone, &run.value);
        assert_eq!(differ, None, "{} on {nodes} nodes", program.name);
    };
    let shared = |w: &mut dhole::Worker<'_>| (program.shared)(w, problem, &mut Steps::default());
    check(&Config::nodes(nodes).run(shared).unwrap());
    let simulated = Config::nodes(nodes)
        .barriers(Barriers::Central)
        .simulate(Settings::fixed_cost(nodes), shared);
    let simulated = simulated.unwrap();
    check(&simulated);
    simulated
}

#[test]
fn the_salesman_finds_the_published_optima() {
    for (name, optimum) in [("gr17.tsp", 2085), ("burma14.tsp", 3323)] {
        let problem = tsp::Problem::from(instance(name));
        for nodes in [1, 4] {
            let found = solve(&tsp::PROGRAM, &problem, nodes).value;
            assert_eq!(found.tour.length, optimum, "{name}");
            let mut cities = found.tour.cities.clone();
            cities.sort_unstable();
            assert!(cities.into_iter().eq(0..problem.instance.cities() as u32));
        }
    }
}

/// The first of 200 seeds at which a program with a mistake finds something else than it should,
/// where the one without finds what it should.
fn noticed<P: Sync, R: Send + Sync>(
    program: &Program<P, R>,
    problem: &P,
    wrong: impl Fn(&mut dhole::Worker<'_>) -> dhole::Result<R> + Sync,
) -> Option<u64> {
    let (alone, _) = (program.sequential)(problem);
    (0..200).find(|seed| {
        let mut settings = Settings::fixed_cost(3);
        (settings.seed, settings.network.jitter) = (*seed, 0.9);
        let right = |w: &mut dhole::Worker<'_>| (program.shared)(w, problem, &mut Steps::default());
        let sound = Config::nodes(3).simulate(settings.clone(), right);
        let sound = sound.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let difference = (program.differ)(&alone, &sound.value);
        assert_eq!(difference, None, "seed {seed}, with no mistake");
        let run = Config::nodes(3).simulate(settings, &wrong);
        run.map_or(true, |run| (program.differ)(&alone, &run.value).is_some())
    })
}

#[test]
fn mistakes_with_objects_are_noticed() {
    // Many tours, found on all nodes at about the same time.
    let problem = tsp::Problem::from(instance("burma14.tsp"));
    let seed = noticed(&tsp::PROGRAM, &problem, |w| {
        tsp::solve_with(w, &problem, &mut Steps::default(), Mistake::BoundUnseen)
    });
    println!("{:?}: seed {seed:?}", Mistake::BoundUnseen);
    assert!(seed.is_some());
    let position = ida::Position::parse("5,1,3,7,4,2,6,11,8,0,9,10,12,13,14,15").unwrap();
    let seed = noticed(&ida::PROGRAM, &position, |w| {
        ida::solve_with(w, &position, &mut Steps::default(), Mistake::StolenJobsStay)
    });
    println!("{:?}: seed {seed:?}", Mistake::StolenJobsStay);
    assert!(seed.is_some());
    let graph = asp::Graph::made(40, 5);
    let seed = noticed(&asp::PROGRAM, &graph, |w| {
        asp::solve_with(w, &graph, &mut Steps::default(), Mistake::RowTooEarly)
    });
    println!("{:?}: seed {seed:?}", Mistake::RowTooEarly);
    assert!(seed.is_some());
}

#[test]
fn paths_through_a_graph_take_one_broadcast_for_each_vertex() {
    let small = asp::Graph::parse(&lines("small.gr")).unwrap();
    let made = asp::Graph::made(60, 5);
    for (graph, nodes) in [(&small, 1), (&small, 3), (&made, 1), (&made, 4), (&made, 7)] {
        let run = solve(&asp::PROGRAM, graph, nodes);
        let measured = run.report.measured().unwrap();
        // On one node there is nobody to tell.
        let told = if nodes > 1 { graph.vertices } else { 0 };
        assert_eq!(measured.broadcasts, told as u64);
        let others = nodes as u64 - 1;
        assert_eq!(measured.sent(MessageKind::Collective), 2 * others);
        assert_eq!(measured.sent(MessageKind::OperationRequest), 0);
    }
    let found = solve(&asp::PROGRAM, &small, 2).value;
    // All reach the ten of the ring and vertex 11, but for 11, which reaches itself alone, and
    // vertex 12 reaches itself too.
    assert_eq!(found.pairs, 10 * 11 + 1 + 12);
}

#[test]
fn puzzles_are_solved_in_the_fewest_moves() {
    for (tiles, moves) in [
        ("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", 0),
        ("1,0,2,3,4,5,6,7,8,9,10,11,12,13,14,15", 1),
        ("4,1,2,3,5,6,7,11,8,9,10,15,12,13,14,0", 6),
        ("5,1,3,7,4,2,6,11,8,0,9,10,12,13,14,15", 15),
    ] {
        let position = ida::Position::parse(tiles).unwrap();
        for nodes in [1, 3] {
            let found = solve(&ida::PROGRAM, &position, nodes).value;
            assert_eq!(found.moves, moves, "{tiles}");
        }
    }
}

#[test]
fn korfs_first_puzzle_takes_57_moves() {
    let position = ida::Position::parse("14,13,15,7,11,12,9,5,6,0,2,1,4,8,10,3").unwrap();
    let run = Config::nodes(2).run(|w| (ida::PROGRAM.shared)(w, &position, &mut Steps::default()));
    let run = run.unwrap();
    assert_eq!(run.value.moves, 57);
    assert_eq!(run.report.total().broadcasts, 0, "no object is replicated");
}

#[test]
fn a_picture_is_traced_without_a_broadcast() {
    let problem = spheres((70, 50));
    for nodes in [1, 4] {
        let run = solve(&raytrace::PROGRAM, &problem, nodes);
        assert_eq!(run.report.total().broadcasts, 0);
    }
}

#[test]
fn what_is_measured_is_as_long_as_all_nodes_need_for_what_they_compute() {
    let problem = spheres((160, 120));
    // Node 0 serves the others, and its worker may be behind them.
    let nodes = 48;
    let shared = |w: &mut Worker<'_>| {
        (raytrace::PROGRAM.shared)(w, &problem, &mut Steps::default()).map(|_| ())
    };
    let run = Config::nodes(nodes)
        .simulate(Settings::fixed_cost(nodes), shared)
        .unwrap();
    let computed = run.report.measured().unwrap().computed_ns / nodes as u64;
    let took = run.report.measured_time.unwrap();
    assert!(
        computed > 0 && took.as_nanos() >= u128::from(computed),
        "{took:?} {computed}"
    );
}

#[test]
fn a_picture_is_written_as_png() {
    let problem = spheres((20, 10));
    let (found, _) = (raytrace::PROGRAM.sequential)(&problem);
    let path = std::env::temp_dir().join(format!("dhole-raytrace-{}.png", std::process::id()));
    found.picture.write(&path).unwrap();
    let file = std::io::BufReader::new(std::fs::File::open(&path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((info.width, info.height), (20, 10));
    assert_eq!(pixels, found.picture.pixels());
}

#[test]
fn every_format_of_distances_is_read() {
    let head = |kind: &str, format: &str| {
        format!(
            "NAME: t\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: {kind}\n\
             EDGE_WEIGHT_FORMAT: {format}\n"
        )
    };
    let explicit = |format: &str, numbers: &str| {
        let text = head("EXPLICIT", format) + "EDGE_WEIGHT_SECTION\n" + numbers + "\nEOF\n";
        tsp::Instance::parse(&Lines::of("t", &text)).unwrap()
    };
    let all = explicit("FULL_MATRIX", "0 1 2 3 1 0 4 5 2 4 0 6 3 5 6 0");
    for (format, numbers) in [
        ("UPPER_ROW", "1 2 3\n4 5\n6"),
        ("LOWER_ROW", "1 2 4 3 5 6"),
        ("UPPER_DIAG_ROW", "0 1 2 3 0 4 5 0 6 0"),
        ("LOWER_DIAG_ROW", "0 1 0 2 4 0 3 5 6 0"),
        ("UPPER_COL", "1 2 4 3 5 6"),
        ("LOWER_DIAG_COL", "0 1 2 3 0 4 5 0 6 0"),
    ] {
        assert_eq!(explicit(format, numbers), all, "{format}");
    }
    let placed = |kind: &str| {
        let places = "NODE_COORD_SECTION\n1 0 0\n2 3 4.6\n3 10 0\n4 0 1\nEOF\n";
        let text = head(kind, "FUNCTION").replace("EDGE_WEIGHT_FORMAT: FUNCTION\n", "") + places;
        let instance = tsp::Instance::parse(&Lines::of("t", &text)).unwrap();
        (instance.distance(0, 1), instance.distance(0, 2))
    };
    // The exact distance is 5.49.
    assert_eq!(placed("EUC_2D"), (5, 10));
    assert_eq!(placed("CEIL_2D"), (6, 10));
    assert_eq!(placed("ATT"), (2, 4));
}

#[test]
fn malformed_files_are_refused_with_the_line() {
    let tsp = |text: &str| {
        let wrong = tsp::Instance::parse(&Lines::of("x.tsp", text));
        wrong.unwrap_err().to_string()
    };
    let head = "DIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\n";
    let section = head.to_owned() + "EDGE_WEIGHT_SECTION\n";
    for (text, told) in [
        ("DIMENSION: many\n", "x.tsp:1: DIMENSION cannot be \"many\""),
        ("DIMENSION: 1\n", "x.tsp:1: 1 cities"),
        (
            "DIMENSION: 3\nDIMENSION: 4\n",
            "x.tsp:2: DIMENSION comes twice",
        ),
        ("NAME: a\nTYPE: SOP\n", "x.tsp:2: a problem of type \"SOP\""),
        (
            "EDGE_WEIGHT_TYPE: MOON\n",
            "x.tsp:1: EDGE_WEIGHT_TYPE cannot be \"MOON\"",
        ),
        (
            "EDGE_WEIGHT_TYPE: XRAY1\n",
            "x.tsp:1: EDGE_WEIGHT_TYPE XRAY1 is not understood here",
        ),
        ("FROBNICATE: 1\n", "x.tsp:1: \"FROBNICATE\" is no keyword"),
        ("EDGE_WEIGHT_SECTION\n1 2\n", "x.tsp:1: distances are given"),
        (
            &(section.clone() + "1 2\nEOF\n"),
            "x.tsp:5: 2 distances of 3 cities as UPPER_ROW: 3",
        ),
        (
            &(section.clone() + "1 2\n-3\n"),
            "x.tsp:6: a distance cannot be -3",
        ),
        (
            &(section.clone() + "1 2\n3x\n"),
            "x.tsp:6: a number cannot be \"3x\"",
        ),
        (
            head,
            "x.tsp: EDGE_WEIGHT_TYPE is EXPLICIT, but there is no EDGE_WEIGHT_SECTION",
        ),
        (
            "NAME: a\n",
            "x.tsp: it has neither an EDGE_WEIGHT_SECTION nor",
        ),
        ("1 2 3\n", "x.tsp:1: \"1 2 3\" begins with no keyword"),
        (
            &(section.clone() + "1 2 3\nNaN\n"),
            "x.tsp:6: \"NaN\" is no keyword and no number",
        ),
        (
            &section.replace("DIMENSION: 3\n", ""),
            "x.tsp: it has no DIMENSION",
        ),
    ] {
        let wrong = tsp(text);
        assert!(wrong.starts_with(told), "{wrong}, not {told}");
    }
    let graph = |text: &str| {
        let wrong = asp::Graph::parse(&Lines::of("x.gr", text));
        wrong.unwrap_err().to_string()
    };
    for (text, told) in [
        ("p max 3 1\n", "x.gr:1: a problem that is not `p sp`"),
        ("c hi\na 1 2 3\n", "x.gr:2: an arc before `p sp`"),
        ("p sp 3 1\na 1 4 1\n", "x.gr:2: where it ends cannot be 4"),
        ("p sp 3 1\na 1 2\n", "x.gr:2: its length is missing"),
        ("p sp 3 1\na 1 2 3 4\n", "x.gr:2: \"4\" is left over"),
        ("p sp 3 2\na 1 2 3\n", "x.gr: 1 arcs, where 2 are announced"),
        ("p sp 0 0\n", "x.gr:1: 0 vertices"),
    ] {
        let wrong = graph(text);
        assert!(wrong.starts_with(told), "{wrong}, not {told}");
    }
    let scene = |text: &str| {
        let wrong = raytrace::Scene::parse(&Lines::of("x.scene", text));
        wrong.unwrap_err().to_string()
    };
    for (text, told) in [
        (
            "cube 1\n",
            "x.scene:1: \"cube\" is nothing that a scene has",
        ),
        ("# nothing\n", "x.scene: there is nothing to see"),
        (
            "sphere 0 0 0 0  1 1 1 0\n",
            "x.scene:1: a sphere's radius cannot be 0",
        ),
        ("sky 1 1\n", "x.scene:1: the sky's colour is missing"),
        ("floor 0 1 1 1 2\n", "x.scene:1: a mirror is from 0 to 1"),
    ] {
        let wrong = scene(text);
        assert!(wrong.starts_with(told), "{wrong}, not {told}");
    }
}
