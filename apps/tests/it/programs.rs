//! The programs over dhole against their sequential versions, as libraries.

use apps::{barnes, sor};
use dhole::sim::Settings;
use dhole::{
    Array2, Barriers, Coherence, Config, Counters, Detector, MessageKind, Optimisations, Rows, Run,
};

fn solve_sor<L: sor::Layout>(
    problem: &sor::Problem,
    nodes: usize,
) -> (sor::sequential::Outcome, Run<sor::shared::Outcome>) {
    solve_sor_on::<L>(problem, Config::nodes(nodes))
}

fn solve_sor_on<L: sor::Layout>(
    problem: &sor::Problem,
    config: Config,
) -> (sor::sequential::Outcome, Run<sor::shared::Outcome>) {
    let alone = sor::sequential::run(*problem, |_| ());
    let run = config
        .run(|w| sor::shared::run::<L>(w, problem, Some(&alone.grid), |_| ()))
        .unwrap();
    (alone, run)
}

#[test]
fn sor_finds_the_same_grid_on_any_number_of_nodes() {
    for (rows, columns) in [(4, 1), (5, 8), (40, 61)] {
        let problem = sor::Problem {
            rows,
            columns,
            steps: 5,
            seed: 3,
            omega: 1.5,
            setup_measured: false,
            edges_first: false,
        };
        let edges_first = sor::Problem {
            edges_first: true,
            ..problem
        };
        for nodes in [1, 2, 3, 4] {
            let (alone, run) = solve_sor::<Rows<f64>>(&problem, nodes);
            let (_, in_order) = solve_sor::<Rows<f64>>(&edges_first, nodes);
            let (_, in_arrays) = solve_sor::<Array2<f64>>(&problem, nodes);
            let (_, by_points) = solve_sor::<sor::PointByPoint<Rows<f64>>>(&problem, nodes);
            for found in [run.value, in_order.value, in_arrays.value, by_points.value] {
                let error = found.max_error;
                assert_eq!(error, Some(0.0), "{rows} x {columns} on {nodes}");
                assert_eq!(found.digest, alone.grid.digest());
            }
        }
    }
}

#[test]
fn sor_counts_are_those_of_its_boundary_rows_and_barriers() {
    let steps = 6;
    let problem = sor::Problem {
        rows: 32,
        columns: 63,
        steps,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    // What a page brings beside a row depends on which rows are so short that they share one.
    let by_themselves = Optimisations {
        read_aggregation: false,
        ..Optimisations::default()
    };
    for nodes in [1, 2, 3, 4, 8] {
        let central = Barriers::Central;
        let config = || {
            let config = Config::nodes(nodes).barriers(central);
            config.optimisations(by_themselves).one_sided(false)
        };
        let (_, run) = solve_sor_on::<Rows<f64>>(&problem, config());
        let total = run.report.total();
        let (_, in_arrays) = solve_sor_on::<Array2<f64>>(&problem, config());
        let edges_first = sor::Problem {
            edges_first: true,
            ..problem
        };
        let (_, in_order) = solve_sor_on::<Rows<f64>>(&edges_first, config());
        let bytes = |all: &Counters| all.by_type["f64"].installed_bytes;
        let costs = |all: &Counters| (all.misses, all.fetch_rounds, all.messages, bytes(all));
        for (same, what) in [
            (in_arrays, "an array costs what its rows would"),
            (in_order, "the order of rows costs nothing"),
        ] {
            assert_eq!(costs(&same.report.total()), costs(&total), "{what}");
        }
        let of = |kind| total.sent(kind);
        let others = nodes as u64 - 1;
        // Both neighbours of each inner side fetch one row in each half-sweep; each node but
        // node 0 fetches its finding to write it, and node 0 to read it.
        let fetches = 2 * others * 2 * steps as u64 + 2 * others;
        assert_eq!(
            (total.misses, total.fetch_rounds),
            (fetches, fetches),
            "{nodes} nodes"
        );
        assert_eq!(
            (of(MessageKind::Fetch), of(MessageKind::FetchReply)),
            (fetches, fetches)
        );
        // One after the roots are known, one after the initialisation, one before what is measured
        // and one after it, one after each half-sweep, one before the findings are read, and the
        // end.
        let barriers = 5 + 2 * steps as u64 + 1;
        assert_eq!(of(MessageKind::BarrierArrive), others * barriers);
        assert_eq!(of(MessageKind::BarrierDepart), others * barriers);
        assert_eq!(total.messages, 2 * fetches + 2 * others * barriers);
        // What is measured is the steps alone.
        let measured = run.report.measured().unwrap();
        let pairs = 2 * others * 2 * steps as u64;
        let barriers = 2 * steps as u64;
        assert_eq!((measured.misses, measured.fetch_rounds), (pairs, pairs));
        assert_eq!(measured.messages, 2 * pairs + 2 * others * barriers);
        assert_eq!(measured.barriers, nodes as u64 * barriers);
        // A row of 63 interior points is 32 numbers of each colour.
        let rows = &total.by_type["f64"];
        assert_eq!(rows.installed_bytes, 2 * others * 2 * steps as u64 * 32 * 8);
    }
    // On two nodes, node 1's finding lies on the page of a row of node 0 that the last half-sweep
    // wrote: the question for the one brings the other, which nobody reads any more.
    let config = Config::nodes(2).one_sided(false);
    let (_, by_pages) = solve_sor_on::<Rows<f64>>(&problem, config);
    let total = by_pages.report.total();
    let fetches = 2 * 2 * steps as u64 + 2;
    assert_eq!((total.misses, total.fetch_rounds), (fetches, fetches));
    assert_eq!(total.sent(MessageKind::Fetch), fetches);
    assert_eq!(total.asked_beside, 1);
    let rows = &total.by_type["f64"];
    assert_eq!(rows.installed_bytes, (2 * 2 * steps as u64 + 1) * 32 * 8);
}

/// A row of 1023 interior points is 512 numbers of each colour: a block of the array. The rows at
/// the boundaries are read where they were written, one block each. The red ones are written twice
/// before they are read first, and so are exclusive: that read goes by message.
#[test]
fn sor_over_arrays_reads_its_boundary_rows_where_they_were_written() {
    let steps = 6;
    let problem = sor::Problem {
        rows: 40,
        columns: 1023,
        steps,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    for nodes in [2, 3, 4] {
        let (alone, run) = solve_sor::<Array2<f64>>(&problem, nodes);
        assert_eq!(run.value.digest, alone.grid.digest());
        let measured = run.report.measured().unwrap();
        let boundary_rows = 2 * (nodes as u64 - 1) * 2 * steps as u64;
        let of_rows = &measured.by_type["f64"];
        let exclusive = 2 * (nodes as u64 - 1);
        assert_eq!(of_rows.misses, exclusive);
        assert_eq!(of_rows.one_sided_reads, boundary_rows - exclusive);
        assert_eq!(of_rows.installed_bytes, boundary_rows * 512 * 8);
    }
}

/// On threads, and in the simulator with messages that overtake each other.
#[test]
fn both_programs_find_the_same_under_every_protocol() {
    let grid = sor::Problem {
        rows: 12,
        columns: 17,
        steps: 3,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    let bodies = barnes::Problem::new(150, 3, 5);
    let alone = sor::sequential::run(grid, |_| ());
    let moved = barnes::sequential::run(bodies, |_| ());
    for coherence in Coherence::all() {
        for nodes in 1..=4 {
            let config = Config::nodes(nodes).coherence(coherence);
            let mut settings = Settings::fixed_cost(nodes);
            settings.network.jitter = 1.0;
            let what = format!("{coherence} on {nodes} nodes");
            for simulated in [false, true] {
                macro_rules! run {
                    ($program:expr) => {
                        match simulated {
                            false => config.run($program),
                            true => config.simulate(settings.clone(), $program),
                        }
                    };
                }
                let run =
                    run!(|w| sor::shared::run::<Rows<f64>>(w, &grid, Some(&alone.grid), |_| ()));
                assert_eq!(run.unwrap().value.max_error, Some(0.0), "{what}");
                let run = run!(|w| barnes::shared::run(w, &bodies, Some(&moved.bodies), |_| ()));
                let run = run.unwrap();
                assert_eq!(run.value.max_error, Some(0.0), "{what}");
                assert_eq!(run.report.protocol, coherence.name());
            }
        }
    }
}

/// The paper's formula: each side of a boundary reads two pages in each half-sweep (DOSA, table 2).
/// Beside it, each node but one fetches the page of findings, and node 0 all that they found.
#[test]
fn sor_under_treadmarks_sends_what_the_formula_says() {
    for setup_measured in [false, true] {
        let grid = sor::Problem {
            rows: 16,
            columns: 2047,
            steps: 3,
            seed: 3,
            omega: 1.5,
            setup_measured,
            edges_first: false,
        };
        let settings = Settings::fixed_cost(4);
        let config = Config::nodes(4).barriers(Barriers::Central);
        let config = config.coherence(Coherence::TreadMarks);
        let run = config.simulate(settings, |w| {
            sor::shared::run::<Rows<f64>>(w, &grid, None, |_| ())
        });
        let report = run.unwrap().report;
        let (sides, half_sweeps, others) = (6, 6, 3);
        let barriers = 2 * others * (half_sweeps + 6);
        let pairs = sides * half_sweeps * 2 + 2 * others;
        assert_eq!(report.total().messages, 2 * pairs + barriers);
        // What is measured is the half-sweeps, and the two barriers before them if they are asked
        // for: after the rows were allocated, and after they were filled.
        let measured = report.measured().unwrap();
        let pairs = sides * half_sweeps * 2;
        let barriers = half_sweeps + 2 * u64::from(setup_measured);
        assert_eq!(measured.messages, 2 * pairs + 2 * others * barriers);
        assert_eq!(measured.fetch_rounds, pairs);
    }
}

/// What a program does under either detector, in a simulation, is the same to the nanosecond, but
/// for the objects that are expected to be written, which `vm` does not learn.
#[test]
fn both_programs_do_the_same_under_either_detector() {
    let grid = sor::Problem {
        rows: 24,
        columns: 700,
        steps: 4,
        seed: 3,
        omega: 1.5,
        setup_measured: false,
        edges_first: false,
    };
    let bodies = barnes::Problem::new(300, 3, 5);
    let alone = sor::sequential::run(grid, |_| ());
    let moved = barnes::sequential::run(bodies, |_| ());
    for coherence in Coherence::BY_OBJECT {
        let settings = Settings::fixed_cost(4);
        let reports = Detector::ALL.map(|detector| {
            let config = Config::nodes(4).coherence(coherence).detector(detector);
            let config = config.optimisations(Optimisations {
                learn: false,
                ..Optimisations::default()
            });
            macro_rules! run {
                ($program:expr) => {{
                    let live = config.run($program).unwrap();
                    assert_eq!(live.value.max_error, Some(0.0), "{coherence}, {detector}");
                    assert_eq!(live.report.detector, detector.name());
                    let run = config.simulate(settings.clone(), $program).unwrap();
                    assert_eq!(run.value.max_error, Some(0.0), "{coherence}, {detector}");
                    (run.report.elapsed, run.report.per_node)
                }};
            }
            [
                run!(|w| sor::shared::run::<Rows<f64>>(w, &grid, Some(&alone.grid), |_| ())),
                run!(|w| sor::shared::run::<Array2<f64>>(w, &grid, Some(&alone.grid), |_| ())),
                run!(|w| barnes::shared::run(w, &bodies, Some(&moved.bodies), |_| ())),
            ]
        });
        assert_eq!(reports[0], reports[1], "{coherence}");
    }
}
