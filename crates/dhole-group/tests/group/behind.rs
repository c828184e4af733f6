//! A member that the others have gone on without, and that takes those for lost who could say so.

use dhole_group::{Ending, Group, GroupCommand, GroupEvent, GroupMessage, Settings, ViewId};
use dhole_model::NodeId;

type Members = Vec<Group<u32>>;
type Sent = Vec<(NodeId, NodeId, GroupMessage<u32>)>;

fn n(node: usize) -> NodeId {
    NodeId::at(node)
}

/// A step of a member: what it sends, and why it ends, if it does.
fn step(members: &mut Members, node: usize, event: GroupEvent<u32>) -> (Sent, Option<Ending>) {
    let mut out = Vec::new();
    members[node].step(event, 0, &mut out).unwrap();
    let (mut sent, mut ended) = (Sent::new(), None);
    for command in out {
        match command {
            GroupCommand::Send { to, message } => sent.push((n(node), to, message)),
            GroupCommand::Stuck { reason } => ended = Some(reason),
            GroupCommand::View { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    (sent, ended)
}

/// Delivers messages, and those that follow, to the nodes that hear.
fn deliver(
    members: &mut Members,
    mut sent: Sent,
    hears: impl Fn(&GroupMessage<u32>, NodeId) -> bool,
) {
    while !sent.is_empty() {
        let (from, to, message) = sent.remove(0);
        if hears(&message, to) {
            let event = GroupEvent::Message { from, message };
            sent.extend(step(members, to.index(), event).0);
        }
    }
}

/// ```text
/// node 0   loses 4, makes view 2 of 0 to 3 ---.
/// node 2   is told of view 2 <----------------'  is asked by 4    loses 0, 1, 3: ends, and says so
/// node 4   loses 0 and 1, asks 2 for a view -------^                       `----> is left behind
/// ```
#[test]
fn who_asks_a_member_for_a_view_hears_that_it_has_ended() {
    let new = |node| Group::new(n(node), 5, Settings::reliable());
    let mut members: Members = (0..5).map(new).collect();
    let (sent, _) = step(&mut members, 0, GroupEvent::Lost(n(4)));
    deliver(&mut members, sent, |message, to| match message {
        GroupMessage::Install { .. } => to == n(2),
        GroupMessage::Installed { .. } => false,
        _ => true,
    });
    let second = ViewId {
        number: 2,
        sequencer: n(0),
    };
    assert_eq!(members[2].view(), second);
    step(&mut members, 4, GroupEvent::Lost(n(0)));
    let (asked, _) = step(&mut members, 4, GroupEvent::Lost(n(1)));
    let [(_, NodeId(2), GroupMessage::Suspect { .. })] = &asked[..] else {
        panic!("{asked:?}");
    };
    deliver(&mut members, asked, |_, to| to == n(2));
    let mut last = (Sent::new(), None);
    for lost in [0, 1, 3] {
        if last.1.is_none() {
            last = step(&mut members, 2, GroupEvent::Lost(n(lost)));
        }
    }
    let (said, ended) = last;
    assert!(matches!(ended, Some(Ending::Minority { .. })), "{ended:?}");
    let to_fourth = said.into_iter().find(|(_, to, _)| *to == n(4));
    let (from, _, message) = to_fourth.expect("whoever asked is told");
    let (_, ended) = step(&mut members, 4, GroupEvent::Message { from, message });
    assert_eq!(ended, Some(Ending::Excluded));
}
