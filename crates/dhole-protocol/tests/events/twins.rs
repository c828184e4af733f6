//! `Event::Unwritten`: what was written of a page is what differs from its twin.

use dhole_model::{Oid, OidRange};
use dhole_protocol::{Command, Event, RegionCommand, WorkerIs};

use crate::pack::{Pack, acquire, allocated, from, from_pre_image, miss, n, release, site};

const A: Oid = Oid(64);
const B: Oid = Oid(65);

/// Two nodes that compare with twins, the first of which allocated two objects.
fn pack() -> Pack {
    let mut pack = Pack::new(2);
    pack.nodes = pack
        .nodes
        .into_iter()
        .map(|node| node.comparing())
        .collect();
    pack.local(0, allocated(OidRange { first: A, count: 2 }));
    pack
}

/// Node 0 writes `A`, with `B` beside it.
fn fault(pack: &mut Pack) -> Vec<Command> {
    pack.nodes[0].lies_beside(B);
    let (oid, site) = (A, site(3));
    pack.local(0, Event::WriteFault { oid, site })
}

fn writable(oid: Oid) -> Command {
    let pre_image = true;
    Command::Objects(RegionCommand::MakeWritable {
        region: oid,
        pre_image,
    })
}

#[test]
fn a_fault_makes_the_page_writable_and_each_object_gets_a_twin() {
    let mut pack = pack();
    assert_eq!(fault(&mut pack), [writable(A), writable(B)]);
    let twins: Vec<Oid> = pack.nodes[0].twins().collect();
    assert_eq!(twins, [A, B]);
    assert_eq!(fault(&mut pack), [], "both are writable");
}

#[test]
fn only_what_differs_from_its_twin_is_told() {
    let mut pack = pack();
    pack.run(1, miss(A, 0));
    pack.run(1, miss(B, 0));
    fault(&mut pack);
    assert_eq!(
        pack.local(0, Event::Unwritten(vec![B])),
        [Command::Objects(RegionCommand::MakeClean(B))]
    );
    pack.run(0, acquire(1));
    pack.run(0, release(1));
    pack.done[1].clear();
    pack.run(1, acquire(1));
    let lost = pack.done[1].iter();
    let lost =
        lost.filter(|command| matches!(command, Command::Objects(RegionCommand::Invalidate(_))));
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [&Command::Objects(RegionCommand::Invalidate(A))]
    );
}

#[test]
fn an_interval_that_wrote_what_was_there_leaves_no_trace() {
    let mut pack = pack();
    let before = pack.nodes[0].clone();
    fault(&mut pack);
    pack.local(0, Event::Unwritten(vec![A, B]));
    assert_eq!(pack.nodes[0], before);
}

#[test]
fn a_request_is_answered_from_the_twin_meanwhile_and_waits_for_nobody() {
    let mut pack = pack();
    fault(&mut pack);
    pack.begin(1, miss(A, 0));
    let (_, _, message) = pack.in_flight.pop_front().expect("a fetch");
    let mut out = Vec::new();
    let asked = from(1, message);
    pack.nodes[0]
        .step(asked, WorkerIs::Computing, &mut out)
        .unwrap();
    assert_eq!(from_pre_image(&out), Some(true), "to {}", n(1));
}
