//! Barnes-Hut over dhole against its sequential version, as a library.
#![forbid(unsafe_code)]

use apps_common::options::Record;
use barnes::splash::objects::SplashBody;
use dhole::{Coherence, Config, Run};

fn solve_barnes(
    problem: &barnes::Problem,
    nodes: usize,
) -> (barnes::sequential::Outcome, Run<barnes::shared::Outcome>) {
    let alone = barnes::sequential::run(*problem, |_| ());
    let run = Config::nodes(nodes)
        .run(|w| barnes::shared::run(w, problem, Some(&alone.bodies), |_| ()))
        .unwrap();
    (alone, run)
}

#[test]
fn barnes_moves_every_body_as_the_sequential_version_does_to_the_last_bit() {
    for bodies in [4, 9, 11, 300, 2000] {
        let problem = barnes::Problem::new(bodies, 6, 17);
        for nodes in [1, 2, 3, 4] {
            let (alone, run) = solve_barnes(&problem, nodes);
            assert_eq!(
                run.value.max_error,
                Some(0.0),
                "{bodies} bodies on {nodes} nodes"
            );
            assert_eq!(run.value.interactions, alone.interactions);
        }
    }
}

/// Rounds of fetches of three simulated nodes, which move every body as the sequential program.
fn simulated_rounds(record: Record, passes: bool) -> u64 {
    let mut problem = barnes::Problem::new(2000, 3, 17);
    problem.passes = passes;
    if record == Record::Splash {
        problem.leaf_bodies = 1;
    }
    let alone = barnes::sequential::run(problem, |_| ());
    let config = Config::nodes(3).one_sided(false);
    let run = config.simulate(dhole::sim::Settings::fixed_cost(3), |w| match record {
        Record::Split => barnes::shared::run(w, &problem, Some(&alone.bodies), |_| ()),
        Record::Splash => barnes::splash::run(w, &problem, Some(&alone.bodies), |_| ()),
    });
    let run = run.unwrap();
    assert_eq!(run.value.max_error, Some(0.0), "{record:?} {passes}");
    assert_eq!(run.value.interactions, alone.interactions);
    run.report.total().fetch_rounds
}

#[test]
fn barnes_in_passes_moves_every_body_alike_in_fewer_rounds() {
    // How objects lie on pages depends on the runs beside this one, and so do the last few rounds.
    for record in [Record::Split, Record::Splash] {
        let [one_by_one, in_passes] = [false, true].map(|it| simulated_rounds(record, it));
        assert!(in_passes < one_by_one, "{in_passes} of {one_by_one}");
    }
}

#[test]
fn barnes_finds_the_same_energies_but_for_the_order_of_summing() {
    let (alone, run) = solve_barnes(&barnes::Problem::new(1000, 5, 2), 4);
    assert_eq!(run.value.energies.len(), 5);
    for (found, expected) in run.value.energies.iter().zip(&alone.energies) {
        assert!((found.total() - expected.total()).abs() < 1e-12);
        for (p, q) in found.momentum.iter().zip(&expected.momentum) {
            assert!((p - q).abs() < 1e-12);
        }
    }
}

#[test]
fn barnes_keeps_its_bodies_when_the_root_cube_grows() {
    // Long steps drive bodies out of the first root within a few of them.
    let problem = barnes::Problem {
        time_step: 1.5,
        ..barnes::Problem::new(500, 12, 4)
    };
    let sides = |bodies: &[barnes::Body]| {
        let farthest = bodies
            .iter()
            .map(|body| apps_common::vector::extent(body.pos));
        barnes::place::Root::around(farthest.fold(0.0, f64::max)).side_squared()
    };
    let (alone, run) = solve_barnes(&problem, 4);
    assert!(sides(&alone.bodies) > sides(&barnes::initial::bodies(&problem)));
    assert_eq!(run.value.max_error, Some(0.0));
}

#[test]
fn bodies_move_alike_through_splashs_tree() {
    let problem = barnes::Problem {
        leaf_bodies: 1,
        untimed: 1,
        ..barnes::Problem::new(300, 3, 5)
    };
    let moved = barnes::sequential::run(problem, |_| ());
    for coherence in Coherence::ALL {
        let run = Config::nodes(4)
            .coherence(coherence)
            .run(|w| barnes::splash::run(w, &problem, Some(&moved.bodies), |_| ()));
        let run = run.unwrap();
        assert_eq!(run.value.max_error, Some(0.0), "{coherence}");
        assert_eq!(run.value.interactions, moved.interactions, "{coherence}");
        let record = std::any::type_name::<SplashBody>();
        let bodies = &run.report.total().by_type[record];
        assert_eq!(bodies.installed_bytes, bodies.installed * 96);
    }
}

#[test]
fn a_collision_moves_and_is_drawn_alike_on_any_number_of_nodes() {
    let problem = barnes::Problem {
        galaxy: barnes::Galaxy::Collision,
        frames: 3,
        ..barnes::Problem::new(600, 6, 9)
    };
    let mut first = None;
    for nodes in [1, 2, 3] {
        let (_, run) = solve_barnes(&problem, nodes);
        assert_eq!(run.value.max_error, Some(0.0), "{nodes} nodes");
        let frames = run.value.frames;
        assert_eq!(frames.len(), 3);
        assert!(frames.iter().all(|frame| frame.len() == problem.bodies));
        assert!(
            frames[0] != frames[1],
            "the bodies move from frame to frame"
        );
        assert!(
            *first.get_or_insert(frames.clone()) == frames,
            "{nodes} nodes"
        );
    }
    let splash = barnes::Problem {
        leaf_bodies: 1,
        ..problem
    };
    let moved = barnes::sequential::run(splash, |_| ());
    let run = Config::nodes(2)
        .run(|w| barnes::splash::run(w, &splash, Some(&moved.bodies), |_| ()))
        .unwrap();
    assert_eq!(
        (run.value.max_error, run.value.frames.len()),
        (Some(0.0), 3)
    );
}
