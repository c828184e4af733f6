//! One-sided reads: objects that are read in the memory of the node that wrote them, without a
//! message.

use dhole::sim::{Description, Settings};
use dhole::{Coherence, Config, Counters, Own, Ref, Run, Share, Worker};

use super::leaves::{OBJECTS, leaf, sum};

/// Node 0 writes all objects in each of some rounds, and node 1 reads them after it.
fn rounds(w: &mut Worker<'_>, rounds: u64) -> dhole::Result<Counters> {
    let leaves = w.once(|w| Ok(w.alloc_range(OBJECTS as usize, |i| leaf(i as u64))))?;
    let (me, before) = (w.node().index(), w.counters());
    for round in 0..rounds {
        if me == 0 && round > 0 {
            for object in leaves.iter() {
                let value = object.get(w).value + 1;
                *object.get_mut(w) = leaf(value);
            }
        }
        w.barrier()?;
        if me == 1 {
            let first = OBJECTS * (OBJECTS - 1) / 2;
            assert_eq!(sum(w, leaves), first + round * OBJECTS);
        }
        w.barrier()?;
    }
    Ok(w.counters().since(&before))
}

fn reader(run: &Run<Counters>) -> &Counters {
    &run.report.per_node[1]
}

#[test]
fn what_another_thread_wrote_is_read_there_without_a_message() {
    for coherence in [Coherence::Lazy, Coherence::Home] {
        let config = Config::nodes(2).coherence(coherence);
        let run = config.run(|w| rounds(w, 4)).unwrap();
        let leaves = "it::space::leaves::Leaf";
        assert_eq!(reader(&run).by_type[leaves].one_sided_reads, 4 * OBJECTS);
        assert_eq!(reader(&run).by_type[leaves].misses, 0);
        let bytes = reader(&run).one_sided_bytes;
        assert!(bytes >= 4 * OBJECTS * 9, "{bytes} bytes");
        let off = config.one_sided(false).run(|w| rounds(w, 4)).unwrap();
        assert_eq!(reader(&off).one_sided_reads, 0);
        let messages = |run: &Run<Counters>| run.report.total().messages;
        assert!(messages(&run) < messages(&off), "fewer messages");
    }
}

#[test]
fn under_update_the_next_version_is_pushed_to_who_read_there() {
    let config = Config::nodes(2).coherence(Coherence::Update);
    let run = config.run(|w| rounds(w, 4)).unwrap();
    assert_eq!(reader(&run).one_sided_reads, OBJECTS);
    assert_eq!(run.report.per_node[0].pushes, 3 * OBJECTS);
    assert_eq!(reader(&run).pushes_read, 3 * OBJECTS);
}

/// What only its writer has is written without a notice, and stays clean for others to read. What
/// was read in its memory is somebody else's as well, and so the next write is announced.
#[test]
fn what_one_node_alone_writes_is_read_there_and_then_announced() {
    let run = Config::nodes(2).run(|w| {
        let shared = w.once(|w| Ok(w.alloc(0_u64)))?;
        for round in 1..=8_u64 {
            if w.node().index() == 0 {
                *shared.get_mut(w) += 1;
            }
            w.barrier()?;
            if w.node().index() == 1 && !(3..5).contains(&round) {
                assert_eq!(shared.read(w), round);
            }
            w.barrier()?;
        }
        Ok(())
    });
    let total = run.unwrap().report.total();
    let of_type = &total.by_type["u64"];
    // Of the fifth version nobody is told.
    assert_eq!((of_type.one_sided_reads, of_type.misses), (6, 0));
    // Each write is one fault, and the bytes of what somebody has are kept for who asks.
    assert_eq!((total.write_faults, total.pre_images), (8, 7));
}

#[test]
fn a_list_and_what_it_owns_are_read_there() {
    #[derive(Share)]
    struct Pair {
        own: Own<u64>,
        next: Option<Ref<Pair>>,
    }
    let run = Config::nodes(2).run(|w| {
        let head = w.once(|w| {
            let mut next = None;
            for value in 0..10_u64 {
                let own = w.alloc_own(value);
                next = Some(w.alloc(Pair { own, next }));
            }
            Ok(next)
        })?;
        let (mut sum, mut at) = (0, head);
        while let Some(pair) = at {
            sum += (*pair.get(w).own).read(w);
            at = pair.get(w).next;
        }
        assert_eq!(sum, 45);
        w.barrier()?;
        Ok(w.prefetch_reachable(head.expect("ten"), 100)?)
    });
    let run = run.unwrap();
    let reader = &run.report.per_node[1];
    assert_eq!((reader.misses, reader.one_sided_reads), (0, 20));
}

#[test]
fn the_line_that_reads_there_is_in_the_report() {
    let run = Config::nodes(2).run(|w| rounds(w, 1)).unwrap();
    let lines = &run.report.costs.lines;
    let read: u64 = lines.iter().map(|line| line.cost.one_sided_reads).sum();
    assert_eq!(read, run.report.total().one_sided_reads);
    let line = lines
        .iter()
        .find(|line| line.cost.one_sided_reads == OBJECTS);
    let advice = run.report.advice(line.expect("the line that reads"));
    assert!(
        advice.starts_with("100 one-sided reads of `Leaf`"),
        "{advice}"
    );
    assert!(run.report.json().contains("\"one_sided_reads\":100"));
}

/// A read of remote memory is a round trip of the adapters, and takes nothing of the owner, which
/// computes meanwhile; where the network has none, objects are asked for.
#[test]
fn a_simulated_network_reads_remote_memory_if_it_can() {
    let infiniband = Description::find("infiniband").unwrap().network;
    let ethernet = Description::find("ethernet-100g").unwrap().network;
    let ran = |network, one_sided| {
        let settings = Settings {
            network,
            ..Settings::fixed_cost(2)
        };
        let config = Config::nodes(2).one_sided(one_sided);
        let run = config.simulate(settings, |w| {
            let shared = w.once(|w| Ok(w.alloc(leaf(8))))?;
            w.barrier()?;
            let began = w.now();
            match w.node().index() {
                0 => w.work(1_000_000),
                _ => assert_eq!(shared.get(w).value, 8),
            }
            let took = w.now() - began;
            w.barrier()?;
            Ok(if w.node().index() == 1 { took } else { began })
        });
        let report = run.unwrap().report;
        let reader = &report.per_node[1];
        (
            reader.one_sided_reads,
            reader.misses,
            report.total().messages,
        )
    };
    let (reads, misses, messages) = ran(infiniband, true);
    // The reference came with a message; the object is read.
    assert_eq!((reads, misses), (1, 0));
    assert_eq!(ran(infiniband, false), (0, 1, messages + 2));
    assert_eq!(ran(ethernet, true), ran(ethernet, false));
}
