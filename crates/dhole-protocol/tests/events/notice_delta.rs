//! Write notices told as the difference against those of an earlier interval.

use dhole_model::{Oid, OidRange};
use dhole_protocol::{LogLimits, Message, Reach, RegionCommand};

use crate::pack::{Pack, acquire, allocated, from, miss, release};

/// A node, two indices and a Lamport time; three counts; whether there is a base, and pages.
const HEAD: u64 = (2 + 2 * 4 + 8) + 3 * 4 + 2;
/// What the first range of a list takes more than the others.
const FIRST_MORE: u64 = 6;

const FIRST: Oid = Oid(64);

/// Three nodes, of which node 0 allocated 40 objects and node 1 has them all.
fn pack(intervals: u32) -> Pack {
    let limits = LogLimits {
        reach: Reach::of(intervals),
        ..LogLimits::default()
    };
    let mut pack = Pack::with_limits(3, limits);
    let all = OidRange {
        first: FIRST,
        count: 40,
    };
    pack.local(0, allocated(all));
    all.iter().for_each(|oid| drop(pack.run(1, miss(oid, 0))));
    pack
}

/// Node 0 writes every other object, but for those left out, and another one.
fn write_half(pack: &mut Pack, left_out: u64, also: u64) {
    let half = (0..20).filter(|i| *i != left_out).map(|i| 2 * i);
    half.chain([also])
        .for_each(|i| pack.write(0, FIRST.plus(i)));
    pack.run(0, acquire(1));
    pack.run(0, release(1));
}

/// What `node` is told when it acquires lock 1: bytes of notices, and how many copies it lost.
fn hear(pack: &mut Pack, node: usize) -> (u64, usize) {
    pack.done[node].clear();
    pack.begin(node, acquire(1));
    let mut bytes = 0;
    while let Some((_, _, message)) = pack.in_flight.front() {
        bytes += message.notice_bytes();
        pack.deliver_next();
    }
    let lost = pack.done[node].iter().filter(|command| {
        matches!(
            command,
            dhole_protocol::Command::Objects(RegionCommand::Invalidate(_))
        )
    });
    let lost = lost.count();
    pack.run(node, release(1));
    (bytes, lost)
}

fn bring_all(pack: &mut Pack, node: usize) {
    (0..40).for_each(|i| drop(pack.run(node, miss(FIRST.plus(i), 0))));
}

#[test]
fn what_is_written_again_is_told_in_few_bytes_and_heard_whole() {
    // A gap and a length of a byte each.
    const RANGE: u64 = 2;
    // The first range of a list takes six bytes more. Two of the objects are neighbours.
    let whole = HEAD + RANGE * 19 + FIRST_MORE;
    let mut bytes = Vec::new();
    for intervals in [0, 4] {
        let mut pack = pack(intervals);
        let mut heard = Vec::new();
        for step in 0..4 {
            write_half(&mut pack, step, 2 * step + 1);
            heard.push(hear(&mut pack, 1));
            bring_all(&mut pack, 1);
        }
        assert!(heard.iter().all(|(_, lost)| *lost == 20));
        bytes.push(heard.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>());
    }
    assert_eq!(bytes[0], [whole; 4]);
    // An index and a count, two objects that are new, and two neighbours not written any more.
    let reduced = HEAD + 8 + RANGE * 3 + 2 * FIRST_MORE;
    assert_eq!(bytes[1], [whole, reduced, reduced, reduced]);
}

#[test]
fn a_node_passes_on_what_it_was_told_as_it_was_told() {
    let mut pack = pack(4);
    write_half(&mut pack, 0, 1);
    write_half(&mut pack, 0, 1);
    let (told, _) = hear(&mut pack, 1);
    let (passed_on, _) = hear(&mut pack, 2);
    let base = HEAD + 2 * 19 + FIRST_MORE;
    assert_eq!(told, base + (HEAD + 8), "the base and nothing new");
    assert_eq!(passed_on, told);
}

#[test]
fn what_is_told_at_a_barrier_is_told_against_what_was_told_before_it() {
    let mut pack = pack(4);
    let told = |pack: &mut Pack| {
        (0..20).for_each(|i| pack.write(0, FIRST.plus(2 * i)));
        pack.begin(1, crate::pack::arrive());
        pack.begin(2, crate::pack::arrive());
        pack.begin(0, crate::pack::arrive());
        let mut bytes = 0;
        while let Some((_, _, message)) = pack.in_flight.front() {
            bytes += message.notice_bytes();
            pack.deliver_next();
        }
        bring_all(pack, 1);
        bytes
    };
    let all = [(); 3].map(|()| told(&mut pack));
    let (whole, reduced) = (2 * (HEAD + 2 * 20 + FIRST_MORE), 2 * (HEAD + 8));
    assert_eq!(all, [whole, reduced, reduced]);
}

#[test]
fn after_a_long_absence_a_node_is_told_against_nothing_that_it_lacks() {
    // Logs are compacted now and then.
    (4..12).for_each(told_after);
}

fn told_after(steps: u64) {
    let limits = LogLimits {
        reach: Reach::of(2),
        compact_from: 60,
        ..LogLimits::default()
    };
    let mut pack = Pack::with_limits(3, limits);
    let all = OidRange {
        first: FIRST,
        count: 40,
    };
    pack.local(0, allocated(all));
    // By turns two sets that share some objects: what the later one wrote again is left out of the
    // earlier one when logs are compacted, and the next is told against that.
    let write = |pack: &mut Pack, step: u64| {
        let sets = [|i: &u64| i.is_multiple_of(2), |i: &u64| i % 4 <= 1];
        let set = (0..40).filter(sets[step as usize % 2]);
        set.for_each(|i| pack.write(0, FIRST.plus(i)));
        pack.run(0, acquire(1));
        pack.run(0, release(1));
    };
    for step in 0..steps {
        write(&mut pack, step);
        hear(&mut pack, 1);
        bring_all(&mut pack, 1);
    }
    hear(&mut pack, 2);
    for step in steps..steps + 4 {
        bring_all(&mut pack, 2);
        write(&mut pack, step);
        assert_eq!(hear(&mut pack, 2).1, 20, "in step {step} after {steps}");
    }
}

#[test]
fn a_difference_against_what_is_not_known_is_refused() {
    let mut pack = pack(4);
    write_half(&mut pack, 0, 1);
    hear(&mut pack, 1);
    write_half(&mut pack, 0, 1);
    pack.begin(1, acquire(1));
    let grant = loop {
        match pack.in_flight.front() {
            Some((_, _, message @ Message::LockGrant { .. })) => break message.clone(),
            Some(_) => drop(pack.deliver_next()),
            None => panic!("no grant"),
        }
    };
    for index in [0, 7] {
        let mut grant = grant.clone();
        let Message::LockGrant { news, .. } = &mut grant else {
            panic!("a grant")
        };
        let interval = std::sync::Arc::make_mut(&mut news.intervals[0]);
        interval.base.as_mut().expect("a difference").index = index;
        pack.refuse(1, from(0, grant));
    }
    pack.settle();
}
