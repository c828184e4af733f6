//! Jackal's programs in two styles: sections, and calls. Both give the sequential results, and their
//! messages are counted exactly.

use std::path::Path;

use apps::input::Lines;
use apps::solve::{Program, Steps};
use apps::tsp::{self, Instance, Way};
use dhole::sim::Settings;
use dhole::{Coherence, Config, Counters, MessageKind, Races, Run};

fn lines(name: &str) -> Lines {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../data")
        .join(name);
    Lines::read(&path, 1 << 20).unwrap()
}

fn config(nodes: usize) -> Config {
    Config::nodes(nodes)
        .coherence(Coherence::Home)
        .races(Races::Ignore)
}

/// Solves a problem alone, on threads and in a simulation, which must agree.
fn solve<P: Sync, R: Send + Sync>(
    program: &Program<P, R>,
    problem: &P,
    config: &Config,
    nodes: usize,
) -> Run<R> {
    let (alone, _) = (program.sequential)(problem);
    let check = |run: &Run<R>| {
        let differ = (program.differ)(&alone, &run.value);
        assert_eq!(differ, None, "{} on {nodes} nodes", program.name);
    };
    let shared = |w: &mut dhole::Worker<'_>| (program.shared)(w, problem, &mut Steps::default());
    check(&config.run(shared).unwrap());
    let simulated = config.simulate(Settings::fixed_cost(nodes), shared);
    let simulated = simulated.unwrap();
    check(&simulated);
    simulated
}

fn sent<R>(run: &Run<R>) -> Counters {
    run.report.measured().expect("a part is measured")
}

fn barriers(sent: &Counters) -> u64 {
    let kinds = [
        MessageKind::BarrierArrive,
        MessageKind::BarrierDepart,
        MessageKind::BarrierRound,
    ];
    kinds.iter().map(|kind| sent.sent(*kind)).sum()
}

/// Fetches of a copy after which a node keeps it.
const UNTIL_KEPT: u64 = 3;

const CALL: [MessageKind; 2] = [MessageKind::OperationRequest, MessageKind::OperationReply];
const FETCH: [MessageKind; 2] = [MessageKind::Fetch, MessageKind::FetchReply];

fn salesman(way: Way, preset: bool) -> tsp::Problem {
    let instance = Instance::parse(&lines("gr17-15.tsp")).unwrap();
    let problem = tsp::Problem {
        way,
        ..tsp::Problem::from(instance)
    };
    match preset {
        true => problem.preset(),
        false => problem,
    }
}

/// The beginnings of three hops through 15 cities.
const JOBS: u64 = 14 * 13 * 12;

/// Calls of node 0 that end with nothing, and the tables: one each of the other nodes.
fn others(nodes: u64) -> u64 {
    nodes - 1
}

#[test]
fn a_job_of_the_salesman_costs_a_call() {
    let mut expanded = Vec::new();
    for nodes in [1, 4] {
        let problem = salesman(Way::Calls, true);
        let run = solve(
            &tsp::PROGRAM,
            &problem,
            &config(nodes as usize),
            nodes as usize,
        );
        expanded.push(run.value.nodes_expanded);
        let sent = sent(&run);
        let [requests, replies] = CALL.map(|kind| sent.sent(kind));
        let (all, remote) = (JOBS + nodes, requests - 2 * others(nodes));
        assert_eq!(replies, requests);
        assert!(nodes == 1 || remote > JOBS / 3 && remote < all, "{remote}");
        assert_eq!(sent.messages, 2 * requests + barriers(&sent));
        let queue = sent.by_object.values().next().expect("there is a queue");
        assert_eq!((queue.writes, queue.reads), (all, nodes));
    }
    assert_eq!(expanded[0], expanded[1]);
}

#[test]
fn a_job_of_the_salesman_costs_a_section_and_what_is_followed() {
    for nodes in [1, 4] {
        let problem = salesman(Way::Sections, true);
        let run = solve(
            &tsp::PROGRAM,
            &problem,
            &config(nodes as usize),
            nodes as usize,
        );
        let sent = sent(&run);
        let [requests, replies] = CALL.map(|kind| sent.sent(kind));
        let [fetches, fetched] = FETCH.map(|kind| sent.sent(kind));
        let remote = requests - others(nodes);
        assert_eq!((replies, fetched), (requests, fetches));
        assert!(nodes == 1 || remote > JOBS / 10, "{remote}");
        // Job and path; the table; the bound, until its copy is kept.
        assert_eq!(fetches, 2 * remote + (1 + UNTIL_KEPT) * others(nodes));
        assert_eq!(sent.messages, 2 * (requests + fetches) + barriers(&sent));
        assert_eq!((sent.sections, sent.sections_elsewhere), (JOBS + nodes, 0));
    }
}

#[test]
fn all_ways_find_the_salesman_s_tour() {
    for way in [Way::Objects, Way::Sections, Way::Calls] {
        for sections in [false, true] {
            let config = config(3).sections(sections);
            let run = solve(&tsp::PROGRAM, &salesman(way, false), &config, 3);
            assert_eq!(run.value.tour.length, 1908, "{way:?}");
            assert_eq!(run.value.tour.cities.len(), 15);
        }
    }
}
