//! What is carried out at once, and that it leaves behind what the recorded effects do.

use std::panic::Location;

use dhole_heap::Cluster;
use dhole_net::{Envelope, Outbox, Payload, PayloadPool, Receiver, Wake};
use dhole_protocol::Message;
use dhole_protocol::group::{Part, ViewId};
use dhole_protocol::objects::{
    Bytes, Call, Host, ObjectsCommand, ObjectsEvent, ObjectsMessage, Strategy,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::super::copies::Hosting;
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

/// A broadcast of one part.
fn part(origin: u16, serial: u64) -> Part {
    Part {
        origin: NodeId(origin),
        serial,
        part: 0,
        parts: 1,
    }
}

fn operate(call: &Call) -> Arc<Ordered> {
    Arc::new(Ordered::Operate {
        call: call.clone(),
        time: None,
        news: None,
    })
}

/// A node of some, on which the counter is that all replicate; and what was multicast so far.
struct Here {
    node: Node,
    serials: Vec<u64>,
    number: u64,
}

type Sent = Vec<(NodeId, GroupMessage<Arc<Ordered>>)>;

impl Here {
    fn new(me: u16, nodes: usize) -> Here {
        let cluster = Cluster::new(nodes).unwrap();
        let pool = Arc::new(PayloadPool::default());
        let node = Node::new(NodeId(me), nodes, &Settings::nodes(nodes), &cluster, &pool);
        let (kind, state) = (
            kind::register(Kind::of::<Counter>()),
            kind::encode("the counter", &Counter(0)).unwrap(),
        );
        let mut here = Here {
            node,
            serials: vec![0; nodes],
            number: 0,
        };
        if me == 0 {
            let create = ObjectsEvent::Create {
                call: 1,
                object: COUNTER,
                kind,
                state,
                strategy: Strategy::Replicated,
            };
            step(&here.node, |state, step| state.step_objects(create, step)).unwrap();
            (here.number, here.serials[0]) = (1, 1);
        } else {
            let create = Arc::new(Ordered::Create {
                by: call(0, 1, ADD).id,
                object: COUNTER,
                kind,
                state,
            });
            let data = here.data(0, create);
            let _said = here.takes(0, data, false, true);
        }
        here
    }

    /// The next broadcast of a node, as the sequencer numbers it.
    fn data(&mut self, origin: u16, body: Arc<Ordered>) -> GroupMessage<Arc<Ordered>> {
        let serial = self.serials[usize::from(origin)];
        self.serials[usize::from(origin)] += 1;
        self.number += 1;
        GroupMessage::Data {
            view: VIEW,
            number: self.number,
            part: part(origin, serial),
            body,
            stable: 0,
        }
    }

    /// What a node submits next.
    fn submit(&mut self, call: &Call, done: u64) -> GroupMessage<Arc<Ordered>> {
        let origin = call.id.node;
        let serial = self.serials[origin.index()];
        self.serials[origin.index()] += 1;
        GroupMessage::Submit {
            view: VIEW,
            part: part(origin.0, serial),
            body: operate(call),
            done,
        }
    }

    /// Takes a message by its bytes, or whole: what goes at once, and what is queued.
    fn takes(
        &self,
        from: u16,
        message: GroupMessage<Arc<Ordered>>,
        waits: bool,
        whole: bool,
    ) -> (Wake, [Sent; 2]) {
        let (mut out, mut sent) = (Outbox::default(), Vec::new());
        let wake = if whole {
            let message = ObjectsMessage::Group(message);
            let envelope = Envelope {
                from: NodeId(from),
                to: self.node.id,
                body: Message::Objects(Box::new(message)),
                payload: Payload::NONE,
            };
            Receiver::deliver(&self.node, envelope, &mut out)
        } else {
            let mut bytes = Vec::new();
            let arguments = ordered_codec::write_head(&message, waits, &mut bytes).unwrap();
            bytes.extend_from_slice(arguments);
            let at_once = &mut |to, parts: [&[u8]; 3], notify| {
                assert_eq!(notify, Notify::Lazy);
                sent.push((to, told(Message::decode(&parts.concat()).unwrap())));
                true
            };
            let taken = self
                .node
                .deliver_bytes(NodeId(from), &bytes, &[], &mut out, at_once);
            taken.expect("it is one of these")
        };
        (wake, [sent, queued(&mut out)])
    }

    /// What can be seen: the counter, the order here, and how much was sent.
    fn seen(&self) -> (Vec<u8>, u64, u64, usize, u64, u64) {
        let counters = self.node.counters();
        step(&self.node, |state, step| {
            let mut host = Hosting {
                copies: &mut state.here.copies,
                protocol: &mut state.protocol,
                heap: step.heap,
                sections: &mut state.here.sections,
            };
            let state_of = match host.save(COUNTER) {
                Ok((_, bytes)) => bytes.to_vec(),
                Err(refusal) => refusal.to_string().into_bytes(),
            };
            let group = &state.here.group;
            (
                state_of,
                group.delivered(),
                state.here.machine.delivered(),
                group.history(),
                counters.messages,
                counters.data_bytes,
            )
        })
    }
}

fn told(message: Message) -> GroupMessage<Arc<Ordered>> {
    match message {
        Message::Objects(message) => match *message {
            ObjectsMessage::Group(message) => message,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn queued(out: &mut Outbox<Message>) -> Sent {
    let all = std::iter::from_fn(|| out.pop());
    // A run that ends is told all.
    let all = all.filter(|sent| !matches!(sent.body, Message::Abort { .. }));
    all.map(|sent| (sent.to, told(sent.body))).collect()
}

#[test]
fn what_comes_by_its_bytes_leaves_what_the_whole_message_leaves() {
    for seed in 0..60 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut one, mut other) = (Here::new(1, 3), Here::new(1, 3));
        let mut late = None;
        for number in 2..40 {
            let origin = [0, 2][random.random_range(0..2)];
            let which = [ADD, ADD, ADD, TAKE, PANICS][random.random_range(0..5)];
            if which == PANICS && number < 30 {
                continue;
            }
            let data = one.data(origin, operate(&call(origin, number, which)));
            // Some come behind what comes after them.
            if late.is_none() && random.random_range(0..5) == 0 {
                late = Some(data);
                continue;
            }
            for data in [Some(data), late.take()].into_iter().flatten() {
                let [by_bytes, whole] = [
                    one.takes(0, data.clone(), false, false),
                    other.takes(0, data, false, true),
                ];
                assert_eq!(by_bytes, whole, "seed {seed}");
            }
            assert_eq!(one.seen(), other.seen(), "seed {seed}");
        }
        other.number = one.number;
    }
}

/// What others submit in a group of so many is numbered and sent by its bytes as it is whole.
fn is_numbered_alike(nodes: usize) {
    let mut at_once = 0;
    for seed in 0..40 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut one, other) = (Here::new(0, nodes), Here::new(0, nodes));
        let mut done = 0;
        for number in 1..=40 {
            let origin = random.random_range(1..nodes) as u16;
            let which = [ADD, ADD, ADD, ADD, TAKE][random.random_range(0..5)];
            let submit = one.submit(&call(origin, number, which), done);
            let (_, [sent, mut all]) = one.takes(origin, submit.clone(), true, false);
            at_once += u64::from(sent.len() == nodes - 1);
            all.extend(sent);
            let (_, [_, mut whole]) = other.takes(origin, submit, true, true);
            all.sort_by_key(|(to, _)| *to);
            whole.sort_by_key(|(to, _)| *to);
            assert_eq!(all, whole, "seed {seed}");
            assert_eq!(one.seen(), other.seen(), "seed {seed}");
            done = random.random_range(done..=one.seen().1);
        }
    }
    assert_eq!(at_once, 40 * 40, "nothing else is under way");
}

#[test]
fn what_others_submit_is_numbered_and_sent_at_once_in_groups_of_2_3_and_8() {
    [2, 3, 8].into_iter().for_each(is_numbered_alike);
}

#[test]
fn the_originator_is_told_first_and_is_woken_where_it_does_not_wait() {
    let mut here = Here::new(0, 3);
    let first = here.submit(&call(2, 9, ADD), 1);
    let (_, [sent, queued]) = here.takes(2, first, true, false);
    let to = |sent: &Sent| sent.iter().map(|(to, _)| to.0).collect::<Vec<_>>();
    assert_eq!((to(&sent), to(&queued)), (vec![2, 1], vec![]));
    let second = here.submit(&call(2, 10, ADD), 2);
    let (_, [sent, queued]) = here.takes(2, second, false, false);
    // What is recorded for one goes before what comes after it for others.
    assert_eq!((to(&sent), to(&queued)), (vec![1], vec![2]));
}

#[test]
fn where_one_message_reaches_all_it_is_not_sent_to_each() {
    let mut here = Here::new(0, 3);
    here.node.multicasts();
    let submit = here.submit(&call(2, 9, ADD), 1);
    let (_, [sent, queued]) = here.takes(2, submit, true, false);
    assert_eq!((sent.len(), queued.len()), (0, 2));
}

/// The worker of node 1 calls an operation that is multicast, and waits for a call.
fn calls(here: &Here, number: u64, awaits: u64) -> [Sent; 2] {
    let (mut out, mut sent) = (Outbox::default(), Vec::new());
    let mut guard = here.node.monitor.lock();
    let (mut heap, state) = guard.split();
    let at_once = &mut |to, parts: [&[u8]; 3], notify| {
        assert_eq!(notify, Notify::Now, "its worker waits for what comes of it");
        sent.push((to, told(Message::decode(&parts.concat()).unwrap())));
        true
    };
    let mut step = Step {
        from: here.node.id,
        heap: &mut heap,
        pool: &here.node.pool,
        out: &mut out,
        payload: &[],
        at_once: Some(at_once),
    };
    state.here.awaited = Some(awaits);
    let call = call(here.node.id.0, number, ADD);
    let invoke = ObjectsEvent::Invoke(call);
    state.step_objects(invoke, &mut step).unwrap();
    drop(guard);
    [sent, queued(&mut out)]
}

#[test]
fn whoever_waits_for_its_own_submits_it_at_once_and_gets_its_result() {
    let mut here = Here::new(1, 3);
    let [sent, queued] = calls(&here, 5, 5);
    assert!(matches!(
        &sent[..],
        [(NodeId(0), GroupMessage::Submit { .. })]
    ));
    assert_eq!(queued, []);
    let data = here.data(1, operate(&call(1, 5, ADD)));
    assert_eq!(here.takes(0, data, false, false).0, Wake::Yes);
    step(&here.node, |state, _| {
        assert!(state.here.takes_answer(5));
        assert_eq!(state.here.result, [1]);
        assert_eq!(state.here.group.waiting(), 0);
        assert!(state.here.machine.is_acquire_due());
    });
    // Whoever waits for something else has its result where this one's would be.
    let [sent, queued] = calls(&here, 6, 3);
    assert_eq!((sent.len(), queued.len()), (0, 1));
    let data = here.data(1, operate(&call(1, 6, ADD)));
    let _said = here.takes(0, data, false, false);
    step(&here.node, |state, _| {
        assert!(!state.here.takes_answer(6));
        assert_eq!(state.here.take_finished(6), Some(Ok(Bytes::from([2]))));
    });
}

#[test]
fn what_was_started_and_is_waited_for_later_has_its_result_where_it_is_looked_for() {
    let mut here = Here::new(1, 3);
    calls(&here, 5, 5);
    step(&here.node, |state, _| {
        let called = StartedAs {
            object: COUNTER,
            operation: &Counter::OPERATIONS[usize::from(ADD)],
            site: Location::caller(),
        };
        state.here.begin(5, called);
    });
    let data = here.data(1, operate(&call(1, 5, ADD)));
    let _said = here.takes(0, data, false, false);
    step(&here.node, |state, _| {
        assert!(!state.here.takes_answer(5));
        assert_eq!(state.here.take_finished(5), Some(Ok(Bytes::from([1]))));
    });
}

#[test]
fn who_waits_until_it_has_come_so_far_goes_on() {
    let mut here = Here::new(1, 3);
    let data = here.data(0, operate(&call(0, 5, ADD)));
    step(&here.node, |state, _| {
        state.woken();
        state.comes_after(here.number);
        assert!(!state.may_go_on());
    });
    assert_eq!(here.takes(0, data, false, false).0, Wake::Yes);
}

#[test]
fn a_write_goes_behind_what_is_queued_or_recorded_before_it() {
    for recorded in ["by nobody", "by the group", "by the objects"] {
        let mut here = Here::new(1, 3);
        let before = here.submit(&call(2, 1, ADD), 0);
        let mut out = Outbox::default();
        let mut guard = here.node.monitor.lock();
        let (mut heap, state) = guard.split();
        let to = NodeId(0);
        let message = before.clone();
        match recorded {
            "by the group" => {
                let command = GroupCommand::Send { to, message };
                state.here.group_commands.push(command);
            }
            "by the objects" => {
                let message = ObjectsMessage::Group(message);
                let command = ObjectsCommand::Send { to, message };
                state.here.commands.push(command);
            }
            _ => out.push(Envelope {
                from: here.node.id,
                to,
                body: Message::Objects(Box::new(ObjectsMessage::Group(message))),
                payload: Payload::NONE,
            }),
        }
        let mut step = Step {
            from: here.node.id,
            heap: &mut heap,
            pool: &here.node.pool,
            out: &mut out,
            payload: &[],
            at_once: Some(&mut |_, _, _| panic!("sent before it, {recorded}")),
        };
        state.here.awaited = Some(7);
        let invoke = ObjectsEvent::Invoke(call(1, 7, ADD));
        state.step_objects(invoke, &mut step).unwrap();
        drop(guard);
        let [(first, is_before), (second, submitted)] = &queued(&mut out)[..] else {
            panic!("two are queued, {recorded}");
        };
        assert_eq!(
            (first, second, is_before),
            (&to, &to, &before),
            "{recorded}"
        );
        let own = matches!(submitted, GroupMessage::Submit { part, .. } if part.origin.0 == 1);
        assert!(own, "{recorded}: {submitted:?}");
    }
}

#[test]
fn what_is_delivered_goes_behind_what_is_recorded_before_it() {
    let mut here = Here::new(1, 3);
    let before = GroupCommand::Deliver {
        sequence: here.number,
        from: NodeId(0),
        body: operate(&call(0, 4, ADD)),
    };
    let body = operate(&call(0, 5, ADD));
    let data = here.data(0, Arc::clone(&body));
    let delivered = GroupCommand::Deliver {
        sequence: here.number,
        from: NodeId(0),
        body,
    };
    step(&here.node, |state, step| {
        state.here.group_commands.push(before.clone());
        let event = GroupEvent::Message {
            from: NodeId(0),
            message: data,
        };
        let stepped = state.objects_directly(step, |_, _, fx| {
            fx.step_group(event, false).unwrap();
            assert!(fx.delivered.is_empty());
            assert_eq!(*fx.group_commands, [before, delivered]);
            Ok(())
        });
        stepped.unwrap();
    });
}

#[test]
fn a_write_in_another_nodes_name_breaks_the_run() {
    let mut here = Here::new(0, 3);
    let submit = here.submit(&call(2, 9, ADD), 1);
    let _said = here.takes(1, submit, true, false);
    assert!(step(&here.node, |state, _| state.ended().is_some()));
}
