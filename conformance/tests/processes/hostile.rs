//! A malicious peer over every port. A node refuses its messages about pages in a run over objects,
//! and its write notices of objects that cannot exist. It does so before it does or keeps anything
//! for them, and the run ends on every node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conformance::ports::{self, Make};
use conformance::run_processes;
use dhole::NodeId;
use dhole_live::Processes;
use dhole_model::{Elements, Notify, Oid, OidRange, PageId, PageRange, VectorTime, Version};
use dhole_net::{Layer, Port, SendError};
use dhole_node::{Machine, Settings};
use dhole_protocol::{
    Attached, BarrierId, BarrierRound, DiffId, Fetch, Follow, FollowedReferences, Interval,
    MOST_ALONG, Message, Pushed, RegionMessage, Sent, SentDiff, Wanted, WantedDiffs, WriteNotices,
    WrittenPages,
};

const NODES: usize = 3;

/// Every kind of port, and which node of its clusters is malicious.
const PORTS: [(&str, Make, usize); 8] = [
    ("in process", ports::local, 1),
    ("shm", ports::shm, 1),
    ("watched shm", ports::watched, 1),
    ("tcp", ports::tcp, 1),
    ("udp", ports::udp, 1),
    ("lossy udp", ports::lossy_udp, 1),
    ("mixed, over shm", ports::mixed, 1),
    ("mixed, over tcp", ports::mixed, 2),
];

/// A port that sends frames of its own to node 0 before the next one that it is given, once it is
/// told to.
pub struct Malicious {
    pub port: Box<dyn Port>,
    pub frames: Vec<Vec<u8>>,
    pub now: Arc<AtomicBool>,
}

impl Malicious {
    fn lie(&self) {
        if !self.now.swap(false, Ordering::SeqCst) {
            return;
        }
        for frame in &self.frames {
            while let Err(SendError::Busy { .. }) = self.inner().send(NodeId(0), &[frame]) {
                std::thread::yield_now();
            }
        }
    }
}

impl Layer for Malicious {
    type Inner = dyn Port;

    fn inner(&self) -> &Self::Inner {
        &*self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        self.lie();
        self.inner().send_with(to, parts, notify)
    }
}

/// A frame of the first run that brings a message and `payload`.
pub fn frame(message: &Message, payload: usize) -> Vec<u8> {
    let mut body = Vec::new();
    message.encode(&mut body);
    let length = u32::try_from(body.len()).expect("a short one");
    let mut frame = vec![1, 0, 0, 0];
    for number in [1, 0, length] {
        frame.extend(number.to_le_bytes());
    }
    frame.extend(body);
    frame.resize(frame.len() + payload, 7);
    frame
}

/// Everything that a peer can say about pages.
fn about_pages(malicious: usize) -> Vec<(&'static str, Vec<u8>)> {
    let (round, page, node) = (1, PageId(16), NodeId::at(malicious));
    let request = |page| frame(&Message::PageRequest { round, page }, 0);
    let reply = Message::PageReply {
        round,
        page,
        applied: [(node, 1)].into_iter().collect(),
    };
    let wanted = WantedDiffs {
        node: NodeId(0),
        after: 0,
        up_to: 1,
    };
    let wants = Message::DiffRequest {
        round,
        page,
        wanted: [wanted].into_iter().collect(),
    };
    let index = 1;
    let sent = SentDiff {
        id: DiffId { page, node, index },
        lamport: 1,
        bytes: 8,
    };
    let diffs = Message::DiffReply {
        round,
        page,
        got: [WantedDiffs { node, ..wanted }].into_iter().collect(),
        diffs: [sent].into_iter().collect(),
    };
    vec![
        ("a question for a page", request(page)),
        ("for the last page", request(PageId(u64::from(u32::MAX)))),
        ("for a page beyond all", request(PageId(u64::MAX))),
        ("a page", frame(&reply, 4096)),
        ("a question for diffs", frame(&wants, 0)),
        ("diffs", frame(&diffs, 8)),
        ("a notice of pages", frame(&pages_written(node), 0)),
    ]
}

/// That a node is at the first barrier, and wrote 4 GiB of pages.
fn pages_written(node: NodeId) -> Message {
    let written = PageRange {
        first: PageId(0),
        count: 1 << 20,
    };
    arrival(node, |interval, time| {
        interval.attached = Attached::Pages(WrittenPages::new(time.clone(), vec![written]).into());
    })
}

/// That a node is at the first barrier, and wrote or freed what `tell` says.
fn arrival(node: NodeId, tell: impl FnOnce(&mut Interval, &VectorTime)) -> Message {
    let mut time = VectorTime::zero(NODES);
    time.see(node, 1);
    let mut interval = Interval {
        node,
        first: 1,
        index: 1,
        lamport: 1,
        written: vec![],
        elements: vec![],
        freed: vec![],
        attached: Attached::Nothing,
        base: None,
    };
    tell(&mut interval, &time);
    let news = WriteNotices {
        time,
        lamport: 1,
        intervals: vec![interval.into()],
    };
    Message::BarrierArrive {
        barrier: BarrierId::Program(1),
        news: Box::new(news),
        site: dhole_model::CallSite::runtime("a lie"),
        full: false,
        has_news: true,
    }
}

/// The end of each node's run if one node sends this message after the first barrier.
fn run(make: Make, malicious: usize, frames: Vec<Vec<u8>>) -> Vec<Result<(), String>> {
    let now = Arc::new(AtomicBool::new(false));
    let machine = |(node, port): (usize, Box<dyn Port>)| -> Box<dyn Machine + Send> {
        let (frames, now) = (frames.clone(), Arc::clone(&now));
        let port = match node == malicious {
            true => Box::new(Malicious { port, frames, now }),
            false => port,
        };
        Box::new(Processes::new(port, 0).expect("the port offers all"))
    };
    let machines = make(NODES).into_iter().enumerate().map(machine).collect();
    let ended = run_processes(machines, &Settings::nodes(NODES), |w| {
        let one = w.once(|w| Ok(w.alloc(1_u64)))?;
        if w.node().index() == malicious {
            now.store(true, Ordering::SeqCst);
        }
        for _ in 0..10 {
            w.barrier()?;
            // The worker of the node that is asked writes meanwhile.
            if w.node() == NodeId(0) {
                *one.get_mut(w) += 1;
            }
        }
        Ok(())
    });
    let ended = ended.into_iter();
    ended
        .map(|ended| ended.map(drop).map_err(|error| error.to_string()))
        .collect()
}

#[test]
fn who_speaks_of_pages_where_objects_are_kept_is_refused_over_every_port() {
    for (port, make, malicious) in PORTS {
        assert_eq!(
            run(make, malicious, vec![]),
            [Ok(()), Ok(()), Ok(())],
            "{port}"
        );
        for (what, lie) in about_pages(malicious) {
            let ended = run(make, malicious, vec![lie]);
            for (node, ended) in ended.into_iter().enumerate() {
                let error = ended.expect_err(what);
                let from = format!("a message from node {malicious} makes no sense");
                let why = "pages, in a run that keeps objects consistent and no pages";
                let named = error.contains(&from) && error.contains(why);
                assert!(named, "{port}, {what}, node {node}: {error}");
            }
        }
    }
}

/// Notices of ids that no node was given, of one object or of as many as a notice can name.
fn about_nobodys_objects(malicious: usize) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let ids = |first: u64, count| OidRange {
        first: Oid(first),
        count,
    };
    let said = |tell: &dyn Fn(&mut Interval)| {
        let arrival = arrival(NodeId::at(malicious), |interval, _| tell(interval));
        frame(&arrival, 0)
    };
    let (far, all) = (ids(1 << 62, 1), ids(1 << 40, u32::MAX));
    let elements = Elements::new(far.first, 0..u64::MAX / 2);
    vec![
        (
            "a far object",
            said(&|interval| interval.written = vec![far]),
            "names 1 objects from object 0x4000000000000000 on, whose ids no node was given",
        ),
        (
            "objects beyond all memory",
            said(&|interval| interval.written = vec![all]),
            "names 4294967295 objects from object 0x10000000000 on, whose ids no node was given",
        ),
        (
            "a far object that is freed",
            said(&|interval| interval.freed = vec![far]),
            "names 1 objects from object 0x4000000000000000 on, whose ids no node was given",
        ),
        (
            "a far array",
            said(&|interval| interval.elements = vec![elements]),
            "names 1 objects from object 0x4000000000000000 on, whose ids no node was given",
        ),
    ]
}

#[test]
fn who_says_to_have_written_what_no_node_was_given_is_refused_over_every_port() {
    for (port, make, malicious) in PORTS {
        for (what, lie, why) in about_nobodys_objects(malicious) {
            let ended = run(make, malicious, vec![lie]);
            for (node, ended) in ended.into_iter().enumerate() {
                let error = ended.expect_err(what);
                let from = format!("a message from node {malicious} makes no sense");
                let named = error.contains(&from) && error.contains(why);
                assert!(named, "{port}, {what}, node {node}: {error}");
            }
        }
    }
}

/// Rounds of barriers that a peer can say and no sound one says, to node 0 of three.
fn bad_rounds(malicious: usize) -> Vec<(&'static str, Vec<u8>)> {
    let said = |number, round| {
        let said = BarrierRound {
            number,
            round,
            news: false,
            place: 0,
            site: None,
        };
        frame(&Message::BarrierRound(said), 0)
    };
    // Node 2 tells node 0 in round 0, and node 1 in round 1.
    let (its, other) = if malicious == 2 { (0, 1) } else { (1, 0) };
    vec![
        ("a round that no barrier has", said(1, 2)),
        ("a round of another node", said(1, other)),
        ("a round of a barrier that is over", said(0, its)),
        ("a round of a barrier that is far ahead", said(1 << 40, its)),
    ]
}

#[test]
fn who_says_a_round_of_a_barrier_that_is_not_its_to_say_is_refused_over_every_port() {
    for (port, make, malicious) in PORTS {
        for (what, lie) in bad_rounds(malicious) {
            for (node, ended) in run(make, malicious, vec![lie]).into_iter().enumerate() {
                let error = ended.expect_err(what);
                let from = format!("a message from node {malicious} makes no sense");
                let named = error.contains(&from) && error.contains("a round");
                assert!(named, "{port}, {what}, node {node}: {error}");
            }
        }
    }
}

/// Messages with bytes behind what they name, which a frame can bring and no sound node sends.
fn with_bytes_behind() -> Vec<(&'static str, Vec<u8>)> {
    let (oid, version) = (Oid(1 << 50), Version::default());
    let fetch = Message::Fetch(Fetch {
        round: 1,
        wanted: [Wanted {
            region: oid,
            need: version,
        }]
        .into(),
        beside: 0,
        follow: Follow::default(),
    });
    let pushed = Pushed {
        sent: Sent {
            region: oid,
            version,
        },
        bytes: 7,
    };
    let update = Message::Region(RegionMessage::Update {
        pushed: [pushed].into(),
    });
    vec![
        ("a fetch", frame(&fetch, 8)),
        ("an update", frame(&update, 8)),
        (
            "an answer",
            frame(&Message::Region(RegionMessage::FlushAck { number: 1 }), 8),
        ),
    ]
}

#[test]
fn who_sends_bytes_behind_what_a_message_names_is_refused_over_every_port() {
    for (port, make, malicious) in PORTS {
        for (what, lie) in with_bytes_behind() {
            for (node, ended) in run(make, malicious, vec![lie]).into_iter().enumerate() {
                let error = ended.expect_err(what);
                let from = format!("a message from node {malicious} makes no sense");
                let named = error.contains(&from) && error.contains("more bytes than it names");
                assert!(named, "{port}, {what}, node {node}: {error}");
            }
        }
    }
}

/// Requests that ask for more to come along than a sound node does.
fn followed_too_far() -> Vec<(&'static str, Vec<u8>)> {
    let asked = |most: u16, types: u32| {
        let of_type = |shipped| FollowedReferences {
            shipped,
            slots: u64::MAX,
        };
        let follow = Follow {
            most,
            references: (0..types).map(of_type).collect(),
        };
        let (oid, need) = (Oid(1 << 50), Version::default());
        let fetch = Message::Fetch(Fetch {
            round: 1,
            wanted: [Wanted { region: oid, need }].into(),
            beside: 0,
            follow,
        });
        frame(&fetch, 0)
    };
    let most = u16::try_from(MOST_ALONG).expect("few");
    let types = u32::try_from(Follow::MOST_TYPES).expect("few");
    vec![
        ("too many objects", asked(most + 1, 1)),
        ("all objects", asked(u16::MAX, 1)),
        ("too many types", asked(most, types + 1)),
    ]
}

#[test]
fn who_asks_for_more_to_come_along_than_may_is_refused_over_every_port() {
    for (port, make, malicious) in PORTS {
        for (what, lie) in followed_too_far() {
            for (node, ended) in run(make, malicious, vec![lie]).into_iter().enumerate() {
                let error = ended.expect_err(what);
                let from = format!("a message from node {malicious} makes no sense");
                let named =
                    error.contains(&from) && error.contains("more should come than goes along");
                assert!(named, "{port}, {what}, node {node}: {error}");
            }
        }
    }
}
