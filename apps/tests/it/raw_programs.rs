//! The programs of MultiView's evaluation: right on any number of nodes and with any minipages, as
//! many views as the paper says, and messages that their words derive.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use apps::raw::{Cut, Element, Granularity, Reads};
use apps::solve::Steps;
use apps::tsp::{self, Instance, Pooled};
use apps::water::{self, Record, nsquared};
use apps::{is, lu};
use dhole::Config;
use dhole::memory::{MemorySettings, MemoryUsage};
use dhole::sim::Settings;
use serde_json::json;

use crate::memory::{KINDS, alike, report, sent};

fn over_memory(nodes: usize) -> Config {
    Config::nodes(nodes).memory(MemorySettings::default())
}

const PAGES: Cut = Cut {
    granularity: Granularity::Page,
    chunk: 1,
};

const LU: (&str, &[&str]) = (
    env!("CARGO_BIN_EXE_lu"),
    &["--size", "24", "--block", "4", "--prefetch", "off"],
);

#[test]
fn lu_sends_the_same_messages_on_every_machine_and_as_many_as_it_says() {
    let found = alike(LU);
    let measured = &found["measured"];
    // Of 6 x 6 blocks on 2 nodes, node 0 owns the even columns. In step k its diagonal block goes
    // to the other node if that owns blocks below it, which it does not. Of the blocks beside the
    // diagonal all that a node needs lie in its own columns; so it reads the other's blocks of
    // column k, the diagonal one with those beside it in mind.
    let mut reads = 0;
    for k in 0..6_u64 {
        let other = (k + 1..6).any(|j| j % 2 != k % 2);
        reads += u64::from(other) * (6 - k);
    }
    assert_eq!(measured["raw_read_faults"], json!(reads));
    assert_eq!(measured["raw_write_faults"], json!(0));
    assert_eq!(measured["barriers"], json!(2 * (2 * 6 + 1)));
    // Each of them is a request, or a forward, the data and an acknowledgement.
    assert_eq!(sent(&found, &["memory_data"]), reads);
    let ahead = (LU.0, &[&LU.1[..4], &["--prefetch", "on"]].concat()[..]);
    let ahead = report(ahead, &[], None);
    assert_eq!(sent(&ahead, &KINDS), sent(&found, &KINDS));
}

#[test]
fn lu_finds_the_same_factors_of_either_precision_on_any_number_of_nodes() {
    for element in [Element::F32, Element::F64] {
        let mut problem = lu::Problem {
            size: 36,
            block: 6,
            seed: 2,
            prefetch: false,
            element,
        };
        let (alone, _) = (lu::PROGRAM.sequential)(&problem);
        for nodes in [1, 2, 3, 4, 6] {
            problem.prefetch = nodes % 2 == 0;
            let run = over_memory(nodes)
                .run(|w| lu::solve(w, &problem, &mut Steps::default()))
                .unwrap();
            assert_eq!((lu::PROGRAM.differ)(&alone, &run.value), None, "{nodes}");
            assert_eq!(run.value.residual, alone.residual);
        }
    }
}

#[test]
fn tsp_s_pool_finds_the_shortest_tour_with_any_minipages_and_pushes_its_length() {
    for (unit, granularity, views) in [
        (148, Granularity::Allocation, 27),
        (128, Granularity::Allocation, 32),
        (256, Granularity::Allocation, 16),
        (148, Granularity::Page, 3),
    ] {
        for push in [true, false] {
            let pooled = Pooled {
                depth: 7,
                push,
                unit,
                granularity,
            };
            let problem = tsp::Problem {
                way: tsp::Way::Pooled(pooled),
                ..tsp::Problem::from(Instance::random(11, 4))
            };
            let (alone, _) = (tsp::PROGRAM.sequential)(&problem);
            let orca = tsp::Problem::from(Instance::random(11, 4));
            let (other, _) = (tsp::PROGRAM.sequential)(&orca);
            assert_eq!(alone.tour.length, other.tour.length);
            for nodes in [1, 4] {
                let program = |w: &mut dhole::Worker<'_>| {
                    (tsp::PROGRAM.shared)(w, &problem, &mut Steps::default())
                };
                let threads = over_memory(nodes).run(program).unwrap();
                let simulated = Settings::fixed_cost(nodes);
                let simulated = over_memory(nodes).simulate(simulated, program).unwrap();
                let pushes = simulated
                    .report
                    .total()
                    .sent(dhole::MessageKind::MemoryForward);
                assert!(nodes == 1 || pushes > 0);
                for found in [threads.value, simulated.value] {
                    assert_eq!((tsp::PROGRAM.differ)(&alone, &found), None);
                    let length = cities_length(&problem.instance, &found.tour.cities);
                    assert_eq!(length, alone.tour.length);
                    let usage = found.raw.expect("node 0 has allocated").usage;
                    assert_eq!(usage.views, views, "{unit}");
                }
            }
        }
    }
}

fn cities_length(instance: &Instance, cities: &[u32]) -> u64 {
    let next = cities.iter().cycle().skip(1);
    let ways = cities.iter().zip(next);
    let length = ways.map(|(from, to)| instance.distance(*from as usize, *to as usize));
    length.map(u64::from).sum()
}

#[test]
fn water_over_records_in_memory_moves_as_the_sequential_one_and_chunks_fault_less() {
    let problem = water::Problem {
        record: Record::Splash,
        ..water::Problem::new(24, 2, 1)
    };
    let alone = nsquared::sequential::run(problem, |_| ());
    let mut faults = Vec::new();
    for cut in [
        Cut::ROWS,
        Cut {
            chunk: 4,
            ..Cut::ROWS
        },
        PAGES,
        Cut {
            granularity: Granularity::Adaptive,
            ..Cut::ROWS
        },
    ] {
        for nodes in [1, 2, 3] {
            let program = |w: &mut dhole::Worker<'_>| {
                nsquared::memory::run(w, (&problem, cut), Some(&alone), |_| ())
            };
            let threads = over_memory(nodes).run(program).unwrap();
            let simulated = Settings::fixed_cost(nodes);
            let simulated = over_memory(nodes).simulate(simulated, program).unwrap();
            for found in [&threads.value, &simulated.value] {
                let error = found.error.expect("it is compared").max();
                assert!(error < 1e-9, "{cut:?} on {nodes}: {error}");
            }
            if nodes == 3 {
                faults.push(simulated.report.total().raw_read_faults);
            }
        }
    }
    assert!(
        faults[1..].iter().all(|less| *less < faults[0]),
        "{faults:?}"
    );
}

#[test]
fn water_that_fetches_records_in_rounds_waits_once_for_each() {
    let alone = |reads: Reads| water::Problem {
        record: Record::Splash,
        reads,
        ..water::Problem::new(24, 2, 1)
    };
    let all = [Reads::Each, Reads::Round, Reads::Coarse];
    let [each, round, coarse] = all.map(|reads| {
        let problem = alone(reads);
        let program = |w: &mut dhole::Worker<'_>| {
            nsquared::memory::run(w, (&problem, Cut::ROWS), None, |_| ())
        };
        let simulated = over_memory(2).simulate(Settings::fixed_cost(2), program);
        let run = simulated.unwrap();
        (run.value.end, run.report.total())
    });
    assert_eq!((&each.0, &coarse.0), (&round.0, &round.0));
    // What is copied takes the messages of a round.
    assert_eq!(coarse.1.raw_read_faults, round.1.raw_read_faults);
    assert_eq!(coarse.1.messages, round.1.messages);
    // Records that come by a read: those of the other node, in each of five rounds on each node.
    let rounds = 2 * (1 + 2 * 2);
    assert!(each.1.raw_read_faults >= 12 * rounds);
    // Beside a round it faults for the forces, which each adds to the other's records.
    let fewer = each.1.raw_read_faults - round.1.raw_read_faults;
    assert!(fewer >= 11 * rounds, "{fewer}");
    let data = dhole::MessageKind::MemoryData;
    assert!(round.1.sent(data) <= each.1.sent(data) + rounds);
}

#[test]
fn is_of_a_class_verifies_as_nas_s_does_with_any_minipages() {
    for cut in [Cut::ROWS, PAGES] {
        let problem = is::Problem {
            keys: 1 << 16,
            values: 1 << 11,
            rankings: is::Class::S.rankings(),
            seed: 1,
            class: Some(is::Class::S),
            cut,
            prefetch: false,
        };
        let run = over_memory(2)
            .run(|w| is::solve(w, &problem, &mut Steps::default()))
            .unwrap();
        assert_eq!(run.value.verifications, Some((51, 51)));
        // Other keys are found to be wrong.
        let wrong = is::Problem {
            class: None,
            ..problem
        };
        let mut other = is::Found {
            verifications: Some((0, 51)),
            ..run.value
        };
        assert!((is::PROGRAM.differ)(&run.value, &other).is_some());
        other.verifications = Some((51, 51));
        assert_eq!((is::PROGRAM.differ)(&run.value, &other), None);
        assert_ne!((is::PROGRAM.sequential)(&wrong).0.counts, run.value.counts);
    }
}

/// What node 0 has allocated of a program of the paper's size, of which nothing but that is done.
fn allocated(
    run: impl Fn(&mut dhole::Worker<'_>) -> dhole::Result<MemoryUsage> + Sync,
) -> [u64; 2] {
    let run = over_memory(1).run(|w| run(w)).unwrap();
    [run.value.views, run.value.minipage_bytes]
}

#[test]
fn the_paper_s_programs_need_as_many_views_and_bytes_as_its_table_2_says() {
    use dhole::memory::{alloc_rows, usage};
    // SOR's two colours, 32,768 rows in all.
    let sor = allocated(|w| {
        let _red = alloc_rows::<f32>(w, 16_384, 64)?;
        let _black = alloc_rows::<f32>(w, 16_384, 64)?;
        Ok(usage(w)?)
    });
    assert_eq!(sor, [16, 8 << 20]);
    let is = allocated(|w| {
        let _counts = alloc_rows::<u32>(w, 8, 64)?;
        Ok(usage(w)?)
    });
    assert_eq!(is, [8, 2 << 10]);
    let lu = allocated(|w| {
        let _blocks = alloc_rows::<f64>(w, 1_024, 1_024)?;
        Ok(usage(w)?)
    });
    assert_eq!(lu, [1, 8 << 20]);
    // The paper has 11 views for Water: of molecules alone six lie on a page.
    let water = allocated(|w| {
        let _molecules = alloc_rows::<f64>(w, 512, 84)?;
        Ok(usage(w)?)
    });
    assert_eq!(water, [6, 336 << 10]);
}
