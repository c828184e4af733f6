//! `Event::ArriveQuietly`: two nodes at a barrier, of which one that has nothing to tell says just
//! that it is there.

use crate::pack::*;
use dhole_model::{CallSite, MessageKind, Oid, OidRange, PageId, VectorTime};
use dhole_protocol::{
    BarrierId, Command, Event, Here, LockId, LogLimits, Message, PageEvent, Passage, Protocol,
    Races, SemaphoreId, Untold, Waiter, WaitingFor, WorkerIs,
};

/// A quiet arrival at a line of the program.
fn quietly_at(line: u32) -> Event {
    Event::ArriveQuietly { site: site(line) }
}

fn quietly() -> Event {
    quietly_at(2)
}

/// An object that node 1 allocates.
const OTHER: Oid = Oid(700);

/// Two nodes with a copy of [`OBJECT`] and one of [`OTHER`] each.
fn two() -> Pack {
    let mut pack = Pack::with_object(2);
    pack.local(1, allocated(OidRange::one(OTHER)));
    pack.run(1, miss(OBJECT, 0));
    pack.run(0, miss(OTHER, 1));
    forget(&mut pack);
    pack
}

fn forget(pack: &mut Pack) {
    pack.messages();
    pack.done.iter_mut().for_each(Vec::clear);
}

/// Delivers the message at this place in the order of sending.
#[track_caller]
fn deliver(pack: &mut Pack, place: usize) {
    let message = pack.in_flight.remove(place).expect("a message");
    pack.in_flight.push_front(message);
    assert!(pack.deliver_next());
}

/// Whether a node's wait has ended since this was asked last.
fn passed(pack: &mut Pack, node: usize) -> bool {
    let done = std::mem::take(&mut pack.done[node]);
    done.contains(&Command::Done)
}

#[track_caller]
fn kinds(pack: &Pack, kinds: &[MessageKind]) {
    let seen: Vec<_> = pack.in_flight.iter().map(|(.., m)| m.kind()).collect();
    assert_eq!(seen, kinds);
}

/// What node 1 says at a barrier, at a place of this number.
fn here(number: u64, place: u32, site: Option<CallSite>) -> Message {
    Message::BarrierHere(Here {
        number,
        manages: false,
        place,
        site,
    })
}

/// What the manager says there.
fn manager_here(number: u64) -> Message {
    Message::BarrierHere(Here {
        number,
        manages: true,
        place: 0,
        site: None,
    })
}

/// A process of a node writes while the program waits at the barrier.
fn write_meanwhile(pack: &mut Pack, node: usize, oid: Oid) {
    let wait = pack.nodes[node].park().expect("a wait");
    pack.write(node, oid);
    pack.begin(node, Event::EndInterval);
    pack.nodes[node].unpark(wait, true);
}

#[test]
fn two_who_have_nothing_to_tell_say_so_and_go_on() {
    for [first, second] in [[0, 1], [1, 0]] {
        let mut pack = two();
        for _ in 0..3 {
            assert_eq!(pack.run(first, quietly()), []);
            assert_eq!(pack.run(second, quietly()), [Command::Done]);
            assert!(passed(&mut pack, first));
            assert_eq!(pack.messages(), 2, "and no departure");
        }
    }
    let mut pack = two();
    for _ in 0..3 {
        pack.begin(0, quietly());
        pack.begin(1, quietly());
        pack.settle();
        assert!(passed(&mut pack, 0) && passed(&mut pack, 1));
        assert_eq!(pack.messages(), 2);
    }
}

#[test]
fn one_node_and_three_arrive_as_ever() {
    assert_eq!(Pack::new(1).run(0, quietly()), [Command::Done]);
    let mut pack = Pack::new(3);
    (0..3).for_each(|node| drop(pack.begin(node, quietly())));
    kinds(&pack, &[MessageKind::BarrierArrive; 2]);
    assert!(matches!(
        pack.in_flight[0].2,
        Message::BarrierArrive { here: 0, .. }
    ));
    pack.settle();
    assert!((0..3).all(|node| passed(&mut pack, node)));
}

#[test]
fn what_either_has_written_is_told_to_who_has_nothing_to_tell() {
    for (writer, [first, second], messages) in [
        (1, [0, 1], 3),
        (1, [1, 0], 2),
        (0, [0, 1], 2),
        (0, [1, 0], 2),
    ] {
        let mut pack = two();
        for _ in 0..2 {
            pack.write(writer, OBJECT);
            pack.run(first, quietly());
            pack.done[second].clear();
            let mut done = pack.run(second, quietly());
            done.append(&mut pack.done[second]);
            pack.done[second] = done;
            let reader = 1 - writer;
            let heard = pack.done[reader].contains(&Command::Invalidate(OBJECT));
            assert!(heard, "node {writer} writes, node {first} is first");
            assert!(passed(&mut pack, 0) && passed(&mut pack, 1));
            assert_eq!(pack.messages(), messages);
            // What all know now need not be told again.
            pack.run(0, quietly());
            pack.run(1, quietly());
            assert_eq!(pack.messages(), 2);
            let creator = writer;
            pack.run(reader, miss(OBJECT, creator));
            forget(&mut pack);
        }
    }
}

#[test]
fn who_has_learnt_by_a_lock_what_no_barrier_told_arrives_with_it() {
    let mut pack = two();
    pack.local(0, acquire(0));
    pack.write(0, OBJECT);
    pack.local(0, release(0));
    pack.pass(1, 0);
    forget(&mut pack);
    pack.begin(1, quietly());
    assert!(matches!(
        pack.in_flight[0].2,
        Message::BarrierArrive { here: 0, .. }
    ));
    pack.settle();
    assert!(pack.run(0, quietly()).contains(&Command::Done));
    assert!(passed(&mut pack, 1));
    assert_eq!(pack.messages(), 2);
}

/// ```text
/// node 0 is at 0 ---- passes --- is at 1 ------------------------ passes 1
/// node 1 is at 0 ------------------------- hears of 1, of 0, is at 1
/// ```
#[test]
fn the_manager_may_be_heard_at_the_next_barrier_before_it_is_at_this_one() {
    let mut pack = two();
    pack.begin(1, quietly());
    pack.begin(0, quietly());
    deliver(&mut pack, 0);
    assert!(passed(&mut pack, 0));
    pack.begin(0, quietly());
    deliver(&mut pack, 1);
    assert!(!passed(&mut pack, 1), "it said nothing of this barrier yet");
    deliver(&mut pack, 0);
    assert!(passed(&mut pack, 1));
    assert_eq!(pack.begin(1, quietly()), [Command::Done]);
    pack.settle();
    assert!(passed(&mut pack, 0) && !passed(&mut pack, 1));
    // Neither counts for the barrier after.
    assert_eq!(pack.run(1, quietly()), []);
}

/// As above, where the barrier before was left by a departure, which is overtaken as well.
#[test]
fn the_manager_may_be_heard_at_the_next_barrier_before_the_departure_from_this_one() {
    let mut pack = two();
    pack.write(0, OBJECT);
    pack.run(1, quietly());
    pack.begin(0, quietly());
    pack.begin(0, quietly());
    kinds(&pack, &[MessageKind::BarrierDepart; 2]);
    deliver(&mut pack, 1);
    assert!(!passed(&mut pack, 1));
    deliver(&mut pack, 0);
    assert!(pack.done[1].contains(&Command::Invalidate(OBJECT)) && passed(&mut pack, 1));
    assert_eq!(pack.begin(1, quietly()), [Command::Done]);
}

/// Both are at a barrier with nothing to tell, node 1 has gone on, and what it said is on its way.
fn gone_ahead() -> Pack {
    let mut pack = two();
    pack.begin(1, quietly());
    pack.begin(0, quietly());
    deliver(&mut pack, 1);
    assert!(passed(&mut pack, 1) && !passed(&mut pack, 0));
    pack
}

#[test]
fn node_1_may_be_heard_at_the_next_barrier_before_it_is_at_this_one() {
    for (writes, arrival) in [
        (false, quietly()),
        (true, quietly()),
        (true, arrive()),
        (false, arrive()),
        (false, Event::Finish),
        (true, Event::Finish),
    ] {
        let mut pack = gone_ahead();
        if writes {
            pack.write(1, OBJECT);
        }
        pack.begin(1, arrival.clone());
        deliver(&mut pack, 1);
        assert!(passed(&mut pack, 0), "{arrival:?}");
        let before = pack.nodes[0].clone();
        deliver(&mut pack, 0);
        assert!(!passed(&mut pack, 0) && !passed(&mut pack, 1));
        pack.in_flight.clear();
        // It is known from then on, and nothing else has changed.
        assert_eq!(pack.nodes[0].wait(), before.wait());
        let done = pack.run(0, arrival.clone());
        assert!(done.contains(&Command::Done), "{arrival:?}");
        assert_eq!(done.contains(&Command::Invalidate(OBJECT)), writes);
        assert!(passed(&mut pack, 1), "{arrival:?}");
    }
}

/// ```text
/// node 0        is there       (at any moment)
/// node 1 is there, a process ends an interval: two messages, in either order
/// ```
#[test]
fn what_is_told_after_who_told_it_was_there_is_lost_in_no_order() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut pack = two();
        pack.begin(1, quietly());
        write_meanwhile(&mut pack, 1, OBJECT);
        kinds(&pack, &[MessageKind::BarrierArrive; 2]);
        let said = std::mem::take(&mut pack.in_flight);
        for step in order {
            match said.get(step) {
                Some((_, _, message)) => {
                    let done = pack.begin(0, from(1, message.clone()));
                    pack.done[0].extend(done);
                }
                None => {
                    let done = pack.begin(0, quietly());
                    pack.done[0].extend(done);
                }
            }
        }
        pack.settle();
        let told = pack.done[0].contains(&Command::Invalidate(OBJECT));
        let place = |step| order.iter().position(|other| *other == step);
        assert_eq!(
            told,
            place(1) < place(2),
            "if it has come before node 0 is there"
        );
        assert!(passed(&mut pack, 0) && passed(&mut pack, 1), "{order:?}");
        pack.run(1, quietly());
        let done = pack.run(0, quietly());
        let then = done.contains(&Command::Invalidate(OBJECT));
        assert!(told != then, "once, at the next one if not here: {order:?}");
        assert!(passed(&mut pack, 1) && done.contains(&Command::Done));
    }
}

/// As above, where node 0 has learnt of it by other means, before what node 1 said comes.
#[test]
fn what_is_told_after_who_told_it_was_there_may_be_known() {
    let late: [&[usize]; 8] = [
        &[0, 1],
        &[1, 0],
        &[0, 1, 2],
        &[0, 2, 1],
        &[1, 0, 2],
        &[1, 2, 0],
        &[2, 0, 1],
        &[2, 1, 0],
    ];
    for late in late {
        for arrives in 0..=late.len() {
            let mut pack = two();
            pack.begin(1, quietly());
            for object in [OBJECT, OTHER].into_iter().take(late.len() - 1) {
                write_meanwhile(&mut pack, 1, object);
            }
            let said = std::mem::take(&mut pack.in_flight);
            let news = pack.nodes[1].news_for(&VectorTime::zero(2));
            pack.local(0, Event::Learn(news));
            for step in 0..=late.len() {
                if step == arrives {
                    let done = pack.begin(0, quietly());
                    pack.done[0].extend(done);
                }
                if let Some(which) = late.get(step) {
                    let done = pack.begin(0, from(1, said[*which].2.clone()));
                    pack.done[0].extend(done);
                }
            }
            pack.settle();
            assert!(passed(&mut pack, 0), "{late:?} {arrives}");
            assert!(passed(&mut pack, 1), "{late:?} {arrives}");
            pack.barrier();
            assert!(passed(&mut pack, 0) && passed(&mut pack, 1));
        }
    }
}

/// ```text
/// node 0 knows what node 1 wrote, asks for a lock --------------- hears this --- gets the lock
/// node 1                 all have seen all, gives it the lock, is there
/// ```
#[test]
fn who_knows_by_gossip_that_it_has_nothing_to_tell_is_believed() {
    let mut pack = two();
    let limits = LogLimits {
        collect_from: 1,
        ..LogLimits::default()
    };
    for (me, node) in pack.nodes.iter_mut().enumerate() {
        *node = Protocol::with(n(me), 2, limits, Races::Ignore);
    }
    pack.local(0, allocated(OidRange::one(OBJECT)));
    pack.local(1, allocated(OidRange::one(OTHER)));
    pack.run(0, miss(OTHER, 1));
    pack.write(1, OTHER);
    pack.local(1, Event::EndInterval);
    let news = pack.nodes[1].news_for(&VectorTime::zero(2));
    pack.local(0, Event::Learn(news));
    pack.begin(0, acquire(1));
    deliver(&mut pack, 0);
    let known = |node: usize| pack.nodes[node].seen_by_all().of(n(1));
    assert_eq!([known(0), known(1)], [0, 1]);
    pack.begin(1, quietly());
    assert!(matches!(pack.in_flight[1].2, Message::BarrierHere(_)));
    deliver(&mut pack, 1);
    pack.settle();
    assert!(passed(&mut pack, 0), "it has the lock");
    pack.write(0, OBJECT);
    assert!(pack.run(0, quietly()).contains(&Command::Done));
    assert!(passed(&mut pack, 1));
}

/// What node 1 told is counted, in whatever order it comes, so that what it does not tell is
/// missed.
#[test]
fn who_has_said_that_it_was_there_and_does_not_tell_what_it_did_is_named() {
    for late in [[0, 1], [1, 0]] {
        let mut pack = two();
        pack.begin(1, quietly());
        write_meanwhile(&mut pack, 1, OBJECT);
        let said = std::mem::take(&mut pack.in_flight);
        write_meanwhile(&mut pack, 1, OTHER);
        pack.in_flight.clear();
        for which in late {
            pack.begin(0, from(1, said[which].2.clone()));
        }
        let news = pack.nodes[1].news_for(&VectorTime::zero(2));
        pack.local(0, Event::Learn(news));
        assert_eq!(pack.local(0, quietly()), []);
        let (barrier, by, index) = (BarrierId::Program(0), n(0), 2);
        let told = |arrivals| {
            let (of, ended) = (Untold { barrier, by, index }, 2);
            from(
                1,
                Message::Told {
                    of,
                    ended,
                    arrivals,
                },
            )
        };
        assert_eq!(pack.local(0, told(3)), [], "the third is on its way");
        let error = pack.refuse(0, told(2)).to_string();
        assert!(error.contains("not told"), "{error}");
    }
}

#[test]
fn who_has_used_pages_arrives_as_ever() {
    for node in 0..2 {
        let (page, creator) = (PageId(7), None);
        let mut pack = two();
        pack.run(node, Event::Pages(PageEvent::Read { page, creator }));
        forget(&mut pack);
        pack.run(1, quietly());
        pack.run(0, quietly());
        assert!(passed(&mut pack, 1));
        assert_eq!(pack.sent[&MessageKind::BarrierDepart], 1);
        pack.begin(node, quietly());
        let mut said = pack.in_flight.iter().map(|(.., message)| message);
        assert!(!said.any(|message| matches!(message, Message::BarrierHere(_))));
    }
}

#[test]
fn what_the_managers_processes_did_since_it_said_that_it_was_there_is_told_at_the_next_one() {
    for writes_first in [false, true] {
        let mut pack = two();
        pack.begin(0, quietly());
        write_meanwhile(&mut pack, 0, OBJECT);
        if writes_first {
            pack.write(1, OTHER);
        }
        pack.run(1, quietly());
        let told = pack.done[1].contains(&Command::Invalidate(OBJECT));
        assert_eq!(told, writes_first, "there was a departure");
        assert!(pack.nodes.iter().all(|node| node.wait().is_none()));
        forget(&mut pack);
        pack.run(1, quietly());
        pack.run(0, quietly());
        let then = pack.done[1].contains(&Command::Invalidate(OBJECT));
        assert_eq!(then, !writes_first);
        assert!(passed(&mut pack, 1));
    }
}

/// What the manager's process released after the manager said that it was there is not known to
/// all when both go on.
#[test]
fn a_release_after_who_said_that_it_was_there_is_not_forgotten() {
    for manager in 0..2 {
        let (number, permits) = (manager, 0);
        let passage = Passage::Permit(SemaphoreId { number, permits });
        for [first, second] in [[0, 1], [1, 0]] {
            let mut pack = two();
            pack.run(first, quietly());
            write_meanwhile(&mut pack, first, OBJECT);
            let site = site(4);
            pack.run(first, Event::Leave { passage, site });
            // The manager may be told of it when both go on, or later.
            let mut done = pack.run(second, quietly());
            assert!(pack.nodes.iter().all(|node| node.wait().is_none()));
            done.extend(pack.run(second, Event::Enter { passage, site }));
            done.append(&mut pack.done[second]);
            let told = done.contains(&Command::Invalidate(OBJECT));
            assert!(told, "node {first} releases, node {manager} manages");
        }
    }
}

#[test]
fn not_of_two_nodes_it_is_refused() {
    let mut pack = Pack::new(3);
    pack.refuse(1, from(0, manager_here(0)));
    pack.refuse(0, from(1, here(0, 0, None)));
    let before = pack.nodes.clone();
    let said = |manages| Here {
        number: 0,
        manages,
        place: 0,
        site: None,
    };
    assert_eq!(pack.nodes[1].hears_here(n(0), said(true)), None);
    assert_eq!(pack.nodes[0].hears_here(n(1), said(false)), None);
    assert_eq!(pack.nodes, before);
}

#[test]
fn what_nobody_says_there_is_refused() {
    let mut pack = two();
    let bad = [
        (1, 0, here(0, 0, None)),
        (0, 1, manager_here(0)),
        (0, 0, manager_here(0)),
        (1, 1, here(0, 0, None)),
        // Not reached.
        (0, 1, here(2, 0, None)),
        (0, 1, here(u64::MAX, 0, None)),
        (1, 0, manager_here(2)),
        (1, 0, manager_here(u64::MAX)),
    ];
    let refuse_all = |pack: &mut Pack| {
        for (at, by, message) in &bad {
            pack.refuse(*at, from(*by, message.clone()));
        }
    };
    refuse_all(&mut pack);
    pack.refuse(0, from(1, here(1, 0, None)));
    pack.begin(0, quietly());
    pack.begin(1, quietly());
    refuse_all(&mut pack);
    pack.settle();
    // Of a barrier that is over it is of no account.
    assert_eq!(pack.local(0, from(1, here(0, 0, None))), []);
    assert_eq!(pack.local(1, from(0, manager_here(0))), []);
    pack.local(1, from(0, manager_here(1)));
    pack.refuse(1, from(0, manager_here(1)));
    pack.local(1, from(0, manager_here(2)));
    pack.refuse(1, from(0, manager_here(2)));
    pack.local(0, from(1, here(1, 0, None)));
    pack.refuse(0, from(1, here(1, 0, None)));
}

/// Node 1 is at a barrier which the manager does not come to, and so are its words.
#[track_caller]
fn told_apart(pack: &mut Pack, place: &str) {
    pack.run(
        0,
        Event::Arrive {
            once: true,
            site: site(3),
        },
    );
    for node in 0..2 {
        let Some(Command::Deadlock(cycle)) = pack.done[node].last() else {
            panic!("told apart: {:?}", pack.done[node])
        };
        let words = cycle[1].to_string();
        assert!(words.starts_with("node 1 waits at barrier"), "{words}");
        assert!(words.ends_with(place), "{words}");
    }
}

fn both_pass(pack: &mut Pack, line: u32) {
    pack.run(0, quietly());
    assert!(pack.run(1, quietly_at(line)).contains(&Command::Done));
    forget(pack);
}

#[test]
fn a_place_is_told_once_and_known_from_then_on() {
    let mut pack = two();
    told_apart_at(&mut pack, 7);
    for lines in [&[7][..], &[7, 8], &[8, 7, 9]] {
        for line in lines {
            let mut pack = two();
            lines.iter().for_each(|line| both_pass(&mut pack, *line));
            pack.begin(1, quietly_at(*line));
            let Message::BarrierHere(Here { site: None, .. }) = pack.in_flight[0].2 else {
                panic!("told by its number: {:?}", pack.in_flight)
            };
            pack.settle();
            told_apart(&mut pack, &format!("at program.rs:{line}:5"));
        }
    }
    // More than are told by their numbers.
    let mut pack = two();
    (100..200).for_each(|line| both_pass(&mut pack, line));
    for line in [100, 163, 164, 199, 200] {
        let mut copy = two();
        copy.nodes.clone_from(&pack.nodes);
        told_apart_at(&mut copy, line);
    }
}

#[track_caller]
fn told_apart_at(pack: &mut Pack, line: u32) {
    pack.run(1, quietly_at(line));
    told_apart(pack, &format!("at program.rs:{line}:5"));
}

#[test]
fn a_place_that_is_told_late_is_known_from_then_on() {
    for lines in [[7, 7], [7, 8]] {
        let mut pack = two();
        pack.begin(1, quietly_at(lines[0]));
        pack.begin(0, quietly());
        deliver(&mut pack, 1);
        pack.begin(1, quietly_at(lines[1]));
        deliver(&mut pack, 1);
        deliver(&mut pack, 0);
        pack.run(0, quietly());
        forget(&mut pack);
        for line in [lines[1], lines[0], lines[1]] {
            let mut copy = two();
            copy.nodes.clone_from(&pack.nodes);
            told_apart_at(&mut copy, line);
            both_pass(&mut pack, line);
        }
    }
}

/// ```text
/// node 0 has the lock, is there ------------------- (hears that node 1 was there too late)
/// node 1               is there, goes on, waits for the lock
/// ```
#[test]
fn who_has_gone_on_from_a_barrier_is_not_waited_for_there() {
    let mut pack = two();
    pack.run(0, acquire(0));
    pack.begin(1, quietly());
    let (_, _, late) = pack.in_flight.pop_front().expect("that it is there");
    pack.run(0, quietly());
    assert!(passed(&mut pack, 1));
    assert!(!pack.run(1, acquire(0)).contains(&Command::Done));
    forget(&mut pack);
    for node in [0, 1] {
        pack.run(node, Event::WaitedLong);
        assert_eq!(pack.done, [[], []], "no deadlock");
    }
    pack.run(0, from(1, late));
    pack.run(0, release(0));
    assert!(passed(&mut pack, 1));
}

/// As it is said: where node 1 has passed the barrier, a probe for it goes no further.
#[test]
fn a_probe_for_a_barrier_that_this_node_has_passed_is_dropped() {
    let mut pack = two();
    pack.run(0, acquire(0));
    pack.run(0, quietly());
    pack.run(1, quietly());
    pack.run(1, acquire(0));
    let probe = |number| {
        let waiter = Waiter {
            node: n(0),
            waiting_for: WaitingFor::Barrier(BarrierId::Program(number)),
            site: site(2),
            wait: 2,
        };
        let (path, confirms) = (vec![waiter], vec![]);
        let at_manager_of = None;
        from(
            0,
            Message::Probe {
                path,
                confirms,
                at_manager_of,
            },
        )
    };
    pack.local(1, probe(0));
    pack.begin(1, probe(1));
    let Message::Probe { at_manager_of, .. } = &pack.in_flight[0].2 else {
        panic!("a probe");
    };
    let lock = WaitingFor::Lock(LockId(0));
    assert_eq!(at_manager_of.as_deref(), Some(&lock));
}

#[test]
fn a_deadlock_of_a_lock_and_a_barrier_is_told_whoever_is_there_quietly() {
    for [there, wants] in [[0, 1], [1, 0]] {
        let mut pack = two();
        pack.run(there, acquire(0));
        pack.run(there, quietly());
        pack.run(wants, acquire(0));
        for asks in 0..2 {
            let mut copy = two();
            copy.nodes.clone_from(&pack.nodes);
            copy.run(asks, Event::WaitedLong);
            for node in 0..2 {
                let told = matches!(copy.done[node][..], [Command::Deadlock(_)]);
                assert!(told, "node {node}: {:?}", copy.done[node]);
            }
        }
    }
}

/// What the engine does in place of the events, where it can.
fn shortcut(node: &mut Protocol, event: &Event) -> Option<Vec<Command>> {
    match *event {
        Event::ArriveQuietly { site } => {
            let (here, over) = node.arrive_quietly(site)?;
            let to = node.other();
            node.count_objects(to, true);
            let message = Message::BarrierHere(here);
            let said = Command::Send { to, message };
            Some(
                [said]
                    .into_iter()
                    .chain(over.then_some(Command::Done))
                    .collect(),
            )
        }
        Event::Deliver {
            from,
            message: Message::BarrierHere(here),
        } => {
            let goes_on = node.hears_here(from, here)?;
            Some(goes_on.then_some(Command::Done).into_iter().collect())
        }
        _ => None,
    }
}

/// A step, which must be the same by the shortcut. Whether there was one.
fn both_ways(pack: &mut Pack, node: usize, event: Event) -> bool {
    let (mut short, mut whole) = (pack.nodes[node].clone(), pack.nodes[node].clone());
    let before = short.clone();
    let by_shortcut = shortcut(&mut short, &event);
    let done = pack.begin(node, event.clone());
    pack.done[node].extend(done);
    let Some(commands) = by_shortcut else {
        assert_eq!(short, before, "nothing has happened");
        return false;
    };
    let mut out = Vec::new();
    whole
        .step(event, WorkerIs::InCall, &mut out)
        .expect("a sound event");
    assert_eq!(out, commands);
    assert_eq!(short, whole);
    true
}

#[test]
fn the_shortcuts_do_the_same_as_the_events() {
    let mut shortcuts = 0;
    for seed in 0..500_u64 {
        let mut pack = two();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for _ in 0..60 {
            let node = next(2) as usize;
            let waits = pack.nodes[node].wait().is_some();
            match next(8) {
                0..4 if !pack.in_flight.is_empty() => {
                    let place = next(pack.in_flight.len() as u64) as usize;
                    let (from, to, message) = pack.in_flight.remove(place).expect("a message");
                    let event = Event::Deliver { from, message };
                    shortcuts += u32::from(both_ways(&mut pack, to.index(), event));
                }
                4 if waits && next(4) == 0 => {
                    write_meanwhile(&mut pack, node, [OBJECT, OTHER][node]);
                }
                5 if !waits && next(3) == 0 => pack.write(node, [OBJECT, OTHER][node]),
                6 if !waits && next(4) == 0 => {
                    both_ways(&mut pack, node, arrive());
                }
                _ if !waits => shortcuts += u32::from(both_ways(&mut pack, node, quietly())),
                _ => {}
            }
        }
        pack.settle();
    }
    assert!(shortcuts > 5000, "{shortcuts}");
}
