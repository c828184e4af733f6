//! DOSA's optimisations of the lazy protocol: each changes what is counted, and no result.

use dhole::{
    Coherence, Config, ConfigError, Counters, Optimisations, Placement, Races, Ref, RunError,
    Share, WriteDetection,
};

#[derive(Share, Clone, Copy)]
struct Body {
    at: [f64; 7],
    next: Option<Ref<Body>>,
}

const BODIES: usize = 256;
const STEPS: usize = 4;

/// Two nodes move every other body each, and read those of the other.
fn moved(optimisations: Optimisations) -> (f64, Counters) {
    let config = Config::nodes(2).one_sided(false);
    let run = config.optimisations(optimisations).run(|w| {
        let resting = Body {
            at: [0.0; 7],
            next: None,
        };
        let bodies = w.once(|w| Ok(w.alloc_range(BODIES, |_| resting)))?;
        let me = w.node().index();
        let mut sum = 0.0;
        for step in 0..STEPS {
            for body in bodies.iter().skip(me).step_by(2) {
                body.get_mut(w).at[0] += step as f64;
            }
            w.barrier()?;
            let others = bodies.iter().skip(1 - me).step_by(2);
            sum += others.map(|body| body.get(w).at[0]).sum::<f64>();
            w.barrier()?;
        }
        Ok(sum)
    });
    let run = run.unwrap();
    (run.value, run.report.total())
}

#[test]
fn each_optimisation_moves_its_counter_and_leaves_the_result() {
    let best = Optimisations {
        learn: false,
        ..Optimisations::default()
    };
    let (sum, counts) = moved(best);
    assert_eq!(sum, (128 * (1 + 3 + 6)) as f64);
    assert_eq!(counts.write_faults, (BODIES * STEPS) as u64);

    let (same, alone) = moved(Optimisations {
        read_aggregation: false,
        ..best
    });
    assert_eq!((same, alone.asked_beside), (sum, 0));
    assert!(alone.fetch_rounds > 3 * counts.fetch_rounds / 2);
    assert_eq!(
        alone.by_type["it::space::optimisations::Body"].installed,
        counts.by_type["it::space::optimisations::Body"].installed
    );

    let (same, whole) = moved(Optimisations {
        notice_reduction: 0,
        ..best
    });
    assert_eq!((same, whole.messages), (sum, counts.messages));
    assert!(whole.write_notice_bytes > 2 * counts.write_notice_bytes);

    let (same, compared) = moved(Optimisations {
        write_detection: WriteDetection::Twins,
        ..best
    });
    assert_eq!(same, sum);
    let pages = BODIES / 64;
    assert!(compared.write_faults < counts.write_faults / 4);
    assert!(compared.write_faults >= (STEPS * pages) as u64);
    assert!(compared.writable_beside > 0 && counts.writable_beside == 0);
}

#[test]
fn what_is_written_step_after_step_faults_once_for_ever_more_objects() {
    let unlearnt = Optimisations {
        learn: false,
        ..Optimisations::default()
    };
    let ((same, each), (sum, learnt)) = (moved(unlearnt), moved(Optimisations::default()));
    assert_eq!(same, sum);
    // In the first step node 0 wrote none of the bodies last but as it allocated all of them, of
    // which it writes every other. Later a fault makes 1, 1, 2, 4, .. 64 writable, of 128.
    let faults = BODIES as u64 + 2 * 8 * (STEPS - 1) as u64;
    assert_eq!(learnt.write_faults, faults);
    assert_eq!(learnt.writable_beside, each.write_faults - faults);
    assert_eq!(learnt.unwritten, 0);
    // Bodies come ahead of those that are missed.
    let but_fetches = |it: &Counters| it.messages - 2 * it.fetch_rounds;
    assert_eq!(but_fetches(&learnt), but_fetches(&each));
    assert!(learnt.misses < each.misses / 2);
    assert!(learnt.ahead_read > learnt.came_ahead / 4 * 3);
    assert!(learnt.invalidations >= each.invalidations);
    assert_eq!(learnt.write_notice_bytes, each.write_notice_bytes);
}

#[test]
fn what_was_expected_and_is_not_written_is_not_announced() {
    let run = Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.alloc_range(8, |_| 0_u64)))?;
        let zero = w.node().index() == 0;
        for step in 0..4 {
            // In the last step the fourth write of node 0 makes three more objects writable, the
            // last of which node 1 writes.
            let written = match (step, zero) {
                (3, true) => 0..4,
                (3, false) => 6..7,
                (_, true) => 0..8,
                (_, false) => 0..0,
            };
            for at in written {
                *numbers.at(at).get_mut(w) += 1;
            }
            w.barrier()?;
            numbers.iter().for_each(|number| _ = number.get(w));
            w.barrier()?;
        }
        let read = numbers.iter().map(|number| *number.get(w));
        assert_eq!(read.collect::<Vec<_>>(), [4, 4, 4, 4, 3, 3, 4, 3]);
        Ok(())
    });
    let total = run.unwrap().report.total();
    assert_eq!(total.unwritten, 3);
    assert_eq!(total.races, 0);
}

#[test]
fn what_is_written_with_what_it_holds_is_told_under_marks_and_not_under_twins() {
    let intervals = |write_detection| {
        let optimisations = Optimisations {
            write_detection,
            ..Optimisations::default()
        };
        let run = Config::nodes(2).optimisations(optimisations).run(|w| {
            let numbers = w.once(|w| Ok(w.alloc_range(8, |i| i as u64)))?;
            if w.node().index() == 1 {
                let sum: u64 = numbers.iter().map(|number| *number.get(w)).sum();
                assert_eq!(sum, 28);
                *numbers.at(3).get_mut(w) = 3;
            }
            w.barrier()?;
            let sum: u64 = numbers.iter().map(|number| *number.get(w)).sum();
            assert_eq!(sum, 28);
            Ok(())
        });
        let total = run.unwrap().report.total();
        (total.intervals, total.invalidations)
    };
    assert_eq!(intervals(WriteDetection::Marks), (1, 1));
    assert_eq!(intervals(WriteDetection::Twins), (0, 0));
}

#[test]
fn twins_are_refused_where_all_races_are_to_be_found() {
    let optimisations = Optimisations {
        write_detection: WriteDetection::Twins,
        ..Optimisations::default()
    };
    let config = Config::nodes(2)
        .optimisations(optimisations)
        .races(Races::Fail);
    let refused = config.run(|_| Ok(())).expect_err("twins overlook races");
    let words = "races `fail` (Config::races) contradicts optimisations `twins` \
                 (Config::optimisations): a comparison with twins overlooks";
    let typed = matches!(refused, RunError::Config(ConfigError::Conflict { .. }));
    assert!(typed && refused.to_string().starts_with(words), "{refused}");
}

/// What reads nothing one-sided is not asked to.
#[test]
fn one_sided_reads_are_refused_where_there_are_none() {
    let directory: Coherence = "directory".parse().expect("dhole brings it");
    let on = || Config::nodes(2).one_sided(true);
    for (config, other) in [
        (on().coherence(directory), "coherence `directory`"),
        (
            on().coherence(Coherence::TreadMarks),
            "coherence `treadmarks`",
        ),
        (on().survive(true), "survive `on`"),
    ] {
        let refused = config.run(|_| Ok(())).expect_err("nothing is read so");
        let typed = matches!(refused, RunError::Config(ConfigError::Conflict { .. }));
        let words = refused.to_string();
        let both = words.contains("one_sided `on` (Config::one_sided)") && words.contains(other);
        assert!(typed && both, "{words}");
    }
    let unset = Config::nodes(2).coherence(directory).one_sided(false);
    unset.run(|w| Ok(w.barrier()?)).expect("it is off");
}

#[test]
fn what_pages_have_not_is_refused_and_what_is_not_set_is_no_setting() {
    let pages = || Config::nodes(2).coherence(Coherence::TreadMarks);
    for (config, named) in [
        (
            pages().optimisations(Optimisations::default()),
            "optimisations",
        ),
        (
            pages().placement(Placement::FirstTouch),
            "placement `first-touch`",
        ),
        (pages().races(Races::Warn), "races"),
    ] {
        let refused = config.run(|_| Ok(())).expect_err(named);
        let typed = matches!(refused, RunError::Config(ConfigError::Conflict { .. }));
        assert!(typed && refused.to_string().contains(named), "{refused}");
    }
    for fine in [
        pages(),
        pages().placement(Placement::Everywhere),
        pages().races(Races::Ignore),
    ] {
        fine.run(|w| Ok(w.barrier()?)).unwrap();
    }
}
