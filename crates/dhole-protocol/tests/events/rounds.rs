//! Barriers of the program that begin with rounds, where no node is expected to have news.

use crate::collectives::enter;
use crate::pack::*;
use dhole_model::{CallSite, MessageKind, Oid, OidRange, PageId, VectorTime};
use dhole_protocol::{
    BarrierId, BarrierRound, CollectiveKind, Command, Event, LogLimits, Message, PageEvent,
    Protocol, ProtocolError, Races, RegionCommand, SemaphoreId, SyncObject, WorkerIs,
};

/// An object that node 1 allocates.
const OTHER: Oid = Oid(700);

/// An arrival at a line of the program.
fn arrive_at(line: u32) -> Event {
    Event::Arrive {
        once: false,
        site: site(line),
    }
}

/// Nodes that have allocated [`OBJECT`] and [`OTHER`], of a run whose first barriers, so many,
/// begin with rounds.
fn expecting(nodes: usize, first: u32) -> Pack {
    let mut pack = Pack::with_object(nodes);
    pack.local(1, allocated(OidRange::one(OTHER)));
    let all = pack.nodes.iter_mut();
    all.for_each(|node| *node = node.clone().disseminating(first));
    pack
}

/// As above, where all begin so, and nodes 0 and 1 have a copy of each object.
fn rounds(nodes: usize) -> Pack {
    let mut pack = expecting(nodes, u32::MAX);
    pack.run(1, miss(OBJECT, 0));
    pack.run(0, miss(OTHER, 1));
    forget(&mut pack);
    pack
}

fn forget(pack: &mut Pack) {
    pack.messages();
    pack.done.iter_mut().for_each(Vec::clear);
}

/// How many rounds a barrier of so many nodes has.
fn rounds_of(nodes: usize) -> usize {
    (0..).find(|rounds| 1 << rounds >= nodes).expect("some")
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

/// All arrive and pass; how many messages of rounds there were, and how many others.
#[track_caller]
fn counted(pack: &mut Pack) -> [usize; 2] {
    pack.messages();
    let nodes = pack.nodes.len();
    for node in 0..nodes {
        let done = pack.begin(node, arrive());
        pack.done[node].extend(done);
    }
    pack.settle();
    assert!((0..nodes).all(|node| passed(pack, node)));
    let of_rounds = pack.sent.remove(&MessageKind::BarrierRound).unwrap_or(0);
    [of_rounds, pack.messages()]
}

/// Node 0 writes what node 1 has a copy of.
fn write_news(pack: &mut Pack) {
    pack.run(1, miss(OBJECT, 0));
    pack.write(0, OBJECT);
}

fn round(number: u64, round: u8, news: bool) -> Message {
    Message::BarrierRound(BarrierRound {
        number,
        round,
        news,
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

struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn without_news_each_node_sends_one_message_a_round_and_no_more() {
    for nodes in 2..=9 {
        let each = nodes * rounds_of(nodes);
        let mut pack = rounds(nodes);
        for _ in 0..3 {
            assert_eq!(counted(&mut pack), [each, 0], "{nodes} nodes");
        }
        // Where that is not expected, it is known after the first.
        let mut pack = expecting(nodes, 0);
        assert_eq!(counted(&mut pack), [0, 2 * (nodes - 1)], "{nodes} nodes");
        assert_eq!(counted(&mut pack), [each, 0], "{nodes} nodes");
    }
    assert_eq!(Pack::new(1).run(0, arrive()), [Command::Done]);
}

#[test]
fn central_barriers_take_two_messages_for_each_node_but_the_manager() {
    for nodes in 2..=9 {
        let mut pack = Pack::new(nodes);
        for _ in 0..3 {
            assert_eq!(counted(&mut pack), [0, 2 * (nodes - 1)]);
        }
    }
}

#[test]
fn rounds_in_which_a_node_has_news_are_followed_by_a_central_barrier() {
    for nodes in 2..=9 {
        for writer in 0..2 {
            let mut pack = rounds(nodes);
            pack.write(writer, [OBJECT, OTHER][writer]);
            let central = 2 * (nodes - 1);
            assert_eq!(counted(&mut pack), [nodes * rounds_of(nodes), central]);
            // None had no news before, so the next one is central too.
            assert_eq!(counted(&mut pack), [0, central]);
        }
    }
}

#[test]
fn a_program_with_news_at_every_barrier_has_no_rounds() {
    let mut pack = expecting(5, 0);
    for _ in 0..5 {
        write_news(&mut pack);
        assert_eq!(counted(&mut pack), [0, 8]);
    }
}

#[test]
fn so_many_barriers_begin_with_rounds_as_had_no_news_the_last_time() {
    let mut pack = expecting(4, 0);
    let (all_rounds, central) = ([8, 0], [0, 6]);
    let mut seen = Vec::new();
    for turn in 0..4 {
        write_news(&mut pack);
        let with_news = counted(&mut pack);
        let without: Vec<_> = (0..3).map(|_| counted(&mut pack)).collect();
        if turn > 1 {
            assert_eq!(with_news, central);
            assert_eq!(without, [all_rounds; 3]);
        }
        seen.push(with_news);
    }
    assert_eq!(seen[..2], [central, [8, 6]], "the second was not expected");
}

#[test]
fn nobody_passes_before_all_have_come_and_all_pass_then_in_whatever_order() {
    for nodes in 2..=6 {
        for seed in 0..100 {
            let mut pack = rounds(nodes);
            let mut random = Random::new(seed * 7 + nodes as u64);
            let mut arrived = vec![0; nodes];
            let mut over = vec![0; nodes];
            while over.iter().any(|over| *over < 3) {
                let node = random.below(nodes);
                if arrived[node] == over[node] && arrived[node] < 3 && random.below(3) == 0 {
                    let done = pack.begin(node, arrive());
                    pack.done[node].extend(done);
                    arrived[node] += 1;
                } else if !pack.in_flight.is_empty() {
                    let place = random.below(pack.in_flight.len());
                    deliver(&mut pack, place);
                }
                for (node, over) in over.iter_mut().enumerate() {
                    if passed(&mut pack, node) {
                        *over += 1;
                        let come = arrived.iter().filter(|come| **come >= *over).count();
                        assert_eq!(come, nodes, "{nodes} nodes, seed {seed}");
                    }
                }
            }
            assert_eq!(pack.messages(), 3 * nodes * rounds_of(nodes));
        }
    }
}

#[test]
fn news_of_whichever_node_is_heard_by_all_in_whatever_order() {
    for nodes in 2..=5 {
        for seed in 0..60 {
            let mut pack = rounds(nodes);
            let mut random = Random::new(seed * 11 + nodes as u64);
            let (writer, reader) = (random.below(2), 1);
            pack.write(writer, [OBJECT, OTHER][writer]);
            let mut order: Vec<_> = (0..nodes).collect();
            order.sort_by_key(|_| random.below(1000));
            for node in order {
                let done = pack.begin(node, arrive());
                pack.done[node].extend(done);
                for _ in 0..random.below(4) {
                    if !pack.in_flight.is_empty() {
                        let place = random.below(pack.in_flight.len());
                        deliver(&mut pack, place);
                    }
                }
            }
            while !pack.in_flight.is_empty() {
                let place = random.below(pack.in_flight.len());
                deliver(&mut pack, place);
            }
            let told =
                pack.done[reader].contains(&Command::Objects(RegionCommand::Invalidate(OBJECT)));
            assert_eq!(told, writer != reader, "{nodes} nodes, seed {seed}");
            assert!((0..nodes).all(|node| passed(&mut pack, node)));
        }
    }
}

#[test]
fn who_has_learnt_by_a_lock_what_no_barrier_told_has_news() {
    let mut pack = rounds(3);
    pack.local(0, acquire(0));
    pack.write(0, OBJECT);
    pack.local(0, release(0));
    pack.pass(1, 0);
    forget(&mut pack);
    pack.begin(1, arrive());
    let said = pack.in_flight.iter().map(|(.., said)| said);
    let news = |said: &Message| matches!(said, Message::BarrierRound(said) if said.news);
    assert!(said.clone().count() == 1 && said.clone().all(news));
    pack.run(0, arrive());
    pack.run(2, arrive());
    assert!((1..3).all(|node| passed(&mut pack, node)));
    assert_eq!(counted(&mut pack), [0, 4]);
    assert_eq!(counted(&mut pack), [6, 0]);
}

#[test]
fn what_is_known_to_all_by_gossip_is_no_news() {
    let mut pack = rounds(2);
    let limits = LogLimits {
        collect_from: 1,
        ..LogLimits::default()
    };
    for (me, node) in pack.nodes.iter_mut().enumerate() {
        *node = Protocol::with(n(me), 2, limits, Races::Ignore).disseminating(u32::MAX);
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
    pack.settle();
    assert!(passed(&mut pack, 0), "it has the lock");
    assert_eq!(counted(&mut pack), [2, 0]);
    pack.write(0, OBJECT);
    assert_eq!(counted(&mut pack), [2, 2]);
}

#[test]
fn who_has_used_pages_has_news() {
    for node in 0..2 {
        let (page, creator) = (PageId(7), None);
        let mut pack = rounds(2);
        pack.run(node, Event::Pages(PageEvent::Read { page, creator }));
        forget(&mut pack);
        assert_eq!(counted(&mut pack), [2, 2]);
        assert_eq!(counted(&mut pack), [0, 2]);
    }
}

/// What processes of a node do while its program waits in rounds is told at the next barrier, or at
/// this one if another node has news.
#[test]
fn what_is_done_while_the_program_waits_in_rounds_is_told_once() {
    for nodes in 2..=4 {
        for waits in 0..2 {
            for others_write in [false, true] {
                let (mine, others) = ([OBJECT, OTHER][waits], [OTHER, OBJECT][waits]);
                let mut pack = rounds(nodes);
                pack.begin(waits, arrive());
                write_meanwhile(&mut pack, waits, mine);
                if others_write {
                    pack.write(1 - waits, others);
                }
                for node in (0..nodes).filter(|node| *node != waits) {
                    let done = pack.begin(node, arrive());
                    pack.done[node].extend(done);
                }
                pack.settle();
                let told = pack.done[1 - waits]
                    .contains(&Command::Objects(RegionCommand::Invalidate(mine)));
                assert_eq!(told, others_write);
                assert!((0..nodes).all(|node| passed(&mut pack, node)));
                pack.barrier();
                let then = pack.done[1 - waits]
                    .contains(&Command::Objects(RegionCommand::Invalidate(mine)));
                assert_eq!(then, !others_write);
                assert!((0..nodes).all(|node| passed(&mut pack, node)));
            }
        }
    }
}

/// What a process released while its program waited in rounds is not known to all when all go on.
#[test]
fn a_release_while_the_program_waits_in_rounds_is_not_forgotten() {
    for manager in 0..2 {
        let (number, permits) = (manager, 0);
        let sync_object = SyncObject::Permit(SemaphoreId { number, permits });
        for [first, second] in [[0, 1], [1, 0]] {
            let mut pack = rounds(2);
            pack.run(first, arrive());
            write_meanwhile(&mut pack, first, OBJECT);
            let site = site(4);
            pack.run(first, Event::Leave { sync_object, site });
            let mut done = pack.run(second, arrive());
            assert!(pack.nodes.iter().all(|node| node.wait().is_none()));
            done.extend(pack.run(second, Event::Enter { sync_object, site }));
            done.append(&mut pack.done[second]);
            let told = done.contains(&Command::Objects(RegionCommand::Invalidate(OBJECT)));
            assert!(told, "node {first} releases, node {manager} manages");
        }
    }
}

#[test]
fn what_no_sound_node_says_in_a_round_is_refused() {
    // Rounds 0, 1 and 2 come to node 2 from nodes 1, 0 and 3.
    let sound = [(1, 0), (0, 1), (3, 2)];
    let mut pack = rounds(5);
    let refuse = |pack: &mut Pack, by: usize, message: Message, why: &str| {
        let error = pack.refuse(2, from(by, message)).to_string();
        assert!(error.contains(why), "{error}");
    };
    for by in 0..5 {
        for number in 0..4 {
            let said = round(0, number, false);
            if number == 3 {
                refuse(&mut pack, by, said, "so many nodes");
            } else if !sound.contains(&(by, number)) {
                refuse(&mut pack, by, said, "not for it to tell");
            }
        }
    }
    let placed = Message::BarrierRound(BarrierRound {
        number: 0,
        round: 1,
        news: false,
        place: 0,
        site: Some(site(1)),
    });
    refuse(&mut pack, 0, placed, "says none");
    // The next one is not to be reached before this node waits at this one, and no later one ever.
    refuse(&mut pack, 1, round(1, 0, false), "cannot have reached");
    pack.begin(2, arrive());
    refuse(&mut pack, 1, round(2, 0, false), "cannot have reached");
    refuse(
        &mut pack,
        1,
        round(u64::MAX, 0, false),
        "cannot have reached",
    );
    for number in [0, 1] {
        for (by, which) in sound {
            pack.begin(2, from(by, round(number, which, false)));
            if number == 1 || which < 2 {
                refuse(&mut pack, by, round(number, which, false), "twice");
            }
        }
    }
    refuse(&mut pack, 1, round(0, 0, false), "is over");
    // A run without rounds, and one of one node.
    let mut pack = Pack::new(2);
    let error = pack.refuse(1, from(0, round(0, 0, false))).to_string();
    assert!(error.contains("have none"), "{error}");
    Pack::new(1).refuse(0, from(0, round(0, 0, false)));
}

#[test]
fn only_the_manager_lets_nodes_depart() {
    let mut pack = Pack::new(3);
    pack.begin(1, arrive());
    let depart = Message::BarrierDepart {
        barrier: BarrierId::Program(0),
        news: no_news(3),
        collect: false,
        rounds: 0,
    };
    let error = pack.refuse(1, from(2, depart)).to_string();
    assert!(error.contains("does not manage"), "{error}");
}

/// Nodes wait in rounds, and the last one at a barrier to which they do not come: all are told,
/// each with its place.
#[track_caller]
fn told_apart(pack: &mut Pack, lines: &[u32], other: Event) {
    let last = lines.len();
    for (node, line) in lines.iter().enumerate() {
        pack.begin(node, arrive_at(*line));
    }
    pack.run(last, other);
    for node in 0..=last {
        let Some(Command::Deadlock(cycle)) = pack.done[node].last() else {
            panic!("told apart: {:?}", pack.done[node])
        };
        for (node, line) in lines.iter().enumerate() {
            let words = cycle[node].to_string();
            let waits = format!("node {node} waits at barrier");
            let place = format!("at program.rs:{line}:5");
            assert!(
                words.starts_with(&waits) && words.ends_with(&place),
                "{words}"
            );
        }
    }
}

#[test]
fn who_waits_in_rounds_while_another_is_elsewhere_is_told_so() {
    let site = site(9);
    for lines in [&[7][..], &[7, 8], &[7, 8, 9], &[3, 4, 5, 6]] {
        for other in [Event::Arrive { once: true, site }, Event::Finish] {
            let mut pack = rounds(lines.len() + 1);
            told_apart(&mut pack, lines, other.clone());
            let mut pack = rounds(lines.len() + 1);
            counted(&mut pack);
            told_apart(&mut pack, lines, other);
        }
    }
}

#[test]
fn a_collective_that_another_node_meets_with_a_barrier_is_told_with_both_places() {
    for early in [false, true] {
        for lines in [&[7][..], &[7, 8, 7], &[8, 7, 9, 8]] {
            let mut pack = rounds(2);
            for line in lines {
                pack.run(0, arrive_at(*line));
                pack.run(1, arrive_at(*line));
            }
            let last = lines[0];
            let call = enter(CollectiveKind::AllReduce, 5);
            let refused = match early {
                true => {
                    pack.run(0, arrive_at(last));
                    pack.step(1, call, WorkerIs::InCall)
                }
                false => {
                    pack.begin(1, call);
                    pack.in_flight.clear();
                    pack.begin(0, arrive_at(last));
                    let (.., said) = pack.in_flight.pop_front().expect("round 0");
                    pack.step(1, from(0, said), WorkerIs::InCall)
                }
            };
            let Err(error @ ProtocolError::Mismatch(_)) = refused else {
                panic!("{refused:?}");
            };
            let place = format!("node 0 calls a barrier at program.rs:{last}:5");
            assert!(error.to_string().contains(&place), "{error}");
        }
    }
}

#[test]
fn a_place_is_told_once_and_by_its_number_from_then_on() {
    let mut pack = rounds(2);
    let site_of = |pack: &mut Pack, line: u32| -> Option<CallSite> {
        pack.begin(0, arrive_at(line));
        let Message::BarrierRound(said) = pack.in_flight[0].2 else {
            panic!("a round: {:?}", pack.in_flight)
        };
        pack.run(1, arrive_at(1));
        said.site
    };
    for line in 100..164 {
        assert_eq!(site_of(&mut pack, line), Some(site(line)));
        assert_eq!(site_of(&mut pack, line), None);
    }
    // No more are kept.
    assert_eq!(site_of(&mut pack, 164), Some(site(164)));
    assert_eq!(site_of(&mut pack, 164), Some(site(164)));
    assert_eq!(site_of(&mut pack, 163), None);
}

#[test]
fn a_deadlock_of_a_lock_and_a_barrier_in_rounds_is_told_whoever_asks() {
    for nodes in 2..=5 {
        for (there, wants) in [(0, 1), (1, 0), (nodes - 1, 0), (0, nodes - 1)] {
            let mut pack = rounds(nodes);
            pack.run(there, acquire(0));
            for node in (0..nodes).filter(|node| *node != wants) {
                pack.run(node, arrive());
            }
            pack.run(wants, acquire(0));
            for asks in [there, wants] {
                let mut copy = rounds(nodes);
                copy.nodes.clone_from(&pack.nodes);
                copy.run(asks, Event::WaitedLong);
                for node in [there, wants] {
                    let told = matches!(copy.done[node][..], [Command::Deadlock(_)]);
                    assert!(told, "{nodes} nodes, {asks} asks: {:?}", copy.done[node]);
                }
            }
        }
    }
}

/// ```text
/// node 0 has the lock, says that it is there ------------------------- (hears so from node 1)
/// node 1               says that it is there, goes on, waits for the lock
/// ```
#[test]
fn who_has_gone_on_from_rounds_is_not_waited_for_there() {
    let mut pack = rounds(2);
    pack.run(0, acquire(0));
    pack.begin(1, arrive());
    let (_, _, late) = pack.in_flight.pop_front().expect("that it is there");
    pack.run(0, arrive());
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

/// The step by the method that calls effects, for the events that have one.
fn with_effects(node: &mut Protocol, event: &Event) -> Option<Vec<Command>> {
    let mut commands = Vec::new();
    let stepped = match *event {
        Event::Arrive { once: false, site } if node.begins_with_rounds() => {
            node.arrive_at_rounds(site, &mut commands)
        }
        Event::Deliver {
            from,
            message: Message::BarrierRound(said),
        } => node.round(from, said, &mut commands),
        _ => return None,
    };
    stepped.expect("a sound event");
    Some(commands)
}

/// A step, which must be the same by the method with effects. Whether there is one.
fn both_ways(pack: &mut Pack, node: usize, event: Event) -> bool {
    let (mut called, mut whole) = (pack.nodes[node].clone(), pack.nodes[node].clone());
    let before = called.clone();
    let commands = with_effects(&mut called, &event);
    let done = pack.begin(node, event.clone());
    pack.done[node].extend(done);
    let Some(commands) = commands else {
        assert_eq!(called, before, "nothing has happened");
        return false;
    };
    let mut out = Vec::new();
    whole
        .step(event, WorkerIs::InCall, &mut out)
        .expect("a sound event");
    assert_eq!(out, commands);
    assert_eq!(called, whole);
    true
}

#[test]
fn methods_with_effects_do_what_the_events_do() {
    for nodes in [2, 3, 5] {
        let mut called = 0;
        for seed in 0..200_u64 {
            let mut pack = rounds(nodes);
            let mut random = Random::new(seed);
            for _ in 0..40 * nodes {
                let node = random.below(nodes);
                let waits = pack.nodes[node].wait().is_some();
                let own = [OBJECT, OTHER].get(node).copied();
                match (random.below(8), own) {
                    (0..5, _) if !pack.in_flight.is_empty() => {
                        let place = random.below(pack.in_flight.len());
                        let (from, to, message) = pack.in_flight.remove(place).expect("one");
                        let event = Event::Deliver { from, message };
                        called += u32::from(both_ways(&mut pack, to.index(), event));
                    }
                    (5, Some(own)) if waits && random.below(4) == 0 => {
                        write_meanwhile(&mut pack, node, own);
                    }
                    (6, Some(own)) if !waits && random.below(9) == 0 => pack.write(node, own),
                    _ if !waits => called += u32::from(both_ways(&mut pack, node, arrive())),
                    _ => {}
                }
            }
            pack.settle();
        }
        assert!(called > 3000, "{nodes} nodes: {called}");
    }
}
