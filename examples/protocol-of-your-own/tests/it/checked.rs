//! The protocol is explored, and runs on every machine.

use dhole::protocol::CoherenceProtocol;
use dhole::{Coherence, Config, Lock, Report, Result, Worker};
use protocol_of_your_own::Uncached;
use protocol_of_your_own::pushing::Pushing;

#[test]
fn every_run_on_two_nodes_is_sound() {
    dhole_check::explore::<Uncached>(2).assert_sound();
}

#[test]
fn every_run_on_three_nodes_is_sound() {
    dhole_check::explore::<Uncached>(3).assert_sound();
}

#[test]
fn no_litmus_test_shows_what_must_not_be() {
    dhole_check::litmus::<Uncached>(0..100);
}

/// The nodes add to a counter by turns, and then all of them under a lock; all read it.
fn count(w: &mut Worker<'_>, locked: usize) -> Result<u32> {
    let counter = w.once(|w| Ok(w.alloc(0_u32)))?;
    for turn in 0..w.nodes() {
        if w.node().index() == turn {
            *counter.get_mut(w) += 1;
        }
        w.barrier()?;
    }
    for _ in 0..locked {
        Lock::numbered(1).with(w, |w| {
            *counter.get_mut(w) += 1;
            Ok(())
        })?;
    }
    w.barrier()?;
    Ok(counter.read(w))
}

fn sent(report: &Report) -> u64 {
    let of = report.total().by_protocol;
    of.get("uncached").map_or(0, |sent| sent.messages)
}

#[test]
fn it_runs_on_threads_and_its_messages_are_counted_under_its_name() {
    let config = Config::nodes(3).coherence(Uncached::coherence());
    let run = config.run(|w| count(w, 0)).unwrap();
    assert_eq!(run.value, 3);
    // Each of two additions elsewhere than at home fetches and stores, with two messages each; and
    // two nodes fetch what they read in the end.
    assert_eq!(sent(&run.report), 2 * 4 + 2 * 2);
}

#[test]
fn under_a_lock_nothing_is_lost() {
    let config = Config::nodes(3).coherence(Uncached::coherence());
    assert_eq!(config.run(|w| count(w, 10)).unwrap().value, 33);
}

#[test]
fn several_nodes_write_parts_of_one_object_at_once() {
    let config = Config::nodes(3).coherence(Uncached::coherence());
    let run = config.run(|w| {
        let parts = w.once(|w| Ok(w.alloc([0_u32; 3])))?;
        let me = w.node().index();
        for _ in 0..3 {
            parts.get_mut(w)[me] += 1 + me as u32;
            w.barrier()?;
        }
        Ok(parts.read(w))
    });
    assert_eq!(run.unwrap().value, [3, 6, 9]);
}

#[test]
fn an_allocation_chooses_it_and_objects_change_to_it_and_back() {
    let run = Config::nodes(2).run(|w| {
        let number = w.once(|w| Ok(w.under(Uncached::coherence()).alloc(1_u32)))?;
        let mut seen = Vec::new();
        for to in [Coherence::Lazy, Uncached::coherence(), Coherence::Home] {
            if w.node().index() == 1 {
                *number.get_mut(w) += 1;
            }
            w.barrier()?;
            seen.push(number.read(w));
            w.switch(number, to)?;
            seen.push(number.read(w));
            w.barrier()?; // a write under this protocol is seen at once
        }
        Ok(seen)
    });
    let run = run.unwrap();
    assert_eq!(run.value, [2, 2, 3, 3, 4, 4]);
    assert!(sent(&run.report) > 0);
}

#[test]
fn what_was_freed_is_an_error_also_where_that_is_not_known() {
    let run = Config::nodes(2).coherence(Uncached::coherence()).run(|w| {
        let number = w.once(|w| Ok(w.alloc(1_u32)))?;
        if w.node().index() == 0 {
            w.free(number)?;
        }
        w.barrier()?;
        Ok(number.try_get(w).is_err())
    });
    assert!(run.unwrap().value);
}

#[test]
fn nodes_write_different_elements_of_an_array_at_once() {
    let config = Config::nodes(3).coherence(Uncached::coherence());
    let run = config.run(|w| {
        // Three blocks, of which the nodes write thirds that begin and end within blocks.
        let numbers = w.once(|w| Ok(w.alloc_array::<u32>(3000)))?;
        let me = w.node().index();
        for round in 1..=3 {
            let own = numbers.slice_mut(w, 1000 * me..1000 * (me + 1));
            own.iter_mut().for_each(|number| *number += round);
            w.barrier()?;
        }
        let sum: u32 = numbers.slice(w, ..).iter().sum();
        w.barrier()?;
        Ok(sum)
    });
    let run = run.unwrap();
    assert_eq!(run.value, 3000 * 6);
}

#[test]
fn an_array_changes_to_it_and_back_and_is_freed() {
    let run = Config::nodes(2).run(|w| {
        let numbers = w.once(|w| Ok(w.alloc_array::<u32>(3000)))?;
        let me = w.node().index();
        let mut sums = Vec::new();
        for to in [
            Uncached::coherence(),
            Coherence::Home,
            Uncached::coherence(),
            Coherence::Lazy,
        ] {
            w.switch(numbers, to)?;
            let own = numbers.slice_mut(w, 1500 * me..1500 * (me + 1));
            own.iter_mut().for_each(|number| *number += 1);
            w.barrier()?;
            sums.push(numbers.slice(w, ..).iter().sum::<u32>());
            w.barrier()?;
        }
        if me == 0 {
            w.free(numbers)?;
        }
        w.barrier()?;
        assert!(numbers.try_slice(w, ..).is_err(), "it was freed");
        Ok(sums)
    });
    let run = run.unwrap();
    assert_eq!(run.value, [3000, 6000, 9000, 12_000]);
    assert!(sent(&run.report) > 0);
}

#[test]
fn every_run_of_a_protocol_that_pushes_is_sound() {
    dhole_check::explore::<Pushing>(2).assert_sound();
    dhole_check::explore::<Pushing>(3).assert_sound();
    dhole_check::litmus::<Pushing>(0..100);
}

/// Node 0 writes in each round what nodes 1 and 2 read.
fn row(rounds: u64) -> Report {
    let run = Config::nodes(3).coherence(Pushing::coherence()).run(|w| {
        let row = w.once(|w| Ok(w.alloc([0_u64; 100])))?;
        let squares = w.once(|w| Ok(w.alloc_array::<u64>(1_000)))?;
        for round in 0..=rounds {
            if w.node().index() == 0 {
                row.get_mut(w).fill(round);
                *squares.get_mut(w, 7) = round * round;
            }
            w.barrier()?;
            assert_eq!(row.get(w)[99], round);
            assert_eq!(squares.slice(w, 5..10)[2], round * round);
            w.barrier()?;
        }
        Ok(())
    });
    run.unwrap().report
}

#[test]
fn what_is_pushed_is_read_without_a_message() {
    let report = row(10);
    let pushing = report.total().by_protocol["pushing"].messages;
    // Two readers fetch two units, and then get each of them 10 times and answer.
    assert_eq!(pushing, 2 * 2 * 2 + 10 * 2 * 2 * 2);
    let total = report.total();
    assert_eq!([total.pushes, total.pushes_read], [40, 40]);
}

#[test]
fn an_object_and_an_array_leave_a_protocol_that_pushes_with_what_was_pushed_last() {
    let run = Config::nodes(2).coherence(Pushing::coherence()).run(|w| {
        let number = w.once(|w| Ok(w.alloc(1_u32)))?;
        let numbers = w.once(|w| Ok(w.alloc_array::<u32>(3_000)))?;
        let me = w.node().index();
        let mut sums = Vec::new();
        for to in [Coherence::Lazy, Pushing::coherence(), Coherence::Update] {
            sums.push(number.read(w) + numbers.slice(w, ..).iter().sum::<u32>());
            w.barrier()?;
            if me == 0 {
                *number.get_mut(w) += 1;
                *numbers.get_mut(w, 2_500) += 1;
            }
            w.switch(number, to)?;
            w.switch(numbers, to)?;
        }
        sums.push(number.read(w) + numbers.slice(w, ..).iter().sum::<u32>());
        w.barrier()?;
        if me == 1 {
            w.free(number)?;
            w.free(numbers)?;
        }
        Ok(sums)
    });
    assert_eq!(run.unwrap().value, [1, 3, 5, 7]);
}
