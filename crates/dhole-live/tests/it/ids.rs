//! Object ids between processes: a node that has used up its own asks node 0 for more.

use dhole_live::Processes;
use dhole_model::{MessageKind, NodeId};
use dhole_net::Port;
use dhole_node::{Outcome, Result, Settings, Worker, run_on};

use crate::{alone, pair};

/// Ids with which a node begins.
const FIRST: usize = 4096;

/// What node 0 knows of a run of two processes at its end.
fn run(program: impl for<'id> Fn(&mut Worker<'id>) -> Result<()> + Sync) -> Outcome<()> {
    let _alone = alone();
    let program = &program;
    std::thread::scope(|scope| {
        let nodes = pair().map(|port| {
            let port: Box<dyn Port> = Box::new(port);
            scope.spawn(move || {
                let machine = Processes::new(port, 0).unwrap();
                run_on(&machine, &Settings::nodes(2), program)
            })
        });
        let [zero, one] = nodes.map(|node| node.join().unwrap().unwrap());
        drop(one);
        zero
    })
}

fn asked(outcome: &Outcome<()>) -> [u64; 2] {
    let mut sent = [0, 0];
    for counters in &outcome.counters {
        let of = |kind| counters.by_kind.get(&kind).map_or(0, |kind| kind.messages);
        sent[0] += of(MessageKind::IdsRequest);
        sent[1] += of(MessageKind::IdsReply);
    }
    sent
}

#[test]
fn a_node_that_needs_few_ids_asks_nobody() {
    let outcome = run(|w| {
        let numbers = w.alloc_range(FIRST / 2, |i| i as u64);
        w.free(numbers)?;
        Ok(w.barrier()?)
    });
    assert_eq!(asked(&outcome), [0, 0]);
}

#[test]
fn a_node_that_has_used_its_ids_is_handed_parts_that_grow_and_others_find_what_lies_there() {
    let outcome = run(|w| {
        let slot = w.once(|w| {
            let none = w.alloc_range(1, |_| 0_u64);
            Ok(w.alloc(none))
        })?;
        let mut sum = 0;
        for _ in 0..10 {
            if w.node() == NodeId(1) {
                let numbers = w.alloc_range(FIRST, |i| i as u64);
                *slot.get_mut(w) = numbers;
            }
            w.barrier()?;
            let numbers = slot.read(w);
            sum += numbers.at(FIRST - 1).read(w) + numbers.at(1).read(w);
            w.barrier()?;
            if w.node() == NodeId(0) {
                w.free(numbers)?;
            }
        }
        assert_eq!(sum, 10 * FIRST as u64);
        Ok(())
    });
    assert_eq!(
        asked(&outcome),
        [3, 3],
        "parts of 8,192, 16,384 and 32,768 ids"
    );
}
