//! One-sided reads of elements: arrays that are read, block by block, in the memory of the nodes
//! that wrote them, without a message.

use dhole::sim::{Description, Settings};
use dhole::{Array, Coherence, Config, Counters, MessageKind, Ref, Report, Run, Share, Worker};

/// Elements of a block of `u64`.
const BLOCK: usize = 512;

/// Messages by which nodes ask for something, and their answers.
fn fetches(report: &Report) -> u64 {
    let total = report.total();
    total.sent(MessageKind::Fetch) + total.sent(MessageKind::FetchReply)
}

/// Of a node: one-sided reads, and what it asked for by message.
fn reads_and_misses(node: &Counters) -> (u64, u64) {
    (node.one_sided_reads, node.misses)
}

/// Node 0 writes all elements in each of some rounds, and the others read them after it.
fn rounds(w: &mut Worker<'_>, len: usize, rounds: u64) -> dhole::Result<()> {
    let all = w.once(|w| Ok(w.alloc_array::<u64>(len)))?;
    for round in 1..=rounds {
        if w.node().index() == 0 {
            let elements = all.slice_mut(w, ..);
            let elements = elements.iter_mut().zip(0..);
            elements.for_each(|(it, i)| *it = round * i);
        }
        w.barrier()?;
        let sum: u64 = all.slice(w, ..).iter().sum();
        let len = len as u64;
        assert_eq!(sum, round * len * (len - 1) / 2);
        w.barrier()?;
    }
    Ok(())
}

#[test]
fn elements_that_another_thread_wrote_are_read_there_without_a_message() {
    // Three blocks, of which the last is not full.
    let len = 2 * BLOCK + 100;
    let config = Config::nodes(3);
    let run = config.run(|w| rounds(w, len, 4)).unwrap();
    for reader in [1, 2] {
        let counted = &run.report.per_node[reader];
        assert_eq!(reads_and_misses(counted), (4 * 3, 0));
        assert_eq!(counted.one_sided_bytes, 4 * 8 * len as u64);
        assert_eq!(counted.by_type["u64"].one_sided_reads, 4 * 3);
    }
    assert_eq!(fetches(&run.report), 0);
    let off = config.one_sided(false).run(|w| rounds(w, len, 4)).unwrap();
    assert_eq!(reads_and_misses(&off.report.per_node[1]), (0, 4));
    let line = run.report.costs.lines.iter();
    let at_lines: u64 = line.map(|line| line.cost.one_sided_reads).sum();
    assert_eq!(at_lines, run.report.total().one_sided_reads);
}

/// `update` pushes what was read, and a mark names no elements; a home merges what others write.
#[test]
fn protocols_that_remember_their_readers_bring_elements_by_message() {
    for coherence in [Coherence::Update, Coherence::Home] {
        let config = Config::nodes(2).coherence(coherence);
        let run = config.run(|w| rounds(w, BLOCK, 3)).unwrap();
        let counted = &run.report.per_node[1];
        assert_eq!(counted.one_sided_reads, 0, "{coherence}");
        assert!(counted.misses > 0, "{coherence}");
    }
}

/// Each node writes a part of one block, and reads those of all others. The nodes read in turn, for
/// what comes to a node changes bytes of its own block, which others do not read meanwhile.
#[test]
fn of_a_block_that_several_nodes_write_each_part_is_read_where_it_was_written() {
    const NODES: usize = 3;
    const EACH: usize = 100;
    let run = Config::nodes(NODES).run(|w| {
        let all = w.once(|w| Ok(w.alloc_array::<u64>(NODES * EACH)))?;
        let me = w.node().index();
        for round in 1..=5_u64 {
            let own = all.slice_mut(w, me * EACH..(me + 1) * EACH);
            own.fill(round * (me as u64 + 1));
            w.barrier()?;
            for turn in 0..NODES {
                for node in (0..NODES).filter(|_| turn == me) {
                    let part = all.slice(w, node * EACH..(node + 1) * EACH);
                    assert!(part.iter().all(|it| *it == round * (node as u64 + 1)));
                }
                w.barrier()?;
            }
        }
        Ok(())
    });
    let report = run.unwrap().report;
    for node in &report.per_node {
        let others = NODES as u64 - 1;
        assert_eq!(reads_and_misses(node), (5 * others, 0));
    }
}

/// What one node alone writes of a block becomes exclusive, and so the block is not published. The
/// first that is asked for by message ends that, for the block.
#[test]
fn a_block_that_others_read_a_part_of_is_exclusive_in_none() {
    const ROWS: usize = 8;
    const ROW: usize = BLOCK / ROWS;
    const ROUNDS: u64 = 6;
    let run = Config::nodes(2).run(|w| {
        let all = w.once(|w| Ok(w.alloc_array::<u64>(ROWS * ROW)))?;
        let row = |row: usize| row * ROW..(row + 1) * ROW;
        for round in 1..=ROUNDS {
            if w.node().index() == 0 {
                (0..ROWS).for_each(|i| all.slice_mut(w, row(i)).fill(round * i as u64));
            }
            w.barrier()?;
            // Nobody reads before the third round.
            if w.node().index() == 1 && round >= 3 {
                for i in [ROWS - 1, round as usize - 3] {
                    let read = all.slice(w, row(i));
                    assert!(read.iter().all(|it| *it == round * i as u64));
                }
            }
            w.barrier()?;
        }
        Ok(())
    });
    let report = run.unwrap().report;
    // The rows of the third round that come by message are one; the rest of the block is read then.
    let (reads, misses) = reads_and_misses(&report.per_node[1]);
    assert_eq!((reads, misses), (ROUNDS - 2, 1));
}

/// An owner combines elements, and its interval ends with that: some of a block are clean then that
/// others have read, and some are exclusive.
#[test]
fn a_block_whose_owner_combines_a_part_is_clean_or_written() {
    let run = Config::nodes(2).run(|w| {
        let all = w.once(|w| Ok(w.alloc_array::<u64>(100)))?;
        let me = w.node().index();
        let mut sum = 0;
        for round in 1..=4_u64 {
            if me == 0 {
                for i in [0, 10, 20] {
                    all.slice_mut(w, i..i + 1)[0] += round;
                }
            }
            w.barrier()?;
            if me == 1 {
                assert_eq!(all.slice(w, 0..1), [sum + round]);
            }
            w.barrier()?;
            if me == 0 {
                all.slice_mut(w, 20..21)[0] += round;
            }
            w.barrier()?;
            if me == 1 {
                all.add_all(w, &[10, 20], &[round, round])?;
            }
            w.barrier()?;
            sum += round;
            let found = [0, 10, 20].map(|i| all.slice(w, i..i + 1)[0]);
            assert_eq!(found, [sum, 2 * sum, 3 * sum]);
            w.barrier()?;
            // Each write of what others have read is announced.
            for i in [0, 10, 20] {
                if me == 0 {
                    all.slice_mut(w, i..i + 1)[0] += 100;
                }
                w.barrier()?;
                assert_eq!(all.slice(w, i..i + 1)[0] % 100, found[i / 10] % 100);
                assert!(all.slice(w, i..i + 1)[0] >= 100);
                w.barrier()?;
                if me == 0 {
                    all.slice_mut(w, i..i + 1)[0] -= 100;
                }
                w.barrier()?;
            }
        }
        Ok(())
    });
    assert!(run.unwrap().report.total().one_sided_reads > 0);
}

/// A reader is seen: what it has read is announced when it is written again.
#[test]
fn what_was_read_between_two_writes_is_announced() {
    let run = Config::nodes(2).run(|w| {
        let shared = w.once(|w| Ok(w.alloc_array::<u64>(10)))?;
        for round in 1..=8_u64 {
            if w.node().index() == 0 {
                shared.slice_mut(w, ..)[3] = round;
            }
            w.barrier()?;
            if w.node().index() == 1 {
                assert_eq!(shared.slice(w, 3..4), [round]);
            }
            w.barrier()?;
        }
        Ok(())
    });
    let report = run.unwrap().report;
    assert_eq!(reads_and_misses(&report.per_node[1]), (8, 0));
    assert_eq!(report.per_node[0].write_faults, 8);
}

/// Elements with padding, which refer to objects and to an array.
#[test]
fn elements_that_refer_to_others_are_read_there() {
    #[derive(Share, Clone, Copy)]
    struct Edge {
        to: Ref<u64>,
        first: u8,
        all: Array<u32>,
    }
    let run = Config::nodes(2).run(|w| {
        let edges = w.once(|w| {
            let to = w.alloc_range(200, |i| i as u64);
            let all = w.alloc_array_with(1000, |i| i as u32);
            Ok(w.alloc_array_with(200, |i| Edge {
                to: to.at(i),
                first: i as u8,
                all,
            }))
        })?;
        let mut sum = 0;
        for i in 0..200 {
            let edge = edges.slice(w, i..i + 1)[0];
            sum += edge.to.read(w) + u64::from(edge.first) + u64::from(edge.all.slice(w, i..)[0]);
        }
        assert_eq!(sum, 3 * 199 * 200 / 2);
        w.barrier()?;
        Ok(())
    });
    let report = run.unwrap().report;
    let reader = &report.per_node[1];
    assert_eq!(reader.misses, 0);
    let of_edges = reader
        .by_type
        .iter()
        .find(|(name, _)| name.ends_with("Edge"));
    let edges = of_edges.expect("edges were read").1.one_sided_reads;
    assert_eq!(edges, (200 * size_of::<Edge>()).div_ceil(4096) as u64);
}

#[test]
fn a_prefetch_of_many_ranges_takes_no_message_where_all_is_seen() {
    const LEN: usize = 64 * BLOCK;
    let run = Config::nodes(2).run(|w| {
        let all = w.once(|w| Ok(w.alloc_array_with(LEN, |i| i as u64)))?;
        if w.node().index() == 1 {
            let ranges: Vec<_> = (0..LEN / 16)
                .map(|i| all.range(16 * i..16 * i + 3))
                .collect();
            w.prefetch(&ranges[..])?;
            let indices: Vec<usize> = (0..LEN).step_by(7).collect();
            let gathered = all.gather(w, &indices);
            let same = gathered
                .iter()
                .zip(&indices)
                .all(|(it, i)| *it == *i as u64);
            assert!(same);
        }
        w.barrier()?;
        Ok(())
    });
    let report = run.unwrap().report;
    assert_eq!(reads_and_misses(&report.per_node[1]), (64, 0));
    assert_eq!(fetches(&report), 0);
}

/// What is freed is read no more, and what lies there next is not taken for it.
#[test]
fn a_freed_array_is_not_read() {
    let run = Config::nodes(2).run(|w| {
        for round in 0..20_u64 {
            let all = w.once(move |w| Ok(w.alloc_array_with(3 * BLOCK, |i| i as u64 + round)))?;
            assert_eq!(all.slice(w, 600..601), [600 + round]);
            w.barrier()?;
            if w.node().index() == 0 {
                w.free(all)?;
                assert!(all.try_slice(w, 0..1).is_err());
            }
            w.barrier()?;
            assert!(all.try_slice(w, 700..701).is_err());
            w.barrier()?;
        }
        Ok(())
    });
    run.unwrap();
}

/// An array leaves the protocol under which it is read there, and comes back.
#[test]
fn an_array_that_changes_protocol_is_read_as_its_protocol_says() {
    let run = Config::nodes(3).run(|w| {
        let all = w.once(|w| Ok(w.alloc_array::<u64>(2 * BLOCK)))?;
        let (me, mut value) = (w.node().index(), 0_u64);
        let mut phase = |w: &mut Worker<'_>| {
            for writer in 0..3 {
                value += 1;
                if me == writer {
                    all.slice_mut(w, 100 * writer..BLOCK + 100 * writer)
                        .fill(value);
                }
                w.barrier()?;
                let read = all.slice(w, 100 * writer..BLOCK + 100 * writer);
                assert!(read.iter().all(|it| *it == value), "{me} {value}");
                w.barrier()?;
            }
            dhole::Result::Ok(())
        };
        for to in [
            Coherence::Home,
            Coherence::Lazy,
            Coherence::Update,
            Coherence::Lazy,
        ] {
            phase(w)?;
            w.switch(all, to)?;
        }
        phase(w)
    });
    assert!(run.unwrap().report.total().one_sided_reads > 0);
}

/// Reads of remote memory are round trips of the adapters, and take nothing of the owner.
#[test]
fn a_simulated_network_reads_remote_elements_if_it_can() {
    let ran = |network: &str, one_sided| {
        let settings = Settings {
            network: Description::find(network).unwrap().network,
            ..Settings::fixed_cost(2)
        };
        let config = Config::nodes(2).one_sided(one_sided);
        let run: Run<()> = config
            .simulate(settings, |w| rounds(w, 2 * BLOCK, 3))
            .unwrap();
        let node = &run.report.per_node[1];
        (reads_and_misses(node), fetches(&run.report))
    };
    assert_eq!(ran("infiniband", true), ((6, 0), 0));
    assert_eq!(ran("infiniband", false).0, (0, 3));
    assert_eq!(ran("ethernet-100g", true), ran("ethernet-100g", false));
}
