//! Both Waters over dhole against their sequential versions and each other, as libraries.

use apps::options::Record;
use apps::water::solve::Program;
use apps::water::{Alone, Outcome, Problem, nsquared, spatial};
use dhole::sim::Settings;
use dhole::{Barriers, Coherence, Config, Detector, MessageKind, Optimisations, Races, Run};

const NSQUARED: Program = nsquared::PROGRAM;
const SPATIAL: Program = spatial::PROGRAM;

fn alone(program: Program, problem: Problem) -> Alone {
    (program.sequential)(problem, &|_| ())
}

fn solve(program: Program, problem: &Problem, nodes: usize) -> (Alone, Run<Outcome>) {
    let alone = alone(program, *problem);
    // Between threads nothing is asked for by messages otherwise.
    let run = Config::nodes(nodes)
        .one_sided(false)
        .barriers(Barriers::Central)
        .run(|w| (program.shared)(w, problem, Some(&alone), &|_| ()))
        .unwrap();
    (alone, run)
}

/// The energy before each step, in the units of the report, and the last momentum.
fn energies(alone: &Alone, molecules: usize) -> (Vec<f64>, [f64; 3]) {
    let unit = apps::water::energy::thermal_per_atom(molecules);
    let totals = alone.energies.iter().map(|energy| energy.total() * unit);
    let momentum = alone.energies.last().unwrap().momentum;
    (totals.collect(), momentum)
}

#[test]
fn nsquared_moves_every_molecule_as_the_sequential_version_does_but_for_rounding() {
    for molecules in [5, 64, 91] {
        let problem = Problem::new(molecules, 5, 3);
        for nodes in [1, 2, 3, 4] {
            let (_, run) = solve(NSQUARED, &problem, nodes);
            let error = run.value.error.unwrap();
            assert!(error.max() < 1e-12, "{molecules} on {nodes}: {error:?}");
            if nodes == 1 {
                assert_eq!(error.max(), 0.0);
            }
        }
    }
}

#[test]
fn spatial_moves_every_molecule_as_the_sequential_version_does_to_the_last_bit() {
    for molecules in [5, 64, 216] {
        let problem = Problem::new(molecules, 5, 3);
        for nodes in [1, 2, 3, 4, 8] {
            let (_, run) = solve(SPATIAL, &problem, nodes);
            let error = run.value.error.unwrap();
            assert_eq!(error.position, 0.0, "{molecules} on {nodes}");
            assert!(error.energy < 1e-12, "{molecules} on {nodes}: {error:?}");
        }
    }
}

#[test]
fn molecules_move_on_to_other_nodes() {
    // The middle of a lattice of five a side is where two cells meet.
    let problem = Problem::new(125, 6, 3);
    let (_, run) = solve(SPATIAL, &problem, 4);
    assert_eq!(run.value.error.unwrap().position, 0.0);
    let movers =
        run.report.total().by_type[std::any::type_name::<spatial::shared::Mover>()].installed;
    assert!(movers > 0, "no molecule was handed on");
}

#[test]
fn every_protocol_and_detector_moves_the_molecules_alike() {
    // Molecules move on from node to node; see above.
    let problem = Problem::new(125, 6, 3);
    for program in [NSQUARED, SPATIAL] {
        let alone = alone(program, problem);
        let all = Coherence::ALL.map(|coherence| (coherence, Detector::Check));
        let vm = [(Coherence::Lazy, Detector::Vm)];
        for (coherence, detector) in all.into_iter().chain(vm) {
            let run = Config::nodes(3)
                .coherence(coherence)
                .detector(detector)
                .run(|w| (program.shared)(w, &problem, Some(&alone), &|_| ()))
                .unwrap();
            let error = run.value.error.unwrap();
            assert!(error.max() < 1e-12, "{coherence:?}, {detector}: {error:?}");
        }
    }
}

#[test]
fn splashs_records_move_the_molecules_alike_under_every_protocol_and_detector() {
    // A molecule moves on; see above.
    let problem = Problem {
        record: Record::Splash,
        prefetch: false,
        ..Problem::new(125, 6, 3)
    };
    for program in [NSQUARED, SPATIAL] {
        let alone = alone(program, problem);
        let all = Coherence::ALL.map(|coherence| (coherence, Detector::Check));
        let vm = [(Coherence::Lazy, Detector::Vm)];
        for (coherence, detector) in all.into_iter().chain(vm) {
            for nodes in [1, 4] {
                let config = Config::nodes(nodes).coherence(coherence).detector(detector);
                // Writers of one page are no race, and pages know of no others.
                let config = match coherence {
                    Coherence::TreadMarks => config,
                    _ => config.races(Races::Fail),
                };
                let run = config
                    .run(|w| (program.shared)(w, &problem, Some(&alone), &|_| ()))
                    .unwrap();
                let error = run.value.error.unwrap();
                assert!(error.max() < 1e-12, "{coherence:?}, {detector}: {error:?}");
            }
        }
    }
    let spatial = solve(SPATIAL, &problem, 4).1;
    assert_eq!(spatial.value.error.unwrap().position, 0.0);
    let moved = spatial.report.measured().unwrap();
    assert!(
        moved.lock_acquires_remote + moved.lock_acquires_local > 0,
        "none has moved on"
    );
}

#[test]
fn what_splash_adds_up_are_the_energies_of_the_molecules_as_they_are() {
    // With the short radius energies jump where a pair comes near.
    let problem = Problem {
        cutoff: 0.0,
        ..Problem::new(343, 40, 1)
    };
    let splash = Problem {
        record: Record::Splash,
        ..problem
    };
    let (split, splash) = (alone(NSQUARED, problem), alone(NSQUARED, splash));
    assert_eq!(split.atoms, splash.atoms);
    assert!(splash.units > split.units);
    let totals = energies(&splash, 343).0;
    assert!(
        totals[10..]
            .iter()
            .all(|total| (total - totals[10]).abs() < 3e-6)
    );
}

/// What the papers' programs fetch in each step: the records of the half of all molecules that
/// follow, to compute forces, to add them, and for the potential energy; and a node's own, to which
/// others have added.
#[test]
fn nsquared_fetches_half_of_all_records_three_times_in_each_step() {
    let (molecules, steps, nodes) = (64, 2, 8);
    let problem = Problem {
        record: Record::Splash,
        prefetch: false,
        // So that every molecule meets many of those that it looks at.
        cutoff: 0.0,
        ..Problem::new(molecules, steps, 3)
    };
    let alone = alone(NSQUARED, problem);
    let by_themselves = Optimisations {
        read_aggregation: false,
        learn: false,
        ..Optimisations::default()
    };
    let run = Config::nodes(nodes)
        .barriers(Barriers::Central)
        .optimisations(by_themselves)
        .simulate(Settings::fixed_cost(nodes), |w| {
            (NSQUARED.shared)(w, &problem, Some(&alone), &|_| ())
        });
    let measured = run.unwrap().report.measured().unwrap();
    let (others, own) = (molecules / 2, molecules / nodes);
    let least = (steps * nodes * 3 * others) as u64;
    let most = least + (steps * nodes * 2 * own) as u64;
    assert!(
        (least..=most).contains(&measured.misses),
        "{} of {least} to {most}",
        measured.misses
    );
    // Four barriers a step, and the locks.
    let others = nodes as u64 - 1;
    assert_eq!(
        measured.sent(MessageKind::BarrierArrive),
        others * 4 * steps as u64
    );
}

#[test]
fn both_programs_find_the_same() {
    let problem = Problem::new(512, 10, 7);
    let (all, near) = (alone(NSQUARED, problem), alone(SPATIAL, problem));
    let side = apps::water::System::of(&problem);
    for (a, b) in all.atoms.iter().zip(&near.atoms) {
        for (a, b) in a.iter().zip(b) {
            let away = side.distance(*a, *b);
            assert!(away < 1e-6, "{away}");
        }
    }
    let (all, near) = (energies(&all, 512).0, energies(&near, 512).0);
    for (a, b) in all.iter().zip(&near) {
        assert!((a - b).abs() < 1e-4, "{a} and {b}");
    }
}

/// Gear's method begins without a past: its first steps are off by a thousandth of kT for each
/// atom. From then on the energy stays to 1e-6, and to 0.01 with the short radius of the published
/// inputs, with which exponentials begin and end abruptly where a pair comes near or leaves.
#[test]
fn energy_and_momentum_stay() {
    const PAST: usize = 10;
    for (program, cutoff, bound) in [
        (NSQUARED, apps::water::model::CUTOFF, 0.02),
        (SPATIAL, apps::water::model::CUTOFF, 0.02),
        (NSQUARED, 0.0, 3e-6),
    ] {
        let problem = Problem {
            cutoff,
            ..Problem::new(343, 40, 1)
        };
        let (totals, momentum) = energies(&alone(program, problem), 343);
        assert!(
            totals[..PAST]
                .iter()
                .all(|total| (total - totals[0]).abs() < 0.003)
        );
        for (step, total) in totals.iter().enumerate().skip(PAST) {
            let drift = total - totals[PAST];
            assert!(
                drift.abs() < bound,
                "after {step} steps: {drift:e} kT an atom"
            );
        }
        assert!(momentum.iter().all(|p| p.abs() < 1e-11), "{momentum:?}");
    }
}

/// Messages of one kind.
fn sent(run: &Run<Outcome>, kind: MessageKind) -> u64 {
    run.report.total().sent(kind)
}

fn missed<T>(run: &Run<Outcome>) -> u64 {
    let by_type = &run.report.total().by_type;
    by_type
        .get(std::any::type_name::<T>())
        .map_or(0, |of| of.misses)
}

#[test]
fn nsquared_fetches_half_of_all_molecules_for_each_force_computation() {
    let (molecules, steps) = (64, 2);
    for nodes in [1, 2, 4, 8] {
        let (_, run) = solve(NSQUARED, &Problem::new(molecules, steps, 3), nodes);
        let (nodes, steps, molecules) = (nodes as u64, steps as u64, molecules as u64);
        let own = molecules / nodes;
        let others = (molecules / 2).min(molecules - own);
        // Node 0 allocated them all.
        let found = missed::<nsquared::shared::Molecule>(&run);
        assert_eq!(
            found,
            molecules - own + nodes * others * (steps + 1),
            "{nodes}"
        );
        // After the roots are known, two for each force computation, two around where measuring
        // begins and where it ends, one before the findings are read, and the end, where all wait
        // for the slowest.
        let barriers = 2 * (steps + 1) + 7;
        assert_eq!(
            sent(&run, MessageKind::BarrierArrive),
            (nodes - 1) * barriers
        );
        assert_eq!(
            sent(&run, MessageKind::BarrierDepart),
            (nodes - 1) * barriers
        );
    }
}

#[test]
fn spatial_asks_each_neighbour_once_for_each_force_computation() {
    // Of 4 x 4 x 4 cells 8 nodes have blocks of 2 x 2 x 2, which see all others; of 2 x 2 x 2 cells
    // each sees all others anyway. Nobody leaves a cell.
    for (molecules, nodes) in [(64, 2), (64, 4), (64, 8), (512, 8)] {
        let run = |steps| solve(SPATIAL, &Problem::new(molecules, steps, 3), nodes).1;
        let (fewer, more) = (run(2), run(3));
        let (nodes, molecules) = (nodes as u64, molecules as u64);
        let (before, after) = (fewer.report.total(), more.report.total());
        assert_eq!(after.fetch_rounds - before.fetch_rounds, nodes);
        let seen = nodes * (molecules - molecules / nodes);
        assert_eq!(after.misses - before.misses, seen, "{molecules} on {nodes}");
        let first = molecules - molecules / nodes;
        let found = missed::<spatial::shared::Molecule>(&fewer);
        assert_eq!(found, first + seen * 3, "{molecules} on {nodes}");
        // A question to each other node, its reply, and two barriers.
        let messages = 2 * nodes * (nodes - 1) + 2 * 2 * (nodes - 1);
        assert_eq!(after.messages - before.messages, messages);
        assert_eq!(sent(&more, MessageKind::LockRequest), 0);
    }
}

/// The papers' small problems, on 32 nodes.
#[test]
fn the_papers_problems_are_solved_on_32_nodes() {
    let nsquared = Problem::new(1728, 2, 1);
    let (_, run) = solve(NSQUARED, &nsquared, 32);
    assert!(run.value.error.unwrap().max() < 1e-12);
    let spatial = Problem {
        cutoff: 0.0,
        ..Problem::new(4096, 9, 1)
    };
    let (_, run) = solve(SPATIAL, &spatial, 32);
    assert_eq!(run.value.error.unwrap().position, 0.0);
}
