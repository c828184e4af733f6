//! Mailboxes: what is sent arrives, whole and in order, whatever the schedule.

use conformance::mail::{Planted, Shape, run};
use conformance::seeds;

const SHAPES: [Shape; 4] = [
    shape(2, 1, 0),
    shape(3, 2, 0),
    shape(4, 100, 0),
    shape(3, 2, 1),
];

const fn shape(nodes: u16, room: usize, crashes: u16) -> Shape {
    Shape {
        nodes,
        messages: 8,
        room,
        crashes,
    }
}

#[test]
fn messages_arrive_whole_in_order_and_with_what_was_written_before() {
    for shape in SHAPES {
        for seed in seeds(0..2500) {
            if let Err(wrong) = run(shape, seed, Planted::Nothing) {
                panic!("DHOLE_SEED={seed} {shape:?}: {wrong}");
            }
        }
    }
}

#[test]
fn every_bug_planted_in_mailboxes_is_caught() {
    for planted in Planted::ALL
        .into_iter()
        .filter(|it| *it != Planted::Nothing)
    {
        let mut all = SHAPES
            .iter()
            .filter(|shape| shape.crashes == 0)
            .flat_map(|shape| (0..500).map(move |seed| (*shape, seed)));
        let caught = all.find_map(|(shape, seed)| run(shape, seed, planted).err());
        let wrong = caught.unwrap_or_else(|| panic!("{planted:?} is not caught"));
        let words: &[&str] = match planted {
            Planted::Drops => &["is next", "deadlock"],
            Planted::WrittenLate => &["there"],
            _ => &["is next"],
        };
        let said = words.iter().any(|words| wrong.contains(words));
        assert!(said, "{planted:?}: {wrong}");
    }
}

/// A ring of N nodes and R rounds takes 2NR messages.
#[test]
fn a_ring_takes_two_messages_a_node_and_round() {
    use conformance::{Platform, Simulated};
    use dhole::mailbox::Mailboxes;
    use dhole::{MessageKind, NodeId};

    let in_order = Simulated { jitter: 0.0 };
    for (nodes, rounds) in [(2, 50), (5, 100)] {
        let ran = conformance::run(&in_order as &dyn Platform, nodes, 1, |w| {
            let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
            let (me, nodes) = (w.node().index(), w.nodes());
            let (right, left) = ((me + 1) % nodes, (me + nodes - 1) % nodes);
            for round in 0..rounds {
                mail.send(w, NodeId::at(right), round)?;
                assert_eq!(mail.recv(w)?, (NodeId::at(left), round));
            }
            Ok(())
        });
        let counters = ran.expect("it runs").counters;
        let sum = |kind| counters.iter().map(|it| it.sent(kind)).sum::<u64>();
        let requests = sum(MessageKind::OperationRequest);
        assert_eq!(requests, rounds * nodes as u64);
        // The makers of the mailboxes were answered too.
        let replies = sum(MessageKind::OperationReply);
        assert_eq!(replies, requests + nodes as u64 - 1);
    }
}
