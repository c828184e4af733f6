//! What is collected while somebody is stuck in the node, and how much.

use std::sync::Arc;

use dhole_heap::{Cluster, Monitor};
use dhole_model::{Detector, MessageKind, Notify, Oid, Version};
use dhole_net::{Local, PayloadPool, Port, Receiver, SendError};
use dhole_node::Multiprocess;
use dhole_protocol::objects::codec;
use dhole_protocol::{Fetch, FetchReply, Follow, Sent, Short, Wanted};

use super::super::ProcessLimits;
use super::super::frame::Header;
use super::*;

/// A message as node 1 sends it in run 1, and what it counts where it is collected.
fn message() -> (Vec<u8>, usize) {
    let reason = AbortReason::Failed("words".repeat(200).into());
    let node = NodeId(1);
    let mut body = Vec::new();
    Message::Abort { node, reason }.encode(&mut body);
    let header = Header {
        kind: Kind::Message,
        run: 1,
        told: 0,
        message: body.len() as u32,
    };
    let frame = [&header.to_bytes()[..], &body].concat();
    (frame, EACH + body.len())
}

#[test]
fn no_more_is_collected_than_may_be_and_nothing_of_it_is_lost() {
    const WITHIN: usize = 10;
    let (frame, counts) = message();
    let limits = ProcessLimits {
        collected: WITHIN * counts,
        ..ProcessLimits::default()
    };
    let mut ports = Local::cluster(2).unwrap();
    let (peer, port) = (ports.pop().unwrap(), ports.pop().unwrap());
    let machine = Processes::new(Box::new(port), 0).unwrap().limits(limits);
    machine.run.store(1, Ordering::SeqCst);
    machine.inbox.ready.store(true, Ordering::SeqCst);
    let stuck = machine.inbox.try_queue().unwrap();
    // One at a time: what one look brings may exceed the limit.
    let mut sent = 0;
    while sent < 10 * WITHIN {
        peer.send(NodeId(0), &[&frame]).unwrap();
        sent += 1;
        machine.attend();
        let kept = sent.min(WITHIN + 1);
        assert_eq!(machine.inbox.waits.load(Ordering::SeqCst), kept * counts);
        assert_eq!(lock(&machine.inbox.collected).len(), kept);
    }
    // The others find no room.
    while peer.send(NodeId(0), &[&frame]).is_ok() {
        sent += 1;
    }
    let refused = peer.send(NodeId(0), &[&frame]);
    assert_eq!(refused, Err(SendError::Busy { to: NodeId(0) }));
    machine.attend();
    assert_eq!(lock(&machine.inbox.collected).len(), WITHIN + 1);

    drop(stuck);
    let mut out = Outbox::default();
    let delivered = machine.poll(&[], &mut out);
    assert_eq!(delivered, WITHIN + 1, "first what was collected");
    peer.send(NodeId(0), &[&frame]).unwrap_err();
    assert_eq!(machine.poll(&[], &mut out), 2 * (sent - delivered));
    assert!(!machine.inbox.has_collected());
    peer.send(NodeId(0), &[&frame]).unwrap();
}

#[test]
fn bytes_go_where_there_is_room_and_nobody_sends_and_wait_for_nothing() {
    let mut ports = Local::cluster(2).unwrap();
    let (peer, port) = (ports.pop().unwrap(), ports.pop().unwrap());
    let machine = Processes::new(Box::new(port), 0).unwrap();
    let post = |to| machine.post_bytes(NodeId(to), [b"first ", b"second", &[]], Notify::Lazy);
    assert!(post(1));
    let mut came = Vec::new();
    peer.poll(&mut |_, frame| came.push(frame.to_vec()));
    let frame = Frame::parse(&came[0]).unwrap();
    assert_eq!((came.len(), frame.message), (1, &b"first second"[..]));
    assert!(!post(2), "there is no such node");
    let reply = reply_of(0);
    assert!(machine.post_bytes(NodeId(1), [&reply, &[], b"object"], Notify::Lazy));
    peer.poll(&mut |_, frame| came.push(frame.to_vec()));
    let frame = Frame::parse(&came[1]).unwrap();
    assert_eq!((frame.message, frame.payload), (&reply[..], &b"object"[..]));
    let long = [0; 4096];
    assert!(
        !machine.post_bytes(NodeId(1), [&long, &[], &[]], Notify::Lazy),
        "it takes long"
    );
    let channel = lock(&machine.channels[1]);
    assert!(!post(1), "somebody sends there");
    drop(channel);
    let went = (0..).take_while(|_| post(1)).count();
    assert_eq!(peer.poll(&mut |_, _| ()), went);
    assert!(post(1), "there is room again");
    let cluster = Cluster::part(2, NodeId(0), Detector::Check).unwrap();
    // Other tests of this process take ids meanwhile.
    let settled = |_| cluster.settle(Cluster::window_of(cluster.ids_left()), 1);
    assert!((0..1000).map(settled).any(|settled| settled.is_ok()));
    let node = Monitor::new(&cluster, NodeId(0), ());
    lock(&machine.channels[1]).cluster = Some(Arc::clone(&cluster));
    assert!(post(1), "there is nothing to tell");
    node.lock().split().0.alloc(7_u64).unwrap();
    assert!(!post(1), "who gets a reference has to know of what");
}

/// Answers each fetch with one object: at once, or by way of the outbox.
struct Answering;

/// The bytes of that object.
const OBJECT: [u8; 72] = [7; 72];

impl Receiver<Message> for Answering {
    fn deliver(&self, envelope: Envelope<Message>, _: &mut Outbox<Message>) -> Wake {
        panic!("a fetch is short: {:?}", envelope.body);
    }

    fn deliver_bytes(
        &self,
        from: NodeId,
        message: &[u8],
        _: &[u8],
        out: &mut Outbox<Message>,
        at_once: &mut dyn FnMut(NodeId, [&[u8]; 3], Notify) -> bool,
    ) -> Option<Wake> {
        let Some(Short::Fetch(fetch)) = Short::parse(message) else {
            panic!("node 1 fetches");
        };
        let reply = reply_to(fetch.round, 0);
        if !out.is_empty() || !at_once(from, [&reply, &[], &OBJECT], Notify::Lazy) {
            let mut payload = Payload::default();
            payload.extend(&OBJECT);
            out.push(Envelope {
                from: NodeId(0),
                to: from,
                body: Message::decode(&reply).unwrap(),
                payload,
            });
        }
        Some(Wake::No)
    }
}

#[test]
fn objects_that_find_no_room_go_later_in_their_order() {
    let (peer, machine) = of_run_1(ProcessLimits::default());
    machine.inbox.ready.store(true, Ordering::SeqCst);
    let full =
        |bytes: usize| !machine.post_bytes(NodeId(1), [&vec![9; bytes], &[], &[]], Notify::Lazy);
    [1000, 100, 1]
        .into_iter()
        .for_each(|bytes| while !full(bytes) {});
    let (lamport, node) = (0, NodeId(0));
    for round in 1..=3 {
        let mut fetch = Vec::new();
        let (oid, need) = (Oid(64), Version { lamport, node });
        Fetch {
            round,
            wanted: [Wanted { region: oid, need }].into(),
            beside: 0,
            follow: Follow::default(),
        }
        .encode(&mut fetch);
        let fetch = frame(Kind::Message, &fetch, &[]);
        peer.send(NodeId(0), &[&fetch]).unwrap();
    }
    let receivers = [&Answering as &dyn Receiver<Message>];
    let mut out = Outbox::default();
    machine.poll(&receivers, &mut out);
    assert_eq!(out.len(), 3);
    let mut came = Vec::new();
    peer.poll(&mut |_, frame| came.push(frame.to_vec()));
    came.clear();
    machine.post_all(&receivers, &mut out);
    peer.poll(&mut |_, frame| came.push(frame.to_vec()));
    let round = |frame: &Vec<u8>| {
        let frame = Frame::parse(frame).unwrap();
        assert_eq!(frame.payload, OBJECT);
        match Short::parse(frame.message) {
            Some(Short::FetchReply(reply)) => reply.round,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(came.iter().map(round).collect::<Vec<_>>(), [1, 2, 3]);
}

/// A frame of a message and its payload, of run 1.
fn frame(kind: Kind, message: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        run: 1,
        told: 0,
        message: message.len() as u32,
    };
    [&header.to_bytes(), message, payload].concat()
}

fn reply(call: u64, result: &[u8]) -> Vec<u8> {
    let reply = codec::OperationReply {
        call,
        outcome: Ok(result),
        delivered: 0,
        news: None,
    };
    let mut message = Vec::new();
    reply.write_head(&mut message);
    message.extend_from_slice(result);
    frame(Kind::Message, &message, &[])
}

/// Notes what it is given.
#[derive(Default)]
struct Noting(Mutex<Vec<Noted>>);

#[derive(Clone, PartialEq, Debug)]
enum Noted {
    Bytes(Vec<u8>, Vec<u8>),
    Whole(MessageKind, Vec<u8>),
}

impl Receiver<Message> for Noting {
    fn deliver(&self, envelope: Envelope<Message>, _: &mut Outbox<Message>) -> Wake {
        let noted = Noted::Whole(envelope.body.kind(), envelope.payload.to_vec());
        lock(&self.0).push(noted);
        Wake::No
    }

    fn deliver_bytes(
        &self,
        _: NodeId,
        message: &[u8],
        payload: &[u8],
        _: &mut Outbox<Message>,
        _: &mut dyn FnMut(NodeId, [&[u8]; 3], Notify) -> bool,
    ) -> Option<Wake> {
        let takes = |it: Message| it.kind() != MessageKind::Abort;
        if !Message::decode(message).is_ok_and(takes) {
            return None;
        }
        lock(&self.0).push(Noted::Bytes(message.to_vec(), payload.to_vec()));
        Some(Wake::No)
    }
}

/// A reply of one object that `node` wrote.
fn reply_of(node: u16) -> Vec<u8> {
    reply_to(1, node)
}

fn reply_to(round: u32, node: u16) -> Vec<u8> {
    let version = Version {
        lamport: 2,
        node: NodeId(node),
    };
    let (oid, mut reply) = (Oid(64), Vec::new());
    FetchReply {
        round,
        sent: [Sent {
            region: oid,
            version,
        }]
        .into(),
        keep: false,
    }
    .encode(&mut reply);
    reply
}

fn of_run_1(limits: ProcessLimits) -> (Local, Processes) {
    let mut ports = Local::cluster(2).unwrap();
    let (peer, port) = (ports.pop().unwrap(), ports.pop().unwrap());
    let machine = Processes::new(Box::new(port), 0).unwrap().limits(limits);
    machine.run.store(1, Ordering::SeqCst);
    let (cluster, pool) = (Cluster::new(2).unwrap(), Arc::new(PayloadPool::default()));
    machine.open(&cluster, &pool, false);
    (peer, machine)
}

#[test]
fn what_a_look_brings_is_delivered_in_its_order_wherever_it_lies() {
    let single = reply_of(1);
    let long = vec![7; MOST_FIRST];
    let bytes = |frame: &[u8]| Noted::Bytes(frame[16..].to_vec(), Vec::new());
    let (one, two, much) = (reply(1, b"one"), reply(2, b""), reply(3, &long));
    let object = frame(Kind::Message, &single, b"object");
    let brought = [
        (vec![one.clone()], bytes(&one)),
        (vec![two.clone()], bytes(&two)),
        (vec![much.clone()], bytes(&much)),
        (
            vec![object.clone()],
            Noted::Bytes(single.clone(), b"object".to_vec()),
        ),
        (
            vec![message().0],
            Noted::Whole(MessageKind::Abort, Vec::new()),
        ),
        (
            vec![
                frame(Kind::Payload, &[], b"an "),
                frame(Kind::Message, &single, b"object"),
            ],
            Noted::Whole(MessageKind::FetchReply, b"an object".to_vec()),
        ),
        (
            vec![
                frame(Kind::Part, &[], &single[..7]),
                frame(Kind::Part, &[], &single[7..9]),
                frame(Kind::Payload, &[], b"its "),
                frame(Kind::Message, &single[9..], b"parts"),
            ],
            Noted::Whole(MessageKind::FetchReply, b"its parts".to_vec()),
        ),
    ];
    let (peer, machine) = of_run_1(ProcessLimits::default());
    let receiver = Noting::default();
    let receivers = [&receiver as &dyn Receiver<Message>];
    let mut out = Outbox::default();
    machine.inbox.ready.store(true, Ordering::SeqCst);
    let order = |n: usize| [n % 7, n / 7 % 7, n / 49 % 7, n / 343];
    for order in (0..7 * 7 * 7 * 7).map(order) {
        for frame in order.iter().flat_map(|&at| &brought[at].0) {
            peer.send(NodeId(0), &[frame]).unwrap();
        }
        machine.poll(&receivers, &mut out);
        let noted = std::mem::take(&mut *lock(&receiver.0));
        assert_eq!(noted, order.map(|at| brought[at].1.clone()), "{order:?}");
    }
}

#[test]
fn of_a_node_that_sends_no_message_all_is_delivered_before_and_nothing_after_it() {
    let (good, no_message) = (reply(1, b"one"), frame(Kind::Message, &[0xff; 5], &[]));
    let abort = message().0;
    let orders = [
        (vec![&good, &no_message, &good], 1),
        (vec![&no_message, &good], 0),
        (vec![&good, &good, &no_message, &abort], 2),
    ];
    for (order, delivered) in orders {
        let (peer, machine) = of_run_1(ProcessLimits::default());
        machine.inbox.ready.store(true, Ordering::SeqCst);
        lock(&machine.table).clear();
        let receiver = Noting::default();
        let receivers = [&receiver as &dyn Receiver<Message>];
        for frame in order {
            peer.send(NodeId(0), &[frame]).unwrap();
        }
        let mut out = Outbox::default();
        machine.poll(&receivers, &mut out);
        // The run ends for it, and all hear why.
        let (said, ended): (Vec<_>, Vec<_>) = std::mem::take(&mut *lock(&receiver.0))
            .into_iter()
            .partition(|it| matches!(it, Noted::Bytes(..)));
        assert_eq!(said.len(), delivered);
        assert_eq!(ended, [Noted::Whole(MessageKind::Abort, Vec::new())]);
        let told = out.pop().expect("node 1 is told").body;
        let words = format!("{told:?}");
        assert!(words.contains("cut off by node 0, for it sent"), "{words}");
    }
}

#[test]
fn what_is_of_another_run_or_too_long_is_not_taken_as_most_is() {
    let limits = ProcessLimits {
        message: 64,
        ..ProcessLimits::default()
    };
    let of_run = |run: u32| {
        let mut frame = reply(1, b"one");
        frame[4..8].copy_from_slice(&run.to_le_bytes());
        frame
    };
    let most = reply(1, &[0; 64 - 22]);
    let too_long = reply(1, &[0; 65 - 22]);
    let object = reply_of(0);
    let with_payload = frame(Kind::Message, &object, &vec![0; 65 - object.len()]);
    let mut strange = reply(1, b"one");
    strange[8] = 1;
    let cases = [
        (of_run(1), 1, false),
        (of_run(0), 0, false),
        (of_run(2), 0, false),
        (of_run(3), 0, true),
        (most, 1, false),
        (too_long, 0, true),
        (with_payload, 0, true),
        (strange, 0, true),
    ];
    let ready = cases.into_iter().map(|case| (true, case));
    let not_ready = (false, (of_run(1), 0, false));
    for (ready, (frame, taken, cut_off)) in ready.chain([not_ready]) {
        let (peer, machine) = of_run_1(limits);
        machine.inbox.ready.store(ready, Ordering::SeqCst);
        let receiver = Noting::default();
        let receivers = [&receiver as &dyn Receiver<Message>];
        peer.send(NodeId(0), &[&frame]).unwrap();
        machine.poll(&receivers, &mut Outbox::default());
        let bytes = lock(&receiver.0)
            .iter()
            .filter(|it| matches!(it, Noted::Bytes(..)))
            .count();
        let is_cut_off = machine.inbox.peers[1].cut_off.load(Ordering::SeqCst);
        assert_eq!((bytes, is_cut_off), (taken, cut_off), "{:?}", &frame[..16]);
    }
}

#[test]
fn what_came_before_the_node_was_ready_is_delivered_in_its_order_and_none_is_left_behind() {
    let (peer, machine) = of_run_1(ProcessLimits::default());
    lock(&machine.table).clear();
    let receiver = Noting::default();
    let receivers = [&receiver as &dyn Receiver<Message>];
    let of_run = |run: u32, call| {
        let mut frame = reply(call, b"");
        frame[4..8].copy_from_slice(&run.to_le_bytes());
        frame
    };
    let bytes = |call| Noted::Bytes(reply(call, b"")[16..].to_vec(), Vec::new());
    let noted = || std::mem::take(&mut *lock(&receiver.0));
    let mut out = Outbox::default();
    for frame in [of_run(1, 1), of_run(2, 4), of_run(1, 2)] {
        peer.send(NodeId(0), &[&frame]).unwrap();
    }
    machine.poll(&receivers, &mut out);
    assert_eq!(noted(), []);
    machine.take_early(&receivers);
    assert_eq!(noted(), [bytes(1), bytes(2)]);
    // Who has found before that the node is not ready comes to keep its frame only now.
    machine.take(false, NodeId(1), &of_run(1, 3), &mut |message| {
        machine.inbox.put(message.into_queued());
    });
    machine.poll(&receivers, &mut out);
    assert_eq!(noted(), [bytes(3)]);
    let kept = || {
        let early = lock(&machine.inbox.early);
        (early.frames.len(), early.bytes[1])
    };
    assert_eq!(kept(), (1, EACH + of_run(2, 4).len()), "of the next run");
    machine.inbox.clear();
    machine.run.store(2, Ordering::SeqCst);
    machine.take_early(&receivers);
    assert_eq!((noted(), kept()), (vec![bytes(4)], (0, 0)));
}
