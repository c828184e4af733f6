//! Races are told with the lines that matter.

use dhole::{
    Array, Coherence, Config, Error, Lock, Races, Result, RunError, SyncError, Worker, Write, sim,
};

/// The line that `w.alloc`, and the two lines that write, in [`race`].
const LINES: [u32; 3] = [line!() + 4, line!() + 6, line!() + 8];

/// Two nodes race for an object.
fn race(w: &mut Worker<'_>) -> Result<i64> {
    let account = w.once(|w| Ok(w.alloc(100_i64)))?;
    if w.node().index() == 0 {
        *account.get_mut(w) += 20;
    } else if w.node().index() == 1 {
        *account.get_mut(w) -= 30;
    }
    w.barrier()?;
    Ok(account.read(w))
}

#[test]
fn a_race_is_told_with_object_type_and_three_lines() {
    let config = Config::nodes(3);
    for run in [
        config.run(race),
        config.simulate(sim::Settings::fixed_cost(3), race),
    ] {
        let run = run.unwrap();
        assert!([120, 70, 90].contains(&run.value), "{}", run.value);
        let [race] = &run.report.races[..] else {
            panic!("{:?}", run.report.races)
        };
        let [zero, one] = race.writes.map(|write| write.site.map(|site| site.line));
        let lines = [race.allocated_at.map(|site| site.line), zero, one];
        assert_eq!(lines, LINES.map(Some));
        let text = race.to_string();
        assert!(text.contains("(i64, allocated at "), "{text}");
        assert_eq!(run.report.warnings, [text]);
        assert_eq!(run.report.total().races, 1);
    }
}

#[test]
fn a_race_for_what_was_expected_to_be_written_is_told_with_its_line() {
    const LINE: u32 = line!() + 8;
    let run = Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.alloc_range(3, |_| 0_u64)))?;
        if w.node().index() == 0 {
            for number in numbers.slice(..2).iter() {
                *number.get_mut(w) += 1;
            }
            // It is writable already.
            *numbers.at(2).get_mut(w) += 1;
        } else {
            *numbers.at(2).get_mut(w) += 2;
        }
        w.barrier()?;
        Ok(())
    });
    let run = run.unwrap();
    assert_eq!(run.report.total().writable_beside, 1);
    let [race] = &run.report.races[..] else {
        panic!("{:?}", run.report.races)
    };
    let lines = race.writes.map(|write| write.site.map(|site| site.line));
    assert_eq!(lines, [Some(LINE), Some(LINE + 2)]);
}

#[test]
fn on_request_a_race_ends_the_run_on_all_nodes() {
    let config = Config::nodes(3).races(Races::Fail);
    for run in [
        config.run(race),
        config.simulate(sim::Settings::fixed_cost(3), race),
    ] {
        let Err(RunError::Failed { error, others, .. }) = run else {
            panic!("a race is an error")
        };
        let Error::Sync(SyncError::Race { race, .. }) = *error else {
            panic!("{error}")
        };
        assert_eq!(race.allocated_at.map(|site| site.line), Some(LINES[0]));
        assert!(others.is_empty(), "one node found it: {others:?}");
    }
}

#[test]
fn ignored_races_are_not_looked_for() {
    let run = Config::nodes(2).races(Races::Ignore).run(race).unwrap();
    assert_eq!(run.report.warnings.len() + run.report.races.len(), 0);
    assert_eq!(run.report.total().races, 0);
}

#[test]
fn objects_of_one_type_allocated_in_two_places_are_told_apart() {
    let run = Config::nodes(2).run(|w| {
        let pair = w.once(|w| Ok([w.alloc(1_u8), w.alloc(2_u8)]))?;
        pair.iter().for_each(|number| *number.get_mut(w) += 1);
        w.barrier()?;
        Ok(())
    });
    let columns = |races: Vec<dhole::RaceReport>| {
        let sites = races.into_iter().filter_map(|race| race.allocated_at);
        sites.map(|site| site.column).collect::<Vec<_>>()
    };
    let columns = columns(run.unwrap().report.races);
    assert!(
        columns.len() == 2 && columns[0] != columns[1],
        "{columns:?}"
    );
}

#[test]
fn a_thousand_races_are_counted_and_a_few_are_told() {
    let run = Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.alloc_range(1000, |i| i)))?;
        for number in numbers.iter() {
            *number.get_mut(w) += 1;
        }
        w.barrier()?;
        Ok(())
    });
    let report = run.unwrap().report;
    assert_eq!((report.total().races, report.races.len()), (1000, 16));
    assert_eq!(report.warnings.last().unwrap(), "984 more races were found");
}

/// Node 0 writes an object that it has had to itself for four intervals, and node 1 writes it too.
fn race_for_ones_own(w: &mut Worker<'_>) -> Result<()> {
    let number = w.once(|w| Ok(w.alloc(0_u64)))?;
    for _ in 0..4 {
        if w.node().index() == 0 {
            *number.get_mut(w) += 1;
        }
        w.barrier()?;
    }
    *number.get_mut(w) += 1;
    w.barrier()?;
    Ok(())
}

#[test]
fn what_a_warning_overlooks_is_found_where_all_races_are_asked_for() {
    let races = [Races::Ignore, Races::Warn, Races::WarnAll].map(|races| {
        let settings = sim::Settings::fixed_cost(2);
        let run = Config::nodes(2)
            .races(races)
            .simulate(settings, race_for_ones_own);
        run.unwrap().report.total().races
    });
    assert_eq!(races, [0, 0, 1]);
}

#[test]
fn a_lock_makes_it_no_race() {
    let config = Config::nodes(4).races(Races::Fail);
    let run = config.run(|w| {
        let sum = w.once(|w| Ok(w.alloc(0_u64)))?;
        for _ in 0..100 {
            Lock::numbered(0).with(w, |w| {
                *sum.get_mut(w) += 1;
                Ok(())
            })?;
        }
        w.barrier()?;
        Ok(sum.read(w))
    });
    assert_eq!(run.unwrap().value, 400);
}

/// How a node writes elements of an array.
type WriteElements = fn(Array<u64>, &mut Worker<'_>);

/// Each way to write elements, and its line.
const WAYS: [(WriteElements, u32); 5] = [
    (|a, w| a.slice_mut(w, 20..40).fill(1), line!()),
    (|a, w| a.range(20..40).get_mut(w).fill(2), line!()),
    (|a, w| *a.get_mut(w, 30) = 3, line!()),
    (|a, w| a.write_all(w, 20, &[4; 20]), line!()),
    (
        |a, w| w.borrow((Write(a.range(20..40)),)).unwrap().0.fill(5),
        line!() - 1,
    ),
];

/// The line that `w.alloc_array`, and that on which node 0 writes, in [`race_for_elements`].
const ARRAY_LINES: [u32; 2] = [line!() + 4, line!() + 6];

/// Nodes 0 and 1 write elements that overlap, node 2 neighbours of both.
fn race_for_elements(w: &mut Worker<'_>, way: WriteElements) -> Result<()> {
    let array = w.once(|w| Ok(w.alloc_array::<u64>(100)))?;
    match w.node().index() {
        0 => array.slice_mut(w, 25..35).fill(7),
        1 => way(array, w),
        _ => array.slice_mut(w, 40..60).fill(8),
    }
    w.barrier()?;
    Ok(())
}

#[test]
fn a_race_for_elements_is_told_with_the_overlap_and_the_lines_however_they_are_written() {
    for (way, line) in WAYS {
        let (config, program) = (Config::nodes(3), |w: &mut Worker<'_>| {
            race_for_elements(w, way)
        });
        for run in [
            config.run(program),
            config.simulate(sim::Settings::fixed_cost(3), program),
        ] {
            let report = run.unwrap().report;
            let [race] = &report.races[..] else {
                panic!("{:?}", report.races)
            };
            let overlap = if line == WAYS[2].1 { 30..31 } else { 25..35 };
            assert_eq!(
                race.elements.map(|elements| elements.range()),
                Some(overlap)
            );
            let [zero, one] = race.writes.map(|write| write.site.map(|site| site.line));
            let allocated = race.allocated_at.map(|site| site.line);
            let lines = [ARRAY_LINES[0], ARRAY_LINES[1], line].map(Some);
            assert_eq!([allocated, zero, one], lines);
            let text = race.to_string();
            let says = [
                "a race for elements ",
                "(u64, allocated at ",
                " wrote them at ",
            ];
            assert!(says.iter().all(|words| text.contains(words)), "{text}");
            assert_eq!(report.warnings, [text]);
        }
    }
}

#[test]
fn on_request_a_race_for_elements_ends_the_run() {
    let config = Config::nodes(3).races(Races::Fail);
    let program = |w: &mut Worker<'_>| race_for_elements(w, WAYS[0].0);
    for run in [
        config.run(program),
        config.simulate(sim::Settings::fixed_cost(3), program),
    ] {
        let Err(RunError::Failed { error, .. }) = run else {
            panic!("a race is an error")
        };
        let Error::Sync(SyncError::Race { race, .. }) = *error else {
            panic!("{error}")
        };
        assert_eq!(race.elements.map(|elements| elements.range()), Some(25..35));
    }
}

#[test]
fn elements_side_by_side_or_under_a_lock_are_no_race() {
    let config = Config::nodes(4).races(Races::Fail);
    let run = config.run(|w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(44)))?;
        let mine = 10 * w.node().index();
        for _ in 0..20 {
            array.slice_mut(w, mine..mine + 10).fill(1);
            Lock::numbered(0).with(w, |w| {
                array
                    .slice_mut(w, 40..)
                    .iter_mut()
                    .for_each(|sum| *sum += 1);
                Ok(())
            })?;
        }
        w.barrier()?;
        Ok(array.slice(w, ..).iter().sum::<u64>())
    });
    assert_eq!(run.unwrap().value, 40 + 4 * 80);
}

/// A race under the home protocol: both nodes write the third number of an object, and each
/// another one.
fn race_at_home(w: &mut Worker<'_>) -> Result<[u64; 4]> {
    let four = w.once(|w| Ok(w.under(Coherence::Home).alloc([0_u64; 4])))?;
    let me = w.node().index();
    four.read(w);
    w.barrier()?; // All have a copy, so that the home looks what it writes itself.
    if me < 2 {
        let four = four.get_mut(w);
        (four[me], four[2]) = (1, me as u64 + 1);
    }
    w.barrier()?;
    Ok(four.read(w))
}

#[test]
fn a_race_for_a_number_at_home_is_told_there_with_both_lines() {
    for config in [Config::nodes(3), Config::nodes(3).races(Races::Warn)] {
        for run in [
            config.run(race_at_home),
            config.simulate(sim::Settings::fixed_cost(3), race_at_home),
        ] {
            let run = run.unwrap();
            let [1, 1, won, 0] = run.value else {
                panic!("{:?}", run.value)
            };
            assert!([1, 2].contains(&won));
            let [race] = &run.report.races[..] else {
                panic!("{:?}", run.report.races)
            };
            let nodes = race.writes.map(|write| write.node.index());
            assert_eq!(nodes, [0, 1]);
            let [zero, one] = race.writes.map(|write| write.site.map(|site| site.line));
            assert!(zero.is_some() && zero == one, "one line writes it on both");
            assert!(
                race.to_string().contains("([u64; 4], allocated at"),
                "{race}"
            );
        }
    }
}

#[test]
fn a_race_for_elements_at_home_is_told_there_with_the_overlap_and_the_lines() {
    for (way, line) in WAYS {
        let config = Config::nodes(3).coherence(Coherence::Home);
        let program = |w: &mut Worker<'_>| race_for_elements(w, way);
        for run in [
            config.run(program),
            config.simulate(sim::Settings::fixed_cost(3), program),
        ] {
            let report = run.unwrap().report;
            let [race] = &report.races[..] else {
                panic!("{:?}", report.races)
            };
            let overlap = if line == WAYS[2].1 { 30..31 } else { 25..35 };
            let elements = race.elements.map(|elements| elements.range());
            assert_eq!(elements, Some(overlap));
            let [zero, one] = race.writes.map(|write| write.site.map(|site| site.line));
            let allocated = race.allocated_at.map(|site| site.line);
            let lines = [ARRAY_LINES[0], ARRAY_LINES[1], line].map(Some);
            assert_eq!([allocated, zero, one], lines);
            assert!(race.to_string().contains("(u64, allocated at "), "{race}");
            assert_eq!(report.total().races, 1);
        }
    }
}

#[test]
fn two_nodes_that_race_for_elements_at_home_elsewhere_end_the_run_on_request() {
    let config = Config::nodes(3)
        .races(Races::Fail)
        .coherence(Coherence::Home);
    let program = |w: &mut Worker<'_>| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(100)))?;
        let me = w.node().index();
        if me > 0 {
            array.slice_mut(w, 10 * me..10 * me + 20).fill(1); // 10..30 and 20..40
        }
        w.barrier()?;
        Ok(())
    };
    for run in [
        config.run(program),
        config.simulate(sim::Settings::fixed_cost(3), program),
    ] {
        let Err(RunError::Failed { error, .. }) = run else {
            panic!("a race is an error")
        };
        let Error::Sync(SyncError::Race { race, .. }) = *error else {
            panic!("{error}")
        };
        assert_eq!(race.elements.map(|elements| elements.range()), Some(20..30));
        let nodes = race.writes.map(|write| write.node.index());
        assert_eq!(nodes, [1, 2]);
    }
}

#[test]
fn elements_at_home_side_by_side_or_under_a_lock_are_no_race() {
    let config = Config::nodes(4)
        .races(Races::Fail)
        .coherence(Coherence::Home);
    let run = config.run(|w| {
        let array = w.once(|w| Ok(w.alloc_array::<u64>(44)))?;
        let mine = 10 * w.node().index();
        for round in 0..20 {
            array.slice_mut(w, mine..mine + 10).fill(round);
            Lock::numbered(0).with(w, |w| {
                let sums = array.slice_mut(w, 40..);
                sums.iter_mut().for_each(|sum| *sum += 1);
                Ok(())
            })?;
        }
        w.barrier()?;
        Ok(array.slice(w, 40..).iter().sum::<u64>())
    });
    assert_eq!(run.unwrap().value, 4 * 80);
}

#[test]
fn on_request_a_race_at_home_ends_the_run() {
    let config = Config::nodes(2).races(Races::Fail);
    for run in [
        config.run(race_at_home),
        config.simulate(sim::Settings::fixed_cost(2), race_at_home),
    ] {
        let Err(RunError::Failed { error, .. }) = run else {
            panic!("a race is an error")
        };
        assert!(error.to_string().contains("a race for "), "{error}");
    }
}

#[test]
fn different_numbers_at_home_and_numbers_under_a_lock_are_no_race() {
    let config = Config::nodes(4)
        .races(Races::Fail)
        .coherence(Coherence::Home);
    let run = config.run(|w| {
        let five = w.once(|w| Ok(w.alloc([0_u64; 5])))?;
        let me = w.node().index();
        for _ in 0..20 {
            five.get_mut(w)[me] += 1;
            Lock::numbered(0).with(w, |w| {
                five.get_mut(w)[4] += 1;
                Ok(())
            })?;
        }
        w.barrier()?;
        Ok(five.read(w))
    });
    assert_eq!(run.unwrap().value, [20, 20, 20, 20, 80]);
}

#[test]
fn a_freeing_that_races_with_a_write_is_told_as_one() {
    let run = Config::nodes(2).run(|w| {
        let number = w.once(|w| Ok(w.alloc(1_u8)))?;
        number.read(w);
        w.barrier()?; // or node 1 might read what is freed
        match w.node().index() {
            0 => w.free(number)?,
            _ => *number.get_mut(w) = 2,
        }
        w.barrier()?;
        Ok(())
    });
    let report = run.unwrap().report;
    let [race] = &report.races[..] else {
        panic!("{:?}", report.races)
    };
    assert_eq!(race.writes.map(|write| write.freed), [true, false]);
    let text = race.to_string();
    assert!(text.contains(": node 0 freed it at ") && text.contains(" and node 1 wrote it at "));
}

#[test]
fn the_freeing_of_an_array_that_races_with_a_write_is_told_as_one() {
    for freeing in 0..2 {
        let settings = sim::Settings::fixed_cost(2);
        let run = Config::nodes(2).simulate(settings, |w| {
            let array = w.once(|w| Ok(w.alloc_array::<u64>(100)))?;
            array.slice(w, ..);
            w.barrier()?;
            match w.node().index() == freeing {
                true => {
                    w.work(1_000_000); // or the writer would learn that it is freed
                    w.free(array)?
                }
                false => array.slice_mut(w, 10..20).fill(2),
            }
            w.barrier()?;
            Ok(())
        });
        let report = run.unwrap().report;
        let [race] = &report.races[..] else {
            panic!("{:?}", report.races)
        };
        let freed = race.writes.map(|write| write.freed);
        assert_eq!(freed, [freeing == 0, freeing == 1]);
        let (text, other) = (race.to_string(), 1 - freeing);
        let freed = format!("node {freeing} freed them at ");
        let wrote = format!("node {other} wrote them at ");
        assert!(text.contains(&freed) && text.contains(&wrote), "{text}");
    }
}

#[test]
fn what_has_no_bytes_is_not_raced_for() {
    for coherence in Coherence::BY_OBJECT {
        let config = Config::nodes(2).races(Races::Fail).coherence(coherence);
        let run = config.run(|w| {
            let nothing = w.once(|w| Ok(w.alloc([0_u8; 0])))?;
            for _ in 0..3 {
                *nothing.get_mut(w) = [];
                w.barrier()?;
            }
            Ok(nothing.read(w).len())
        });
        assert_eq!(run.unwrap().report.total().write_notice_bytes, 0);
    }
}
