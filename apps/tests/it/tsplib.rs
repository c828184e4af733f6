//! TSPLIB's files as they are found in the world, and what is said of those that are not solved.

use apps::input::Lines;
use apps::solve::Steps;
use apps::tsp::{self, File, Instance, LowerBound, Problem};
use dhole::Config;

fn parse(text: &str) -> Result<Instance, String> {
    Instance::parse(&Lines::of("x.tsp", text)).map_err(|wrong| wrong.to_string())
}

fn shortest(text: &str) -> u64 {
    alone(&parse(text).unwrap().into()).tour.length
}

/// An instance of the folder `data`.
fn instance(name: &str) -> Instance {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../data");
    let path = std::path::Path::new(data).join(name);
    Instance::parse(&Lines::read(&path, 1 << 20).unwrap()).unwrap()
}

fn alone(problem: &Problem) -> tsp::Found {
    (tsp::PROGRAM.sequential)(problem).0
}

const SQUARE: &str = "1 0 0\n2 0 10\n3 10 10\n4 10 0\n";

#[test]
fn heads_are_read_in_any_case_without_colon_with_remarks_and_after_the_data() {
    for (before, after) in [
        (
            "NAME: s\nTYPE: TSP (A. Nobody)\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\n\
             NODE_COORD_SECTION\n",
            "EOF\n",
        ),
        (
            "name s\ntype tsp\ndimension 4\nedge_weight_type euc_2d\nnode_coord_section\n",
            "eof\n",
        ),
        (
            "Name :s\nNODE_COORD_SECTION:\n",
            "Type\t: TSP\nDimension\t: 4\nEdge_Weight_Type:EUC_2D\n",
        ),
        (
            "\u{feff}NAME: s\nCOMMENT: Gr\u{f6}tschel: 1977\nCOMMENT: twice\nDIMENSION: 4 cities\n\
             NODE_COORD_TYPE: TWOD_COORDS\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n\n  ",
            "\n",
        ),
    ] {
        let text = format!("{before}{SQUARE}{after}");
        let instance = parse(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text}"));
        assert_eq!((&*instance.name, instance.cities()), ("s", 4), "{text}");
        assert_eq!(shortest(&text), 40, "{text}");
    }
    let late = "NAME : late\nTYPE : ATSP\nDIMENSION : 4\nEDGE_WEIGHT_SECTION\n0 3 9 9\n9 0 3 9\n\
                9 9 0 3\n3 9 9 0\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\n";
    assert_eq!(shortest(late), 12);
}

#[test]
fn fixed_edges_are_on_the_tour() {
    let five = "1 0 0\n2 0 10\n3 10 10\n4 10 0\n5 20 5\n";
    let with = |edges: &str| {
        format!(
            "DIMENSION: 5\nEDGE_WEIGHT_TYPE: EUC_2D\nFIXED_EDGES_SECTION\n{edges}\
             NODE_COORD_SECTION\n{five}EOF\n"
        )
    };
    assert_eq!(shortest(&with("-1\n")), 52);
    for edges in [
        "1 3\n-1\n",
        "1 3\n",
        "1 3 4 2 -1\n",
        "1 3\n3 5\n5 2\n2 4\n4 1\n-1\n",
    ] {
        let text = with(edges);
        let instance = parse(&text).unwrap();
        let least = brute_force(&instance);
        for bound in [LowerBound::Tree, LowerBound::OneTree] {
            let problem = Problem {
                bound,
                ..instance.clone().into()
            };
            let found = alone(&problem);
            assert_eq!(found.tour.length, least, "{edges}");
            assert!(
                has_fixed(&instance, &found.tour.cities),
                "{edges}: {found:?}"
            );
        }
    }
    for (edges, told) in [
        (
            "1 3\n1 2\n1 4\n-1\n",
            "x.tsp:6: a third fixed edge of city 1",
        ),
        (
            "1 2 2 3 3 1 -1\n",
            "x.tsp:4: the fixed edge from city 3 to 1 closes",
        ),
        ("1 9\n-1\n", "x.tsp:4: a fixed edge of city 9"),
        ("1 2\n3\n", "x.tsp:5: fixed edges are pairs"),
    ] {
        let wrong = parse(&with(edges)).unwrap_err();
        assert!(wrong.starts_with(told), "{wrong}, not {told}");
    }
}

fn has_fixed(instance: &Instance, tour: &[u32]) -> bool {
    let at = |place: usize| tour[place % tour.len()] as usize;
    (0..tour.len()).all(|place| {
        let ends = [at(place + tour.len() - 1), at(place + 1)];
        instance
            .fixed()
            .of(at(place))
            .iter()
            .all(|to| ends.contains(to))
    })
}

/// The shortest tour that has all fixed edges, of all there are.
fn brute_force(instance: &Instance) -> u64 {
    fn longer(instance: &Instance, tour: &mut Vec<u32>, best: &mut u64) {
        let cities = instance.cities();
        if tour.len() == cities && has_fixed(instance, tour) {
            let at = |place: usize| tour[place % cities] as usize;
            let ways = (0..cities).map(|place| instance.distance(at(place), at(place + 1)));
            *best = ways.map(u64::from).sum::<u64>().min(*best);
        }
        for city in 1..cities as u32 {
            if !tour.contains(&city) {
                tour.push(city);
                longer(instance, tour, best);
                tour.pop();
            }
        }
    }
    let mut best = u64::MAX;
    longer(instance, &mut vec![0], &mut best);
    best
}

/// The shortest tour by Held and Karp's dynamic programme.
fn by_subsets(instance: &Instance) -> u64 {
    let others = instance.cities() - 1;
    let far = u64::MAX / 2;
    let way = |from: usize, to: usize| u64::from(instance.distance(from, to));
    let mut least = vec![vec![far; others]; 1 << others];
    for city in 0..others {
        least[1 << city][city] = way(0, city + 1);
    }
    for been in 1..1_usize << others {
        for last in (0..others).filter(|last| been >> last & 1 == 1) {
            for next in (0..others).filter(|next| been >> next & 1 == 0) {
                let length = least[been][last] + way(last + 1, next + 1);
                let to = &mut least[been | 1 << next][next];
                *to = length.min(*to);
            }
        }
    }
    let all = &least[(1 << others) - 1];
    let home = (0..others).map(|last| all[last] + way(last + 1, 0));
    home.min().unwrap_or(0)
}

/// Numbers that a seed decides (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % most
    }
}

/// An instance in the plane, or one whose ways there and back differ.
fn random(random: &mut Random, cities: usize, symmetric: bool) -> Instance {
    let mut distances = vec![0; cities * cities];
    if symmetric {
        let places: Vec<[i64; 2]> = (0..cities)
            .map(|_| [random.below(1000) as i64, random.below(1000) as i64])
            .collect();
        for (at, distance) in distances.iter_mut().enumerate() {
            let (a, b) = (places[at / cities], places[at % cities]);
            let square = (a[0] - b[0]).pow(2) + (a[1] - b[1]).pow(2);
            *distance = (square as f64).sqrt().round() as u32;
        }
    } else {
        for from in 0..cities {
            for to in (0..cities).filter(|to| *to != from) {
                distances[from * cities + to] = random.below(1000) as u32;
            }
        }
    }
    Instance::of("random", cities, distances)
}

#[test]
fn both_bounds_find_the_shortest_tour_of_random_cities() {
    let mut seed = Random(7);
    for round in 0..60 {
        let cities = 2 + seed.below(10) as usize;
        let instance = random(&mut seed, cities, round % 3 > 0);
        let least = by_subsets(&instance);
        for bound in [LowerBound::Tree, LowerBound::OneTree] {
            let problem = Problem {
                bound,
                ..instance.clone().into()
            };
            let found = alone(&problem);
            assert_eq!(found.tour.length, least, "round {round}, {bound:?}");
            assert!(!found.stopped);
        }
    }
}

#[test]
fn both_bounds_find_the_shortest_tour_with_fixed_edges() {
    let mut seed = Random(11);
    for round in 0..60 {
        let cities = 4 + seed.below(4) as usize;
        let mut fixed = random(&mut seed, cities, true).fixed().clone();
        for _ in 0..1 + seed.below(4) {
            let (from, to) = (seed.below(cities as u64), seed.below(cities as u64));
            // What no tour has is left out.
            let _ = fixed.add(from as usize, to as usize);
        }
        let instance = random(&mut seed, cities, true).with_fixed(fixed);
        let least = brute_force(&instance);
        for bound in [LowerBound::Tree, LowerBound::OneTree] {
            let problem = Problem {
                bound,
                ..instance.clone().into()
            };
            let found = alone(&problem);
            assert_eq!(found.tour.length, least, "round {round}, {bound:?}");
            assert!(has_fixed(&instance, &found.tour.cities), "round {round}");
        }
    }
}

#[test]
fn one_trees_leave_far_fewer_beginnings_to_look_at() {
    let one_tree = |instance: &Instance| Problem {
        bound: LowerBound::OneTree,
        ..instance.clone().into()
    };
    let burma = instance("burma14.tsp");
    let by_tree = alone(&burma.clone().into());
    let by_one_tree = alone(&one_tree(&burma));
    let lengths = [&by_tree, &by_one_tree].map(|found| found.tour.length);
    assert_eq!(lengths, [3323, 3323]);
    // Each of 13 x 12 x 11 jobs is a beginning that is looked at.
    let [many, few] = [by_tree.nodes_expanded, by_one_tree.nodes_expanded].map(|all| all - 1716);
    println!("{few} beginnings after the jobs, not {many}");
    assert!(10 * few < many, "{few} and {many}");
}

#[test]
fn one_trees_find_the_published_optima_of_more_cities() {
    for (name, optimum) in [
        ("gr17.tsp", 2085),
        ("ulysses22.tsp", 7013),
        ("bays29.tsp", 2020),
    ] {
        let problem = Problem {
            bound: LowerBound::OneTree,
            ..instance(name).into()
        };
        let shared =
            |w: &mut dhole::Worker<'_>| (tsp::PROGRAM.shared)(w, &problem, &mut Steps::default());
        let found = Config::nodes(2).run(shared).unwrap().value;
        assert_eq!(
            (found.tour.length, found.stopped),
            (optimum, false),
            "{name}"
        );
    }
}

#[test]
fn every_metric_is_tsplibs() {
    let distance = |metric: &str, a: &str, b: &str| {
        let text = format!(
            "DIMENSION: 2\nEDGE_WEIGHT_TYPE: {metric}\nNODE_COORD_SECTION\n1 {a}\n2 {b}\nEOF\n"
        );
        parse(&text).unwrap().distance(0, 1)
    };
    for (metric, a, b, wanted) in [
        ("EUC_2D", "0 0", "3 4.6", 5),
        ("CEIL_2D", "0 0", "3 4.6", 6),
        ("MAN_2D", "0 0", "-3 4.4", 7),
        ("MAN_2D", "0 0", "-3 4.5", 8),
        ("MAX_2D", "0 0", "-3.4 3.6", 4),
        ("EUC_3D", "0 0 0", "2 3 6", 7),
        ("MAN_3D", "1 1 1", "2 3 -5", 9),
        ("MAX_3D", "1 1 1", "2 3 -5", 6),
        ("ATT", "0 0", "10 0", 4),
        // Greenwich to 90 degrees east, a quarter of the equator.
        ("GEO", "0 0", "0 90", 10_020),
    ] {
        assert_eq!(distance(metric, a, b), wanted, "{metric} from {a} to {b}");
    }
}

#[test]
fn what_is_not_solved_is_told_by_its_own_reason() {
    let places = |cities: usize| {
        let line = |city: usize| format!("{city} {} {}\n", city * 7 % 101, city * 13 % 97);
        (1..=cities).map(line).collect::<String>()
    };
    let many = format!(
        "DIMENSION: 1500\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n{}EOF\n",
        places(1500)
    );
    let file = File::parse(&Lines::of("x.tsp", &many)).unwrap();
    assert_eq!(file.cities, 1500);
    let wrong = file.instance().unwrap_err().to_string();
    assert_eq!(
        wrong,
        "x.tsp: 1500 cities are more than are solved: at most 1000"
    );
    // What is wrong with it comes first.
    let short = many.replace("1500 ", "1499 ");
    assert!(parse(&short).unwrap_err().contains("a place of city 1499"));
    let head = "DIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\n";
    for (text, told) in [
        (
            format!("{head}NODE_COORD_TYPE: THREED_COORDS\nNODE_COORD_SECTION\n1 0 0 0\n"),
            "x.tsp:3: THREED_COORDS are 3 coordinates, and EUC_2D needs 2",
        ),
        (
            format!("{head}NODE_COORD_SECTION\n1 0 0\n2 1 1\n"),
            "x.tsp:5: 6 numbers for 3 places of 3, as EUC_2D has",
        ),
        (
            head.to_owned(),
            "x.tsp: it has no NODE_COORD_SECTION, which EUC_2D needs",
        ),
        (
            format!("{head}EDGE_DATA_SECTION\n1 2\n-1\n"),
            "x.tsp:3: EDGE_DATA_SECTION: graphs that lack roads are not solved",
        ),
        (
            "DIMENSION: 99999999999\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_COL\n\
             EDGE_WEIGHT_SECTION\n1\n"
                .to_owned(),
            "x.tsp:5: 1 distances of 99999999999 cities as UPPER_COL",
        ),
        (
            "DIMENSION: 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n\
             EDGE_WEIGHT_SECTION\n0 1 2 0\n"
                .to_owned(),
            "x.tsp:4: from city 1 to 2 it is 1 and back 2, but TYPE is TSP",
        ),
        (
            format!("TYPE: CVRP\n{head}DEMAND_SECTION\n1 2\n"),
            "x.tsp:1: a problem of type \"CVRP\": TSP and ATSP are solved",
        ),
    ] {
        let wrong = parse(&text).unwrap_err();
        assert!(wrong.starts_with(told), "{wrong}, not {told}");
    }
}

#[test]
fn a_search_that_runs_out_of_time_has_the_shortest_tour_so_far() {
    let instance = random(&mut Random(3), 30, true);
    let problem = Problem {
        time_limit: Some(std::time::Duration::from_millis(50)),
        ..instance.into()
    };
    let alone = alone(&problem);
    assert!(alone.stopped);
    let run = Config::nodes(3).run(|w| (tsp::PROGRAM.shared)(w, &problem, &mut Steps::default()));
    let found = run.unwrap().value;
    assert!(found.stopped, "{found:?}");
    assert_eq!(found.tour.cities.len(), 30);
    assert_eq!((tsp::PROGRAM.differ)(&alone, &found), None);
    let result = (tsp::PROGRAM.result)(&problem, &found);
    assert!(result["optimum"].is_null(), "{result}");
    assert_eq!(result["shortest_so_far"], found.tour.length);
}
