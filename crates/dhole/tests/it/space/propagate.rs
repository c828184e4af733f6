//! `propagate`: who gets what, for how many messages, and what is refused.

use dhole::protocol::NodeId;
use dhole::sim::Settings;
use dhole::{Coherence, Config, MessageKind, Result, Run, Worker};

fn run<R: Send>(
    coherence: Coherence,
    program: impl for<'id> Fn(&mut Worker<'id>) -> Result<R> + Sync,
) -> Run<R> {
    let config = Config::nodes(4).coherence(coherence);
    let ran = config.simulate(Settings::fixed_cost(4), program);
    ran.unwrap_or_else(|error| panic!("{error}"))
}

/// Pushes, fetches, and pushes that were read.
fn sent<R>(run: &Run<R>) -> [u64; 3] {
    let total = run.report.total();
    let [pushes, fetches] = [MessageKind::Update, MessageKind::Fetch].map(|it| total.sent(it));
    [pushes, fetches, total.pushes_read]
}

fn others(w: &Worker<'_>) -> Vec<NodeId> {
    (1..w.nodes()).map(NodeId::at).collect()
}

/// Node 0 writes a row so often, and propagates it after the first time.
fn row(coherence: Coherence, writes: u64, before_the_barrier: bool) -> [u64; 3] {
    let ran = run(coherence, |w| {
        let row = w.once(|w| Ok(w.alloc([0_u64; 100])))?;
        for number in 1..=writes {
            let propagates = w.node() == NodeId(0) && number == 1;
            if w.node() == NodeId(0) {
                row.get_mut(w).fill(number);
            }
            if propagates && before_the_barrier {
                let others = others(w);
                w.propagate(row, &others)?;
            }
            w.barrier()?;
            if propagates && !before_the_barrier {
                let others = others(w);
                w.propagate(row, &others)?;
            }
            w.barrier()?;
            assert_eq!(row.get(w)[99], number);
            w.barrier()?;
        }
        Ok(())
    });
    sent(&ran)
}

#[test]
fn a_row_goes_to_nodes_that_never_read_it_and_they_ask_for_nothing() {
    for before_the_barrier in [true, false] {
        let sends = |protocol, writes| row(protocol, writes, before_the_barrier);
        assert_eq!(sends(Coherence::Lazy, 1), [3, 0, 3]);
        assert_eq!(sends(Coherence::Lazy, 2), [3, 3, 3], "once, and no more");
        // Who has read what was pushed without a fetch is not known to read.
        assert_eq!(sends(Coherence::Update, 2), [3, 3, 3]);
    }
}

#[test]
fn elements_go_to_nodes_that_have_not_met_their_array() {
    let ran = run(Coherence::Lazy, |w| {
        let squares = w.once(|w| Ok(w.alloc_array::<u64>(1_000)))?;
        if w.node() == NodeId(0) {
            let written = squares.slice_mut(w, 100..200);
            written.iter_mut().for_each(|it| *it = 3);
            let others = others(w);
            w.propagate((squares.range(100..200), squares.range(0..0)), &others)?;
        }
        w.barrier()?;
        Ok(squares.slice(w, 100..200).iter().sum::<u64>())
    });
    assert_eq!(ran.value, 300);
    assert_eq!(sent(&ran), [3, 0, 3]);
}

#[test]
fn what_another_node_writes_meanwhile_is_fetched() {
    let ran = run(Coherence::Lazy, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        for writer in [0, 1] {
            if w.node() == NodeId(writer) {
                *number.get_mut(w) += 1;
                if writer == 0 {
                    let others = others(w);
                    w.propagate(number, &others)?;
                }
            }
            w.barrier()?;
        }
        Ok(number.read(w))
    });
    assert_eq!(ran.value, 2);
    // Node 1 takes the push; the others read after node 1 has written.
    assert_eq!(sent(&ran), [3, 3, 1]);
}

#[test]
fn what_may_not_be_propagated_is_refused_by_name() {
    let ran = run(Coherence::Lazy, |w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        let home = w.once(|w| Ok(w.under(Coherence::Home).alloc(0_u64)))?;
        let directory: Coherence = "directory".parse().expect("dhole brings it");
        let array = w.once(|w| Ok(w.under(directory).alloc_array::<u64>(8)))?;
        let to = [NodeId(0), NodeId(3)];
        let refused = [
            w.propagate(number, &to).err(),
            w.propagate(home, &to).err(),
            w.propagate(array, &to).err(),
            w.propagate(number, &[NodeId(4)]).err(),
        ];
        if w.node() == NodeId(0) {
            w.free(number)?;
        }
        w.barrier()?;
        let freed = w.propagate(number, &to).err();
        let all = refused.into_iter().chain([freed]);
        let words = all.map(|it| it.map_or(String::new(), |it| it.to_string()));
        Ok(words.collect::<Vec<_>>())
    });
    // The allocating node is the last writer of what no node has written.
    assert_eq!(ran.value[0], "");
    for (said, wanted) in ran.value[1..].iter().zip([
        "objects and arrays under home are not propagated",
        "objects and arrays under directory are not propagated",
        "propagating to node 4 at",
        "it was freed",
    ]) {
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn a_node_that_did_not_write_last_is_refused() {
    let config = Config::nodes(2);
    let ran = config.run(|w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        if w.node() == NodeId(1) {
            *number.get_mut(w) = 1;
        }
        w.barrier()?;
        let refused = w.propagate(number, &[NodeId(1)]).err();
        w.barrier()?;
        Ok(refused.map_or(String::new(), |it| it.to_string()))
    });
    let said = ran.expect("a sound program").value;
    assert!(said.contains("did not write it last: node 1 did"), "{said}");
    let run = Config::nodes(2).coherence(Coherence::TreadMarks).run(|w| {
        let number = w.once(|w| Ok(w.alloc(0_u64)))?;
        let refused = w.propagate(number, &[NodeId(1)]).unwrap_err();
        Ok(refused.to_string())
    });
    let said = run.expect("a sound program").value;
    assert!(
        said.contains("under treadmarks are not propagated"),
        "{said}"
    );
}
