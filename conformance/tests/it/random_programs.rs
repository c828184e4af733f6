//! Random programs compute what a plain sequential run computes.

use std::ops::Range;

use conformance::oracle::{Size, execute, expected, generate, shrink};
use conformance::{
    Detected, Impatient, Meeting, OnThreads, Placed, Platform, Remote, Simulated, Under, run, seeds,
};
use dhole::{Barriers, Coherence};
use dhole_protocol::CoherenceProtocol;
use dhole_protocol::built_in::Directory;

fn all_as_expected(platform: &dyn Platform, range: Range<u64>, size: Size) {
    for seed in seeds(range) {
        let program = generate(seed, size);
        let wanted = expected(&program).expect("generated programs have no race");
        let got = execute(&program, platform, seed);
        if got.as_ref() != Ok(&wanted) {
            let small = shrink(program, |program| {
                execute(program, platform, seed) != Ok(expected(program).unwrap_or_default())
            });
            panic!(
                "{}, DHOLE_SEED={seed}: {got:?} and not {wanted:?}; it takes no more than\n\
                 {small:#?}",
                platform.name()
            );
        }
    }
}

#[test]
fn random_programs_on_a_simulated_cluster_are_as_if_sequential() {
    all_as_expected(&Simulated::default(), 0..5_000, Size::default());
}

#[test]
fn random_programs_on_a_simulated_cluster_in_order_are_as_if_sequential() {
    all_as_expected(&Simulated { jitter: 0.0 }, 10_000..11_000, Size::default());
}

#[test]
fn long_random_programs_on_a_simulated_cluster_are_as_if_sequential() {
    let size = Size {
        phases: 20,
        actions: 30,
        ..Size::default()
    };
    all_as_expected(&Simulated::default(), 20_000..20_300, size);
}

#[test]
fn random_programs_with_central_barriers_are_as_if_sequential() {
    let central = Meeting(Simulated::default(), Barriers::Central);
    all_as_expected(&central, 30_000..31_000, Size::default());
}

#[test]
fn random_programs_on_threads_are_as_if_sequential() {
    all_as_expected(&OnThreads, 0..500, Size::default());
}

#[test]
fn random_programs_that_read_the_memory_of_others_are_as_if_sequential() {
    all_as_expected(&Remote::default(), 0..2_000, Size::default());
    for coherence in [Coherence::Update, Coherence::Home] {
        let platform = Under(Remote::default(), coherence);
        all_as_expected(&platform, 0..500, Size::default());
    }
    let impatient = Impatient(Remote(Simulated { jitter: 0.0 }));
    all_as_expected(&impatient, 0..300, Size::default());
}

#[test]
fn random_programs_whose_objects_lie_alike_everywhere_are_as_if_sequential() {
    all_as_expected(&Placed(Simulated::default()), 0..1_000, Size::default());
    all_as_expected(&Placed(OnThreads), 0..100, Size::default());
}

#[test]
fn random_programs_over_pages_with_several_writers_are_as_if_sequential() {
    let platform = Under(Simulated::default(), dhole::Coherence::TreadMarks);
    all_as_expected(&platform, 0..1_000, Size::default());
}

#[test]
fn random_programs_under_the_directory_protocol_are_as_if_sequential() {
    let directory = Directory::coherence();
    let platform = Under(Simulated::default(), directory);
    all_as_expected(&platform, 0..2_000, Size::default());
    let platform = Meeting(platform, Barriers::Central);
    all_as_expected(&platform, 2_000..2_500, Size::default());
    let platform = Impatient(Under(Simulated { jitter: 0.0 }, directory));
    all_as_expected(&platform, 2_500..3_000, Size::default());
    all_as_expected(&Under(OnThreads, directory), 0..300, Size::default());
}

#[test]
fn random_programs_on_impatient_nodes_meet_no_phantom_deadlock() {
    all_as_expected(&Impatient(Simulated::default()), 0..2_000, Size::default());
    all_as_expected(
        &Impatient(Simulated { jitter: 0.0 }),
        0..500,
        Size::default(),
    );
    all_as_expected(&Impatient(OnThreads), 0..300, Size::default());
}

#[test]
fn random_programs_under_the_detector_vm_are_as_if_sequential() {
    let vm = dhole::Detector::Vm;
    all_as_expected(
        &Detected(Simulated::default(), vm),
        0..1_000,
        Size::default(),
    );
    all_as_expected(&Detected(OnThreads, vm), 0..200, Size::default());
}

#[test]
fn a_seed_replays_a_simulated_run_exactly() {
    for seed in seeds(0..50) {
        let once = || {
            let ran = run(&Simulated::default(), 4, seed, |w| {
                let sum = w.once(|w| Ok(w.alloc(0_u64)))?;
                for _ in 0..5 {
                    w.work(w.random() % 20_000);
                    dhole::Lock::numbered(1).with(w, |w| {
                        *sum.get_mut(w) = (sum.read(w) * 31 + w.random() % 100) % 1_000_003;
                        Ok(())
                    })?;
                }
                w.barrier()?;
                Ok(sum.read(w))
            });
            let outcome = ran.expect("a sound program");
            (outcome.value, outcome.elapsed, outcome.counters)
        };
        assert_eq!(once(), once(), "DHOLE_SEED={seed}");
    }
}
