//! `Event::AskIds`: who hands object ids out, and who is not believed.

use crate::pack::{Pack, from, n};
use dhole_protocol::{Command, Event, HandedOut, Message, ProtocolError, WorkerIs};

/// What is handed out.
pub const HANDED: HandedOut = HandedOut {
    first: 1 << 20,
    count: 4096,
    left: 1 << 30,
};

/// What a node makes of a message that no sound node sends.
fn refused(pack: &mut Pack, node: usize, by: usize, message: Message) -> &'static str {
    let stepped = pack.step(node, from(by, message), WorkerIs::InCall);
    match stepped {
        Err(ProtocolError::BadMessage { from, what }) if from == n(by) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_node_asks_node_0_and_waits_and_node_0_waits_for_nobody() {
    let mut pack = Pack::new(3);
    let hands_out = |to: usize, ids| Command::HandOutIds { to: n(to), ids };
    assert_eq!(
        pack.local(0, Event::AskIds { ids: 64 }),
        [hands_out(0, 64), Command::Done]
    );
    pack.begin(2, Event::AskIds { ids: 640 });
    let (asker, manager, asked) = pack.in_flight.pop_front().expect("a request");
    assert_eq!((asker, manager), (n(2), n(0)));
    let done = pack.step(0, from(2, asked), WorkerIs::Computing).unwrap();
    assert_eq!(
        done,
        [hands_out(2, 640)],
        "at once, whatever its worker does"
    );
    let done = pack.step(2, from(0, Message::HandIdsOut(HANDED)), WorkerIs::InCall);
    assert_eq!(done, Ok(vec![Command::TakeIds(HANDED), Command::Done]));
}

#[test]
fn a_node_that_is_handed_none_goes_on_as_well() {
    let mut pack = Pack::new(2);
    let none = HandedOut {
        first: 0,
        count: 0,
        left: 63,
    };
    pack.begin(1, Event::AskIds { ids: 64 });
    let done = pack.step(1, from(0, Message::HandIdsOut(none)), WorkerIs::InCall);
    assert_eq!(done, Ok(vec![Command::TakeIds(none), Command::Done]));
}

#[test]
fn ids_that_nobody_asked_for_or_that_node_0_does_not_hand_out_are_not_believed() {
    let mut pack = Pack::new(3);
    let handed = |count| Message::HandIdsOut(HandedOut { count, ..HANDED });
    let unasked = "ids that were not asked for";
    assert_eq!(refused(&mut pack, 1, 0, handed(4096)), unasked);
    pack.begin(1, Event::AskIds { ids: 640 });
    assert_eq!(refused(&mut pack, 1, 2, handed(4096)), unasked, "of node 2");
    let few = "fewer ids than were asked for";
    assert_eq!(refused(&mut pack, 1, 0, handed(576)), few);
    assert_eq!(
        refused(&mut pack, 1, 0, handed(u64::MAX)),
        few,
        "beyond all"
    );
    assert!(pack.step(1, from(0, handed(640)), WorkerIs::InCall).is_ok());
    assert_eq!(refused(&mut pack, 1, 0, handed(640)), unasked, "twice");
    let ask = |ids| Message::AskIds { ids };
    let elsewhere = "a request for ids at a node that hands none out";
    assert_eq!(refused(&mut pack, 2, 1, ask(64)), elsewhere);
    assert_eq!(refused(&mut pack, 0, 1, ask(0)), "a request for no ids");
}
