//! `Protocol::lies_beside`: what is fetched with a missed object because it lies on its page.

use dhole_model::{Coherence, Oid, OidRange, Version};
use dhole_protocol::{
    Command, Event, Fetch, FetchReply, Follow, MOST_BESIDE, Message, RegionCommand, RegionMessage,
    WorkerIs,
};

use crate::pack::{Pack, acquire, allocated, allocated_under, from, miss, n, release};

const A: Oid = Oid(64);
const B: Oid = Oid(65);
const C: Oid = Oid(66);

/// Nodes 0 and 1 have written objects of node 0 that node 2 had read: `A` and `B` node 0, `C`
/// node 1.
fn written() -> Pack {
    let mut pack = Pack::new(3);
    pack.local(0, allocated(OidRange { first: A, count: 3 }));
    for (node, oids) in [(1, &[C][..]), (2, &[A, B, C])] {
        oids.iter()
            .for_each(|oid| drop(pack.run(node, miss(*oid, 0))));
    }
    pack.write(0, A);
    pack.write(0, B);
    pack.write(1, C);
    pack.barrier();
    pack.done.iter_mut().for_each(Vec::clear);
    pack.messages();
    pack
}

/// Node 2 misses `oid`, with all three on one page.
fn miss_on_page(pack: &mut Pack, oid: Oid) -> Vec<Command> {
    [A, B, C]
        .into_iter()
        .for_each(|beside| pack.nodes[2].lies_beside(beside));
    pack.begin(2, miss(oid, 0))
}

fn installed(commands: &[Command]) -> Vec<Oid> {
    let installed = commands.iter().filter_map(|command| match command {
        Command::Objects(RegionCommand::Install(sent)) => Some(sent.region),
        _ => None,
    });
    installed.collect()
}

#[test]
fn all_invalid_objects_of_the_page_come_in_one_round_one_message_to_each_writer() {
    let mut pack = written();
    miss_on_page(&mut pack, B);
    let asked: Vec<_> = pack
        .in_flight
        .iter()
        .map(|(_, to, message)| match message {
            Message::Fetch(Fetch { wanted, beside, .. }) => {
                let oids: Vec<Oid> = wanted.iter().map(|wanted| wanted.region).collect();
                (*to, oids, *beside)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        asked,
        [(n(0), vec![B, A], 1), (n(1), vec![C], 1)],
        "first what is missed"
    );
    pack.settle();
    assert_eq!(installed(&pack.done[2]), [B, A, C]);
    assert_eq!(pack.messages(), 4);
    assert_eq!(pack.local(2, miss(C, 0)), [Command::Done]);
}

#[test]
fn what_is_being_written_is_left_out_and_nobody_waits_for_it() {
    let mut pack = written();
    pack.write(1, C);
    pack.write(0, A);
    miss_on_page(&mut pack, B);
    while let Some((from_node, to, message)) = pack.in_flight.pop_front() {
        let done = pack
            .step(
                to.index(),
                from(from_node.index(), message),
                WorkerIs::Computing,
            )
            .unwrap();
        assert!(!done.contains(&Command::Deferred));
        pack.done[to.index()].extend(done);
    }
    assert_eq!(installed(&pack.done[2]), [B]);
    assert!(pack.done[2].ends_with(&[Command::Done]));
    miss_on_page(&mut pack, C);
    let (_, to, message) = pack
        .in_flight
        .pop_back()
        .expect("a fetch of what was left out");
    assert_eq!(to, n(1));
    assert_eq!(
        pack.step(1, from(2, message), WorkerIs::Computing),
        Ok(vec![Command::Deferred]),
        "now it is missed"
    );
}

#[test]
fn an_object_that_its_writer_keeps_to_itself_stays_there() {
    let mut pack = Pack::new(2);
    pack.local(0, allocated(OidRange { first: A, count: 2 }));
    pack.run(1, miss(A, 0));
    pack.run(1, miss(B, 0));
    // Nobody asks for B between two of its writes: node 0 keeps it writable.
    for _ in 0..2 {
        pack.write(0, A);
        pack.write(0, B);
        pack.run(0, acquire(1));
        pack.run(0, release(1));
        pack.run(1, acquire(1));
        pack.run(1, release(1));
        pack.run(1, miss(A, 0));
    }
    pack.write(0, A);
    pack.barrier();
    pack.done[1].clear();
    pack.nodes[1].lies_beside(B);
    pack.run(1, miss(A, 0));
    assert_eq!(installed(&pack.done[1]), [A]);
    pack.done[1].clear();
    pack.run(1, miss(B, 0));
    assert_eq!(installed(&pack.done[1]), [B]);
}

#[test]
fn only_what_was_written_elsewhere_under_the_lazy_protocol_is_asked_for() {
    let mut pack = Pack::new(2);
    pack.local(0, allocated(OidRange { first: A, count: 2 }));
    pack.local(0, allocated_under(OidRange::one(C), Coherence::Update));
    pack.run(1, crate::pack::miss_under(C, 0, Coherence::Update));
    [A, C].into_iter().for_each(|oid| pack.write(0, oid));
    pack.barrier();
    pack.messages();
    // B was never here, C is pushed.
    [B, C]
        .into_iter()
        .for_each(|oid| pack.nodes[1].lies_beside(oid));
    pack.done[1].clear();
    pack.run(1, miss(A, 0));
    assert_eq!(installed(&pack.done[1]), [A]);
    assert_eq!(pack.messages(), 2);
    pack.nodes[1].lies_beside(B);
    assert_eq!(
        pack.local(1, miss(A, 0)),
        [Command::Done],
        "nobody is asked"
    );
}

#[test]
fn what_was_freed_is_left_out() {
    let mut pack = written();
    let range = OidRange::one(A);
    pack.local(
        0,
        Event::Free {
            range,
            site: crate::pack::site(4),
        },
    );
    miss_on_page(&mut pack, B);
    pack.settle();
    assert_eq!(installed(&pack.done[2]), [B, C]);
    miss_on_page(&mut pack, A);
    pack.settle();
    assert!(matches!(pack.done[2].last(), Some(Command::Gone(_))));
}

#[test]
fn a_page_of_many_objects_is_asked_for_in_part() {
    let mut pack = Pack::new(2);
    let count = 400;
    pack.local(0, allocated(OidRange { first: A, count }));
    let all = || (0..u64::from(count)).map(|i| A.plus(i));
    all().for_each(|oid| drop(pack.run(1, miss(oid, 0))));
    all().for_each(|oid| pack.write(0, oid));
    pack.barrier();
    pack.done[1].clear();
    all().for_each(|oid| pack.nodes[1].lies_beside(oid));
    pack.run(1, miss(Oid(463), 0));
    assert_eq!(installed(&pack.done[1]).len(), MOST_BESIDE + 1);
}

#[test]
fn replies_that_do_not_answer_are_refused() {
    let mut pack = written();
    miss_on_page(&mut pack, B);
    let Message::Fetch(Fetch { round, .. }) = pack.in_flight[0].2 else {
        panic!("a fetch")
    };
    let sent = |oid, lamport| dhole_protocol::Sent {
        region: oid,
        version: Version {
            lamport,
            node: n(0),
        },
    };
    let reply = |sent: &[dhole_protocol::Sent]| {
        Message::FetchReply(FetchReply {
            round,
            sent: sent.into(),
            keep: false,
        })
    };
    pack.refuse(2, from(0, reply(&[])));
    pack.refuse(2, from(0, reply(&[sent(A, 9)])));
    pack.refuse(2, from(0, reply(&[sent(B, 0)])));
    let Message::Fetch(Fetch { wanted, .. }) = pack.in_flight[0].2.clone() else {
        panic!("a fetch")
    };
    let beside = 3;
    pack.refuse(
        0,
        from(
            2,
            Message::Fetch(Fetch {
                round,
                wanted,
                beside,
                follow: Follow::default(),
            }),
        ),
    );
    let by = None;
    pack.refuse(
        2,
        from(
            0,
            Message::Region(RegionMessage::Gone { round, oid: A, by }),
        ),
    );
    pack.settle();
    assert!(
        pack.done[2].ends_with(&[Command::Done]),
        "the true ones count"
    );
}
