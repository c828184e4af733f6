//! Jackal's programs in two styles: sections, and calls. Both give the sequential results, and
//! their messages are counted exactly.

use std::path::Path;

use apps::asp;
use apps::input::Lines;
use apps::share::Construct;
use apps::solve::{Program, Steps};
use apps::sor;
use apps::tsp::{self, Instance, Way};
use apps::water::problem::Way as Exchange;
use apps::water::{self, nsquared};
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

const OUTDATED: [MessageKind; 2] = [MessageKind::Outdated, MessageKind::OutdatedAck];

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

/// The vertices of a small graph, and nodes that have blocks of several sizes.
const VERTICES: usize = 50;
const NODES: usize = 4;

#[test]
fn a_row_of_shortest_paths_costs_a_call_for_each_other_node() {
    let graph = asp::Graph::made(VERTICES, 5);
    for waits in [false, true] {
        let program = asp::Way::Calls { waits }.program();
        let run = solve(&program, &graph, &config(NODES), NODES);
        let sent = sent(&run);
        let transfers = (VERTICES * (NODES - 1)) as u64;
        assert_eq!(CALL.map(|kind| sent.sent(kind)), [transfers; 2], "{waits}");
        assert_eq!(sent.messages, 2 * transfers + barriers(&sent));
    }
}

#[test]
fn a_row_of_shortest_paths_costs_a_section_and_a_fetch_for_each_other_node() {
    let graph = asp::Graph::made(VERTICES, 5);
    let program = asp::Way::Sections(Construct::There).program();
    let run = solve(&program, &graph, &config(NODES), NODES);
    let sent = sent(&run);
    let transfers = (VERTICES * (NODES - 1)) as u64;
    let [requests, replies] = CALL.map(|kind| sent.sent(kind));
    let [fetches, fetched] = FETCH.map(|kind| sent.sent(kind));
    let [told, heard] = OUTDATED.map(|kind| sent.sent(kind));
    assert_eq!((replies, fetched, heard), (requests, fetches, told));
    assert_eq!(fetches, transfers);
    assert_eq!(
        sent.messages,
        2 * (requests + fetches + told) + barriers(&sent)
    );
    assert_eq!(sent.sections_elsewhere, 0);
    solve(
        &asp::Way::Sections(Construct::Here).program(),
        &graph,
        &config(3),
        3,
    );
}

fn grid() -> sor::Problem {
    sor::Problem {
        rows: 23,
        columns: 15,
        steps: 5,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    }
}

type Swept = dhole::Result<sor::shared::Outcome>;

/// Sweeps a grid alone, on threads and in a simulation, which must agree.
fn sweep(
    shared: impl Fn(&mut dhole::Worker<'_>, &sor::Problem) -> Swept + Sync,
) -> Run<sor::shared::Outcome> {
    let problem = grid();
    let alone = sor::sequential::run(problem, |_| ());
    let mut digest = 0_u64;
    for colour in sor::Colour::BOTH {
        for row in 0..problem.stored_rows() {
            let of_row = problem.digest(colour, row, alone.grid.row(colour, row));
            digest = digest.wrapping_add(of_row);
        }
    }
    let solve = |w: &mut dhole::Worker<'_>| shared(w, &problem);
    let live = config(NODES).run(solve).unwrap();
    assert_eq!(live.value.digest, digest);
    let simulated = config(NODES).simulate(Settings::fixed_cost(NODES), solve);
    let simulated = simulated.unwrap();
    assert_eq!(simulated.value.digest, digest);
    simulated
}

/// Half-sweeps, and sides of bands that have a neighbour.
const HALVES: u64 = 10;
const SIDES: u64 = 2 * (NODES as u64 - 1);

#[test]
fn an_edge_of_the_grid_costs_a_call() {
    let run = sweep(|w, problem| sor::calls::run(w, problem, None, |_| ()));
    let sent = sent(&run);
    assert_eq!(CALL.map(|kind| sent.sent(kind)), [HALVES * SIDES; 2]);
    assert_eq!(sent.messages, 2 * HALVES * SIDES + barriers(&sent));
}

#[test]
fn an_edge_of_the_grid_costs_a_fetch_and_a_barrier_of_sections_one_call_a_node() {
    let run = sweep(|w, problem| sor::sections::run(w, problem, Construct::There, None, |_| ()));
    let sent = sent(&run);
    let arrivals = HALVES * (NODES as u64 - 1);
    assert_eq!(CALL.map(|kind| sent.sent(kind)), [arrivals; 2]);
    let [fetches, fetched] = FETCH.map(|kind| sent.sent(kind));
    let [told, heard] = OUTDATED.map(|kind| sent.sent(kind));
    assert_eq!((fetched, heard), (fetches, told));
    assert_eq!(fetches, HALVES * SIDES);
    assert_eq!(
        sent.messages,
        2 * (arrivals + fetches + told) + barriers(&sent)
    );
    sweep(|w, problem| sor::sections::run(w, problem, Construct::Here, None, |_| ()));
}

/// Molecules of the water, its steps, and pairs of nodes.
const MOLECULES: usize = 27;
const STEPS: u64 = 4;
const PAIRS: u64 = (NODES * (NODES - 1)) as u64;

/// Moves water alone, on threads and in a simulation, which must agree.
fn water(way: Exchange) -> Counters {
    let problem = water::Problem {
        way,
        ..water::Problem::new(MOLECULES, STEPS as usize, 2)
    };
    let program = nsquared::PROGRAM;
    let alone = (program.sequential)(problem, &|_| ());
    let shared = |w: &mut dhole::Worker<'_>| (program.shared)(w, &problem, Some(&alone), &|_| ());
    let check = |run: &Run<water::Outcome>| {
        let error = run.value.error.expect("it was compared").max();
        assert!(error < 1e-9, "{way:?}: {error}");
    };
    check(&config(NODES).run(shared).unwrap());
    let simulated = config(NODES).simulate(Settings::fixed_cost(NODES), shared);
    let simulated = simulated.unwrap();
    check(&simulated);
    sent(&simulated)
}

#[test]
fn the_positions_of_a_node_s_molecules_cost_a_call_for_each_other_node() {
    let sent = water(Exchange::Calls);
    assert_eq!(CALL.map(|kind| sent.sent(kind)), [STEPS * PAIRS; 2]);
    assert_eq!(sent.messages, 2 * STEPS * PAIRS + barriers(&sent));
}

#[test]
fn each_changed_object_of_a_molecule_costs_a_fetch_for_each_other_node() {
    for (inlined, objects) in [(false, 3), (true, 1)] {
        let construct = Construct::There;
        let sent = water(Exchange::Sections { construct, inlined });
        let arrivals = 2 * STEPS * (NODES as u64 - 1);
        assert_eq!(CALL.map(|kind| sent.sent(kind)), [arrivals; 2]);
        let [fetches, fetched] = FETCH.map(|kind| sent.sent(kind));
        let [told, heard] = OUTDATED.map(|kind| sent.sent(kind));
        println!("{inlined}: {fetches} fetches, {told} told");
        assert_eq!((fetched, heard), (fetches, told));
        let changed = objects * (MOLECULES * (NODES - 1)) as u64;
        assert!(fetches >= STEPS * changed, "{fetches}");
        assert_eq!(
            sent.messages,
            2 * (arrivals + fetches + told) + barriers(&sent)
        );
    }
    let construct = Construct::Here;
    let inlined = true;
    water(Exchange::Sections { construct, inlined });
}
