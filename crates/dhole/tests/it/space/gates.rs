//! Gates: objects that one node alone writes, and that others read between the intervals in which
//! it writes them.

use std::sync::atomic::{AtomicBool, Ordering};

use dhole::{Coherence, Config, Counters, Detector, Optimisations, Races, Refs, Run, Worker, sim};

/// Objects of ten chunks.
const OBJECTS: usize = 640;
const CHUNKS: u64 = 10;

/// Rounds in which node 0 writes all objects before node 1 reads some.
const ROUNDS: u64 = 8;

/// Node 1 reads those objects for which `reads` says so, of a round and a place.
fn rounds(w: &mut Worker<'_>, reads: impl Fn(u64, usize) -> bool) -> dhole::Result<Counters> {
    let objects: Refs<u64> = w.once(|w| Ok(w.alloc_range(OBJECTS, |_| 0_u64)))?;
    let before = w.counters();
    for round in 1..=ROUNDS {
        if w.node().index() == 0 {
            for object in objects.iter() {
                *object.get_mut(w) += 1;
            }
        }
        w.barrier()?;
        if w.node().index() == 1 {
            let read = objects
                .iter()
                .enumerate()
                .filter(|(at, _)| reads(round, *at));
            for (at, object) in read {
                assert_eq!(object.read(w), round, "{at}");
            }
        }
        w.barrier()?;
    }
    Ok(w.counters().since(&before))
}

fn of_nodes(run: &Run<Counters>) -> [&Counters; 2] {
    [0, 1].map(|node| &run.report.per_node[node])
}

#[test]
fn what_nobody_reads_is_written_by_one_call_for_each_chunk() {
    let run = Config::nodes(2).run(|w| rounds(w, |_, _| false)).unwrap();
    let [writer, _] = of_nodes(&run);
    assert_eq!(writer.gates_opened, (ROUNDS - GATED_IN) * CHUNKS);
    // Each write before that was a fault, or one of those that it made writable.
    let faults = writer.write_faults + writer.writable_beside;
    assert_eq!(faults, GATED_IN * OBJECTS as u64);
    assert_eq!(writer.intervals, GATED_IN);
}

/// The round after which objects that nobody reads are behind gates.
const GATED_IN: u64 = 3;

#[test]
fn what_is_read_behind_a_gate_takes_no_message_and_is_announced_next() {
    for coherence in [Coherence::Lazy, Coherence::Update] {
        let config = Config::nodes(2).coherence(coherence);
        // One of each chunk, first behind its gate.
        let read = |round, at: usize| round >= GATED_IN && at % 64 == 5;
        let run = config.run(|w| rounds(w, read)).unwrap();
        let [writer, reader] = of_nodes(&run);
        let (reads, pushes) = match coherence {
            // After its first read the reader is pushed each version.
            Coherence::Update => (1, ROUNDS - GATED_IN),
            _ => (ROUNDS - GATED_IN + 1, 0),
        };
        assert_eq!(reader.one_sided_reads, reads * CHUNKS);
        assert_eq!((reader.misses, reader.pushes_read), (0, pushes * CHUNKS));
        assert_eq!(writer.gates_opened, (ROUNDS - GATED_IN) * CHUNKS);
        // The one that was read is announced from then on, and it alone.
        assert_eq!(writer.intervals, ROUNDS);
        let faults = writer.write_faults + writer.writable_beside;
        let alone = (ROUNDS - GATED_IN) * CHUNKS;
        assert_eq!(faults, GATED_IN * OBJECTS as u64 + alone);
    }
}

#[test]
fn what_is_read_once_goes_behind_its_gate_again() {
    let run = Config::nodes(2).run(|w| rounds(w, |round, at| round == 4 && at == 70));
    let run = run.unwrap();
    let [writer, reader] = of_nodes(&run);
    assert_eq!((reader.one_sided_reads, reader.misses), (1, 0));
    let faults = writer.write_faults + writer.writable_beside;
    assert_eq!(faults, GATED_IN * OBJECTS as u64 + GATED_IN);
    assert_eq!(writer.intervals, GATED_IN + GATED_IN);
}

/// The reader asks by message, and the owner answers at its next call. What was asked for so is
/// published by itself from then on.
#[test]
fn who_finds_a_gate_open_asks_its_owner() {
    let [is_open, is_read] = [const { AtomicBool::new(false) }; 2];
    let run = Config::nodes(2).run(|w| {
        let objects = w.once(|w| Ok(w.alloc_range(64, |_| 0_u64)))?;
        let me = w.node().index();
        for round in 1..=8_u64 {
            let is_asked = round == 5;
            if me == 0 {
                // All but the one that is read meanwhile.
                let written = |at: &usize| !is_asked || *at != 9;
                for at in (0..64).filter(written) {
                    *objects.at(at).get_mut(w) = round;
                }
                if is_asked {
                    is_open.store(true, Ordering::Release);
                    while !is_read.load(Ordering::Acquire) {
                        w.poll()?;
                    }
                }
            } else if is_asked {
                while !is_open.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                assert_eq!(objects.at(9).read(w), 4);
                is_read.store(true, Ordering::Release);
            }
            w.barrier()?;
            if me == 1 && round == 8 {
                assert_eq!(objects.at(9).read(w), 8);
                assert_eq!(objects.at(10).read(w), 8);
            }
            w.barrier()?;
        }
        Ok(w.counters())
    });
    let run = run.unwrap();
    let [_, reader] = of_nodes(&run);
    assert_eq!((reader.one_sided_reads, reader.misses), (2, 1));
}

#[test]
fn there_are_no_gates_where_they_would_change_what_is_found_or_counted() {
    let unlearned = Optimisations {
        learn: false,
        ..Optimisations::default()
    };
    let two = || Config::nodes(2);
    for (what, config) in [
        ("by message", two().one_sided(false)),
        ("without learning", two().optimisations(unlearned)),
        ("vm", two().detector(Detector::Vm)),
        ("all races", two().races(Races::WarnAll)),
        ("a home", two().coherence(Coherence::Home)),
    ] {
        let run = config.run(|w| rounds(w, |_, at| at % 64 == 5)).unwrap();
        assert_eq!(run.report.total().gates_opened, 0, "{what}");
    }
}

#[test]
fn simulated_nodes_with_remote_memory_have_gates() {
    let network = sim::Description::find("infiniband").unwrap().network;
    let settings = sim::Settings {
        network,
        ..sim::Settings::fixed_cost(2)
    };
    let program = |w: &mut Worker<'_>| rounds(w, |round, at| round == 6 && at % 64 == 5);
    let run = Config::nodes(2).simulate(settings, program).unwrap();
    let [writer, reader] = of_nodes(&run);
    assert_eq!((reader.one_sided_reads, reader.misses), (CHUNKS, 0));
    assert_eq!(writer.gates_opened, (ROUNDS - GATED_IN) * CHUNKS);
}
