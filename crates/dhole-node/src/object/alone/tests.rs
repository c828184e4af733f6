//! Ordered calls past machine and group, beside the same messages taken whole.

use std::panic::Location;
use std::sync::Arc;

use dhole_heap::Cluster;
use dhole_net::{Outbox, PayloadPool, Receiver};
use dhole_protocol::group::{GroupMessage, ViewId};
use dhole_protocol::objects::{Bytes, Call, Host, ObjectsEvent, ObjectsMessage, Ordered, Strategy};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::super::direct::tests::{ADD, COUNTER, Counter, PANICS, TAKE, call, step};
use super::super::kind::{self, Kind, ObjectType};
use super::super::pending::StartedAs;
use super::*;
use crate::node::Node;
use crate::settings::Settings;

const VIEW: ViewId = ViewId {
    number: 1,
    sequencer: NodeId(0),
};

/// A node of some, on which the counter is that all replicate; and what was multicast so far.
struct Here {
    node: Node,
    serials: Vec<u64>,
    number: u64,
}

impl Here {
    fn new(me: u16, nodes: usize, watched: bool) -> Here {
        let cluster = Cluster::new(nodes).unwrap();
        let pool = Arc::new(PayloadPool::default());
        let mut settings = Settings::nodes(nodes);
        settings.watch_objects = watched;
        let node = Node::new(NodeId(me), nodes, &settings, &cluster, &pool);
        let create = Ordered::Create {
            by: call(0, 1, ADD).id,
            object: COUNTER,
            kind: kind::register(Kind::of::<Counter>()),
            state: kind::encode("the counter", &Counter(0)).unwrap(),
        };
        let mut here = Here {
            node,
            serials: vec![0; nodes],
            number: 0,
        };
        if me == 0 {
            let create = ObjectsEvent::Create {
                call: 1,
                object: COUNTER,
                kind: kind::register(Kind::of::<Counter>()),
                state: kind::encode("the counter", &Counter(0)).unwrap(),
                strategy: Strategy::Replicated,
            };
            step(&here.node, |state, step| state.step_objects(create, step)).unwrap();
            (here.number, here.serials[0]) = (1, 1);
        } else {
            let numbered = here.next(0);
            let message = GroupMessage::Data {
                view: VIEW,
                number: numbered.number,
                part: dhole_protocol::group::Part {
                    origin: NodeId(0),
                    serial: numbered.serial,
                    part: 0,
                    parts: 1,
                },
                body: Arc::new(create),
                stable: 0,
            };
            here.takes_whole(0, ObjectsMessage::Group(message));
        }
        here
    }

    /// The next broadcast of a node, as the sequencer would number it.
    fn next(&mut self, origin: u16) -> Numbered {
        let serial = &mut self.serials[usize::from(origin)];
        *serial += 1;
        self.number += 1;
        Numbered {
            view: VIEW,
            number: self.number,
            origin: NodeId(origin),
            serial: *serial - 1,
            stable: 0,
        }
    }

    /// Takes a message as every other is taken.
    fn takes_whole(&self, from: u16, message: ObjectsMessage) {
        step(&self.node, |state, step| {
            let message = Message::Objects(Box::new(message));
            state.take_message(NodeId(from), message, step);
            assert!(state.ended().is_none(), "{:?}", state.ended());
        });
    }

    /// Takes a call that has its number by its bytes, if it does.
    fn takes(&self, from: u16, call: &Call, numbered: &Numbered) -> Option<Wake> {
        let head = ordered::data_head(call.by_ref(), numbered).unwrap();
        let bytes = [&head[..], &call.arguments].concat();
        let (nobody, out) = (
            &mut |_, _: [&[u8]; 2], _| panic!("an answer"),
            &mut Outbox::default(),
        );
        self.node.deliver_bytes(NodeId(from), &bytes, out, nobody)
    }

    /// Takes what another submits by its bytes, if it does: what others are told.
    fn numbers(
        &self,
        from: u16,
        call: &Call,
        serial: u64,
        done: u64,
    ) -> Option<Vec<(NodeId, Message)>> {
        let submitted = Submitted {
            view: VIEW,
            serial,
            done,
        };
        let head = ordered::submit_head(call.by_ref(), &submitted).unwrap();
        let bytes = [&head[..], &call.arguments].concat();
        let mut sent = Vec::new();
        let (out, at_once) = (&mut Outbox::default(), &mut |to, parts: [&[u8]; 2], _| {
            sent.push((to, Message::decode(&parts.concat()).unwrap()));
            true
        });
        let taken = self.node.deliver_bytes(NodeId(from), &bytes, out, at_once);
        assert_eq!(taken.is_some(), !sent.is_empty());
        taken.map(|_| sent)
    }

    /// What can be seen: the counter, the order here, and how much was sent.
    fn seen(&self) -> (Vec<u8>, u64, u64, usize, u64) {
        let counters = self.node.counters();
        step(&self.node, |state, _| {
            let mut host = Hosting {
                copies: &mut state.here.copies,
                protocol: &state.protocol,
            };
            let state_of = match host.save(COUNTER) {
                Ok((_, bytes)) => bytes.to_vec(),
                Err(refusal) => refusal.to_string().into_bytes(),
            };
            let group = &state.here.group;
            let order = (group.delivered(), state.here.machine.delivered());
            (
                state_of,
                order.0,
                order.1,
                group.history(),
                counters.messages,
            )
        })
    }
}

#[test]
fn what_is_taken_at_once_leaves_what_the_whole_message_leaves() {
    let mut at_once = 0;
    for seed in 0..60 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut one, mut other) = (Here::new(1, 3, false), Here::new(1, 3, false));
        let mut late: Option<(Call, Numbered)> = None;
        for number in 2..40 {
            let origin = random.random_range(0..3);
            let which = [ADD, ADD, ADD, TAKE, PANICS][random.random_range(0..5)];
            if origin == 1 || (which == PANICS && number < 30) {
                continue;
            }
            let call = call(origin, number, which);
            let numbered = one.next(origin);
            other.next(origin);
            // Some come behind what comes after them.
            if late.is_none() && random.random_range(0..5) == 0 {
                late = Some((call, numbered));
                continue;
            }
            for (call, numbered) in [Some((call, numbered)), late.take()].into_iter().flatten() {
                let whole = ordered::data(call.by_ref(), &numbered);
                match one.takes(0, &call, &numbered) {
                    Some(_) => at_once += 1,
                    None => one.takes_whole(0, whole.clone()),
                }
                other.takes_whole(0, whole);
            }
            assert_eq!(
                one.seen(),
                other.seen(),
                "seed {seed}, {call:?}",
                call = number
            );
        }
    }
    assert!(at_once > 300, "{at_once}");
}

/// What another submits is numbered at once as the whole message is, in a group of so many.
fn is_numbered_alike(nodes: usize) {
    let mut at_once = 0;
    for seed in 0..60 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (one, other) = (Here::new(0, nodes, false), Here::new(0, nodes, false));
        let mut done = 0;
        let mut serials = vec![0; nodes];
        for number in 1..=40 {
            let origin = random.random_range(1..nodes);
            let from = origin as u16;
            let serial = serials[origin];
            serials[origin] += 1;
            let which = [ADD, ADD, ADD, ADD, TAKE][random.random_range(0..5)];
            let call = call(from, number, which);
            let whole = ObjectsMessage::Group(GroupMessage::Submit {
                view: VIEW,
                part: dhole_protocol::group::Part {
                    origin: NodeId(from),
                    serial,
                    part: 0,
                    parts: 1,
                },
                body: ordered::operate(call.by_ref()),
                done,
            });
            match one.numbers(from, &call, serial, done) {
                Some(sent) => {
                    at_once += 1;
                    let told: Vec<_> = sent.iter().map(|(to, _)| *to).collect();
                    let others = (1..nodes).map(NodeId::at).filter(|to| to.0 != from);
                    assert_eq!(
                        told,
                        [NodeId(from)].into_iter().chain(others).collect::<Vec<_>>()
                    );
                }
                None => one.takes_whole(from, whole.clone()),
            }
            other.takes_whole(from, whole);
            assert_eq!(one.seen(), other.seen(), "seed {seed}");
            done = random.random_range(done..=one.seen().1);
        }
    }
    assert!(at_once > 600, "{at_once}");
}

#[test]
fn what_another_submits_is_numbered_at_once_in_groups_of_2_3_and_8() {
    [2, 3, 8].into_iter().for_each(is_numbered_alike);
}

#[test]
fn what_is_numbered_at_once_is_told_all_others_and_its_originator_first() {
    let here = Here::new(0, 3, false);
    let call = call(2, 9, ADD);
    let numbered = Numbered {
        view: VIEW,
        number: 2,
        origin: NodeId(2),
        serial: 0,
        stable: 0,
    };
    let data = Message::Objects(Box::new(ordered::data(call.by_ref(), &numbered)));
    let told = [2, 1].map(|to| (NodeId(to), data.clone()));
    assert_eq!(here.numbers(2, &call, 0, 1), Some(Vec::from(told)));
    // One message of the machine reaches all.
    let here = Here::new(0, 3, false);
    here.node.multicasts();
    assert_eq!(here.numbers(2, &call, 0, 1), None);
}

#[test]
fn nothing_happens_where_more_comes_of_it() {
    let mut here = Here::new(1, 3, false);
    let numbered = here.next(0);
    let before = here.seen();
    let none = |from, call: &Call, numbered: &Numbered| {
        assert_eq!(
            here.takes(from, call, numbered),
            None,
            "{call:?} {numbered:?}"
        );
        assert_eq!(here.seen(), before);
    };
    let add = call(0, 2, ADD);
    // Its guard is false; it is another's; there is no such object, no such node, number, view.
    none(0, &call(0, 2, TAKE), &numbered);
    none(0, &call(2, 2, ADD), &numbered);
    let object = dhole_model::ObjectId(77);
    none(
        0,
        &Call {
            object,
            ..add.clone()
        },
        &numbered,
    );
    none(1, &add, &numbered);
    none(7, &add, &numbered);
    let at = |number| Numbered { number, ..numbered };
    none(0, &add, &at(numbered.number + 1));
    none(0, &add, &at(numbered.number - 1));
    let stable = numbered.number;
    none(0, &add, &Numbered { stable, ..numbered });
    let serial = numbered.serial + 1;
    none(0, &add, &Numbered { serial, ..numbered });
    let view = ViewId { number: 2, ..VIEW };
    none(0, &add, &Numbered { view, ..numbered });
    let origin = NodeId(7);
    let by = Call {
        id: dhole_protocol::objects::CallId {
            node: origin,
            ..add.id
        },
        ..add.clone()
    };
    none(0, &by, &Numbered { origin, ..numbered });
    assert_eq!(here.takes(0, &add, &numbered), Some(Wake::No));
    // Digests of what it left behind would be kept.
    let mut watched = Here::new(1, 3, true);
    let numbered = watched.next(0);
    assert_eq!(watched.takes(0, &add, &numbered), None);
}

/// The worker of node 1 waits for a call that it has submitted.
fn submits(here: &Here, number: u64, awaits: u64) {
    step(&here.node, |state, _| {
        let bytes = call(1, number, ADD).by_ref().ordered_bytes();
        assert!(state.here.group.broadcasts_alone(bytes).is_some());
        let body = ordered::operate(call(1, number, ADD).by_ref());
        state.here.group.submit_alone(bytes, body);
        state.here.awaited = Some(awaits);
        state.here.submitted = Some(number);
    });
}

#[test]
fn whoever_waits_for_its_own_gets_its_result() {
    let mut here = Here::new(1, 3, false);
    submits(&here, 5, 5);
    let numbered = here.next(1);
    assert_eq!(here.takes(0, &call(1, 5, ADD), &numbered), Some(Wake::Yes));
    step(&here.node, |state, _| {
        assert_eq!(state.here.answered.take(), Some(5));
        assert_eq!(state.here.result, [1]);
        assert_eq!(state.here.group.waiting(), 0);
        assert!(state.here.machine.is_acquire_due());
    });
    // Whoever waits for something else has its result where this one's would be.
    submits(&here, 6, 3);
    let numbered = here.next(1);
    assert_eq!(here.takes(0, &call(1, 6, ADD), &numbered), None);
}

#[test]
fn what_was_started_and_is_waited_for_later_has_its_result_where_it_is_looked_for() {
    let mut here = Here::new(1, 3, false);
    submits(&here, 5, 5);
    step(&here.node, |state, _| {
        let called = StartedAs {
            object: COUNTER,
            operation: &Counter::OPERATIONS[usize::from(ADD)],
            site: Location::caller(),
        };
        state.here.begin(5, called);
        state.here.submitted = None;
    });
    let (numbered, add) = (here.next(1), call(1, 5, ADD));
    assert_eq!(here.takes(0, &add, &numbered), None);
    here.takes_whole(0, ordered::data(add.by_ref(), &numbered));
    step(&here.node, |state, _| {
        assert_eq!(state.here.take_finished(5), Some(Ok(Bytes::from([1]))));
    });
}

#[test]
fn who_waits_until_it_has_come_so_far_goes_on() {
    let mut here = Here::new(1, 3, false);
    let numbered = here.next(0);
    step(&here.node, |state, _| {
        state.woken();
        state.comes_after(numbered.number);
        assert!(!state.may_go_on());
    });
    assert_eq!(here.takes(0, &call(0, 5, ADD), &numbered), Some(Wake::Yes));
}
