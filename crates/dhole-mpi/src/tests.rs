//! A peer is lost at each point of a long frame: when it has gone and is not announced, when it is
//! announced and does not come, while it comes.

use std::time::{Duration, Instant};

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;

use super::library::{self, inside};
use super::{ANNOUNCED, FRAME, Long, Mpi, SMALL, tags_within};
use dhole_net::{Loss, Port};

/// Longer than any library sends at once.
const LONG: usize = 8 << 20;

/// The ports of a cluster within this process.
fn cluster<const N: usize>() -> [Mpi; N] {
    let ports = Mpi::cluster(N).expect("an MPI library");
    ports.try_into().ok().expect("as many ports")
}

/// The first half of what a node does for a long frame, without what announces it.
fn begin_long(from: &Mpi, to: NodeId) -> library::UnderWay {
    let target = from.shared.target(to);
    let (rank, tag) = (target.rank, target.large_tag);
    let message = [vec![7; LONG], vec![FRAME]].concat();
    let inside = inside().expect("the library runs");
    let sending = target.communicator.send(&inside, message, rank, tag, false);
    sending.expect("the library sends")
}

/// Polls until somebody is lost, and says what came until then.
fn until_lost(port: &Mpi) -> (Vec<(NodeId, usize)>, NodeId, Loss) {
    let begun = Instant::now();
    let (mut came, mut lost) = (Vec::new(), None);
    while lost.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody is lost");
        port.poll(&mut |from, frame| came.push((from, frame.len())));
        port.lost(&mut |node, loss| lost = Some((node, loss)));
    }
    let (node, loss) = lost.expect("it was looked for");
    (came, node, loss)
}

fn waits_for_nothing_long(port: &Mpi) -> bool {
    let polling = lock(&port.shared.polling);
    polling.sources.iter().all(|source| source.long.is_none())
}

#[test]
fn a_peer_lost_between_a_long_frame_and_its_announcement_is_lost() {
    let [one, lost, third] = cluster();
    let _begun = begin_long(&lost, one.me());
    assert_eq!(one.poll(&mut |_, _| ()), 0, "nobody has announced it");
    let node = lost.me();
    drop(lost);
    let (came, who, how) = until_lost(&one);
    assert_eq!((came, who), (Vec::new(), node));
    assert_eq!(how, Loss::Broken("its port is no more".into()));
    assert!(waits_for_nothing_long(&one) && !one.shared.has_something_to_do());
    goes_on(&one, &third);
}

#[test]
fn an_announcement_of_what_never_comes_holds_nobody_else_up() {
    let [one, silent, third] = cluster();
    silent.shared.tell(one.me(), ANNOUNCED);
    silent.send(one.me(), &[b"behind it"]).expect("room");
    goes_on(&one, &third);
    assert!(!waits_for_nothing_long(&one));
    let loss = Loss::Silent(Duration::from_secs(5));
    one.give_up(silent.me(), loss.clone());
    assert_eq!(until_lost(&one), (Vec::new(), silent.me(), loss));
    assert!(waits_for_nothing_long(&one), "of who is lost");
    // What is behind it is dropped, and so is what comes late.
    drop(begin_long(&silent, one.me()));
    goes_on(&one, &third);
    assert!(waits_for_nothing_long(&one));
}

#[test]
fn a_peer_lost_while_a_long_frame_of_it_comes_is_lost() {
    let [one, lost] = cluster();
    let (node, loss) = (lost.me(), Loss::Silent(Duration::from_secs(5)));
    let message = begin_long(&lost, one.me());
    let (rank, tag) = (0, tags_within(1, 0, 2).1);
    {
        let inside = inside().expect("the library runs");
        let communicator = one.shared.communicator;
        let begun = Instant::now();
        let come = loop {
            if let Some(come) = communicator.come(&inside, rank, tag).expect("no error") {
                break come;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it never comes");
        };
        let receiving = come.receive(&inside, Vec::new()).expect("no error");
        let mut polling = lock(&one.shared.polling);
        polling.sources[0].long = Some(Long::Coming(receiving));
    }
    one.give_up(node, loss.clone());
    assert_eq!(until_lost(&one), (Vec::new(), node, loss));
    assert!(waits_for_nothing_long(&one));
    drop(message);
}

/// Frames of all sizes still come from `from`.
fn goes_on(to: &Mpi, from: &Mpi) {
    let begun = Instant::now();
    for bytes in [0, 1, SMALL, LONG, 8] {
        from.send(to.me(), &[&vec![1; bytes]]).expect("room");
        let mut came = None;
        while came.is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{bytes} bytes");
            to.poll(&mut |node, frame| came = Some((node, frame.len())));
            from.poll(&mut |_, _| ());
        }
        assert_eq!(came, Some((from.me(), bytes)));
    }
}
