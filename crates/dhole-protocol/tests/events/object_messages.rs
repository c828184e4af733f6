//! A message of each kind about objects, for their encodings.

use std::sync::Arc;

use dhole_model::{NodeId, NodeMap, ObjectId, VectorTime};
use dhole_protocol::group::{Cast, GroupMessage, Member, Part, State, ViewId, Wants};
use dhole_protocol::objects::chain::{Chain, ChainLink};
use dhole_protocol::objects::{
    Bytes, Call, CallId, ClerkId, ObjectsMessage, Ordered, PackedCalls, PackedResults, Refusal,
    Rendezvous, Start, Strategy, Waiting,
};
use dhole_protocol::{Message, WriteNotices};

use crate::pack::{n, site};

const BY: CallId = CallId {
    node: NodeId(1),
    number: 300,
};
const OBJECT: ObjectId = ObjectId(1 << 40);

fn call(arguments: &[u8]) -> Call {
    Call {
        id: BY,
        object: OBJECT,
        kind: u64::MAX,
        operation: 258,
        writes: true,
        started: false,
        chain: Bytes::default(),
        arguments: arguments.into(),
    }
}

/// The chain of an operation that calls.
fn chain() -> Bytes {
    let chain = Chain::default().then(OBJECT, "Bank::pay".into());
    chain.calling_at(site(6))
}

fn time() -> Option<VectorTime> {
    let mut time = VectorTime::zero(3);
    time.see(n(1), 7);
    Some(time)
}

fn news() -> Option<Arc<WriteNotices>> {
    let news = WriteNotices {
        time: VectorTime::zero(3),
        lamport: 9,
        intervals: vec![],
    };
    Some(Arc::new(news))
}

fn refusals() -> Vec<Refusal> {
    let words = || "so".into();
    vec![
        Refusal::Unknown,
        Refusal::Poisoned {
            operation: words(),
            words: words(),
        },
        Refusal::Malformed(words()),
        Refusal::OtherType(words()),
        Refusal::TooMany(3),
        Refusal::Diverged {
            nodes: words(),
            operation: words(),
        },
        Refusal::Lost(n(1)),
        Refusal::Unanswered(n(1)),
        Refusal::NoNode(n(1)),
        Refusal::Unmade,
        Refusal::Apart(words()),
        Refusal::Freed(n(1)),
        Refusal::WentWith(n(1)),
        Refusal::Panicked(words()),
        Refusal::Failed(words()),
        Refusal::TooManyStarted(4),
        Refusal::TooManyProcesses(5),
        Refusal::Elsewhere,
        Refusal::Withdrawn,
        Refusal::Reentrant {
            chain: [ChainLink {
                object: OBJECT,
                operation: words(),
                calls_at: Some(site(6)),
            }]
            .into(),
        },
        Refusal::Rest {
            kind: 3,
            arguments: [4, 5][..].into(),
        },
    ]
}

fn blocked() -> Vec<Waiting> {
    let waits = |time| Waiting {
        call: call(&[1, 2]),
        time,
    };
    vec![waits(None), waits(time())]
}

fn ordered() -> Vec<Ordered> {
    let (by, object) = (BY, OBJECT);
    let meets = [Rendezvous::Barrier, Rendezvous::Once, Rendezvous::End];
    let meet = |place| Ordered::Meet {
        by,
        place,
        site: site(4),
        value: (place == Rendezvous::Once).then(|| [1, 2].into()),
        news: None,
    };
    let mut all = vec![
        Ordered::Create {
            by,
            object,
            kind: 5,
            state: [1; 30].into(),
        },
        Ordered::Operate {
            call: call(&[3]),
            time: time(),
            news: news(),
        },
        Ordered::Change {
            by,
            object,
            to: Strategy::On(n(2)),
            asks: true,
        },
        Ordered::Withdraw { by, object },
        Ordered::Install {
            object,
            state: Ok((5, [4; 3].into())),
            blocked: blocked(),
            news: None,
        },
        Ordered::Free { by, object },
        Ordered::Compare { by, object },
        Ordered::Placed {
            by,
            object,
            at: n(2),
        },
    ];
    all.extend(meets.map(meet));
    all.push(Ordered::Constructed {
        by,
        object,
        at: n(2),
        comes_back: [9; 5].into(),
    });
    all
}

fn group() -> Vec<GroupMessage<Arc<Ordered>>> {
    let view = ViewId {
        number: 3,
        sequencer: n(1),
    };
    let part = Part {
        origin: n(2),
        serial: 4,
        part: 0,
        parts: 1,
    };
    let body = || {
        Arc::new(Ordered::Free {
            by: BY,
            object: OBJECT,
        })
    };
    let lives: NodeMap<u64> = [(n(0), 1), (n(2), 2)].into_iter().collect();
    let wants = || Wants {
        lost: lives.clone(),
        ..Wants::default()
    };
    let relay = |cast| GroupMessage::Relay {
        view,
        root: n(1),
        link: 8,
        cast,
    };
    let (serial, parts, first, stable, done, attempt) = (5, 2, 6, 7, 8, 9);
    let mut all = vec![
        GroupMessage::Submit {
            view,
            part,
            body: body(),
            done,
        },
        GroupMessage::Ask {
            view,
            serial,
            parts,
            done,
        },
        GroupMessage::Grant {
            view,
            serial,
            first,
            stable,
        },
        GroupMessage::Announce {
            view,
            part,
            body: body(),
            done,
        },
        GroupMessage::Accept {
            view,
            origin: n(2),
            serial,
            parts,
            first,
            stable,
        },
        GroupMessage::Fetch {
            view,
            first,
            last: 20,
            done,
        },
        GroupMessage::Token {
            view,
            round: 1,
            high: 2,
            stable,
        },
        relay(Cast::Data {
            number: 1,
            part,
            body: body(),
            stable,
        }),
        relay(Cast::Announce {
            part,
            body: body(),
            done,
        }),
        relay(Cast::Accept {
            origin: n(2),
            serial,
            parts,
            first,
            stable,
        }),
        GroupMessage::Credit { view, link: 3 },
        GroupMessage::Join { incarnation: 4 },
        GroupMessage::Suspect {
            view,
            wants: wants(),
        },
        GroupMessage::Collect {
            view,
            life: 1,
            attempt,
            wants: wants(),
        },
        GroupMessage::State {
            attempt,
            state: Box::new(State {
                view,
                members: vec![n(0), n(1)],
                electors: vec![n(1)],
                start: 1,
                done,
                held: vec![11, 13],
                wants: wants(),
            }),
        },
        GroupMessage::Gather {
            attempt,
            numbers: vec![1, 2],
        },
        GroupMessage::Gathered {
            attempt,
            number: 1,
            part,
            body: body(),
        },
        GroupMessage::Install {
            attempt,
            view,
            members: vec![Member {
                node: n(1),
                incarnation: 2,
                serial,
            }],
            electors: vec![n(0)],
            end: 30,
        },
        GroupMessage::Installed { view },
        GroupMessage::Active { view },
        GroupMessage::Have {
            view,
            done,
            asks: true,
        },
        GroupMessage::Out {
            view,
            listed: false,
            lives: (1, 2),
        },
    ];
    all.extend(ordered().into_iter().map(|body| GroupMessage::Data {
        view,
        number: 12,
        part,
        body: Arc::new(body),
        stable,
    }));
    all
}

/// Of every kind.
pub fn object_messages() -> Vec<Message> {
    let (mut calls, mut results) = (PackedCalls::default(), PackedResults::default());
    for arguments in [&[][..], &[1; 3], &[2; 70]] {
        calls.push(call(arguments).by_ref());
        results.push(300, arguments);
    }
    let (delivered, object) = (77, OBJECT);
    let mut all = vec![
        ObjectsMessage::Request {
            call: call(&[1; 23]),
            delivered,
            time: time(),
            news: news(),
        },
        ObjectsMessage::Batch {
            calls,
            delivered,
            time: time(),
            news: news(),
        },
        ObjectsMessage::Spawn {
            start: Start {
                by: BY,
                what: 3,
                arguments: [9].into(),
                site: site(5),
                time: None,
                chain: Bytes::default(),
            },
            delivered,
            news: None,
        },
        ObjectsMessage::Reply {
            call: 300,
            outcome: Ok([5; 4].into()),
            delivered,
            news: news(),
        },
        ObjectsMessage::BatchReply {
            results,
            refused: refusals().into_iter().map(|why| (300, why)).collect(),
            blocked: vec![301, 302],
            delivered,
            news: None,
        },
        ObjectsMessage::Elsewhere {
            call: 300,
            at: Strategy::Replicated,
            since: 4,
            delivered,
        },
        ObjectsMessage::Create {
            by: BY,
            object,
            kind: 5,
            state: [6; 25].into(),
        },
        ObjectsMessage::Migrate {
            object,
            since: 3,
            delivered,
            state: Err(Refusal::Unknown),
            blocked: blocked(),
            news: news(),
        },
        ObjectsMessage::Digests {
            call: 5,
            digests: vec![(1, 2, u64::MAX)],
        },
        ObjectsMessage::Blocked {
            call: 300,
            delivered,
        },
        ObjectsMessage::Request {
            call: Call {
                chain: chain(),
                ..call(&[1; 23])
            },
            delivered,
            time: time(),
            news: news(),
        },
        ObjectsMessage::Withdraw {
            by: BY,
            object,
            delivered,
        },
        ObjectsMessage::NotWithdrawn {
            call: 300,
            object,
            delivered,
        },
        ObjectsMessage::CreateIn {
            by: BY,
            object,
            kind: 5,
            state: [6; 25].into(),
            clerk: ClerkId {
                node: n(1),
                number: OBJECT,
                most: 8,
            },
        },
        ObjectsMessage::SpawnInChain {
            start: Start {
                by: BY,
                what: 3,
                arguments: [9].into(),
                site: site(5),
                time: time(),
                chain: Bytes::default(),
            },
            chain: chain(),
            delivered,
            news: news(),
        },
    ];
    all.extend(group().into_iter().map(ObjectsMessage::Group));
    let messages = all.into_iter();
    messages
        .map(|message| Message::Objects(Box::new(message)))
        .collect()
}

/// Ordered writes that go alone, to the sequencer and from there: they have a form of their own.
pub fn writes_alone() -> [Message; 2] {
    let view = ViewId {
        number: 3,
        sequencer: n(1),
    };
    let part = Part {
        origin: BY.node,
        serial: 4,
        part: 0,
        parts: 1,
    };
    let body = || {
        let (call, time, news) = (call(&[3]), time(), news());
        Arc::new(Ordered::Operate { call, time, news })
    };
    let submitted = GroupMessage::Submit {
        view,
        part,
        body: body(),
        done: 8,
    };
    let numbered = GroupMessage::Data {
        view,
        number: 13,
        part,
        body: body(),
        stable: 7,
    };
    [submitted, numbered].map(|message| Message::Objects(Box::new(ObjectsMessage::Group(message))))
}
