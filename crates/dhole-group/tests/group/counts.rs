//! Messages that a broadcast takes by each method, and what they weigh: Orca, section 2.3.1, says
//! that ordering takes one or two short messages beside the multicast.

use std::sync::Arc;

use dhole_group::{
    Ending, Group, GroupCommand, GroupEvent, GroupMessage, Method, Quorum, Settings, ViewId,
};
use dhole_model::NodeId;
use dhole_wire::Wire;

use crate::world::{Happening, Links, Text, World};

fn links(settings: Settings) -> Links {
    Links {
        settings,
        ..Links::reliable()
    }
}

/// Messages, by kind, of one broadcast of a member that is not the sequencer.
fn one_broadcast(nodes: usize, settings: Settings, bytes: usize) -> Vec<(&'static str, u64)> {
    let mut world = World::new(0, nodes, links(settings));
    world.at(1, Happening::Broadcast(NodeId(1), bytes));
    assert!(world.run(1_000_000));
    assert_eq!(world.fault(), Ok(()));
    world.counts.into_iter().collect()
}

fn by(method: Method) -> Settings {
    Settings {
        method: Some(method),
        ..Settings::reliable()
    }
}

#[test]
fn through_the_sequencer_a_broadcast_takes_one_message_more_than_the_multicast() {
    for nodes in [2, 3, 32_usize] {
        let others = nodes as u64 - 1;
        let counts = one_broadcast(nodes, by(Method::Forward), 100);
        assert_eq!(counts, [("data", others), ("submit", 1)]);
    }
}

#[test]
fn asking_for_a_number_takes_two_short_messages_more_than_the_multicast() {
    for nodes in [2, 3, 32_usize] {
        let others = nodes as u64 - 1;
        let counts = one_broadcast(nodes, by(Method::Ask), 100);
        assert_eq!(counts, [("ask", 1), ("data", others), ("grant", 1)]);
    }
}

#[test]
fn a_broadcast_that_is_announced_takes_a_short_multicast_beside_its_own() {
    for nodes in [2, 3, 32_usize] {
        let others = nodes as u64 - 1;
        let counts = one_broadcast(nodes, by(Method::Announce), 100);
        assert_eq!(counts, [("accept", others), ("announce", others)]);
    }
}

#[test]
fn a_large_message_asks_once_for_the_numbers_of_all_its_parts() {
    let settings = Settings {
        largest: 100,
        forward_most: 100,
        ..Settings::reliable()
    };
    let counts = one_broadcast(4, settings, 1_000);
    assert_eq!(counts, [("ask", 1), ("data", 10 * 3), ("grant", 1)]);
}

#[test]
fn the_sequencer_itself_only_multicasts() {
    for method in [Method::Ask, Method::Forward, Method::Announce] {
        let mut world = World::new(0, 4, links(by(method)));
        world.at(1, Happening::Broadcast(NodeId(0), 100));
        assert!(world.run(1_000));
        assert_eq!(world.counts.into_iter().collect::<Vec<_>>(), [("data", 3)]);
    }
}

#[test]
fn a_token_of_as_many_messages_as_members_acknowledges_a_batch() {
    let settings = Settings {
        acknowledge_every: 50,
        ..by(Method::Forward)
    };
    let mut world = World::new(0, 4, links(settings));
    for number in 0..200 {
        world.at(1 + 10_000 * number, Happening::Broadcast(NodeId(0), 10));
    }
    assert!(world.run(100_000));
    assert_eq!(world.fault(), Ok(()));
    assert_eq!(world.counts["data"], 3 * 200);
    assert_eq!(world.counts["token"], 4 * 4, "four batches of fifty");
    assert!(world.longest <= 51, "{}", world.longest);
}

#[test]
fn along_a_tree_each_member_sends_few_and_gives_credits_back() {
    let settings = Settings {
        fanout: Some(2),
        credits: 4,
        ..by(Method::Forward)
    };
    let counts = one_broadcast(32, settings.clone(), 100);
    assert_eq!(counts, [("relay", 31), ("submit", 1)]);

    let mut world = World::new(0, 7, links(settings));
    for number in 0..20 {
        world.at(1 + number, Happening::Broadcast(NodeId(0), 10));
    }
    assert!(world.run(100_000));
    assert_eq!(world.fault(), Ok(()));
    assert_eq!(world.counts["relay"], 6 * 20);
    let credits = world.counts["credit"];
    assert!((6 * 10 / 2..=6 * 10).contains(&credits), "{credits}");
    assert!(world.nodes.iter().all(|node| node.group.held_back() == 0));
}

#[test]
fn whoever_gets_no_credit_sends_no_more_than_it_has() {
    let settings = Settings {
        fanout: Some(1),
        credits: 3,
        ..by(Method::Forward)
    };
    let mut group: Group<u8> = Group::new(NodeId(0), 3, settings);
    let mut out = Vec::new();
    for body in 0..10 {
        let broadcast = GroupEvent::Broadcast { body, bytes: 1 };
        group.step(broadcast, 0, &mut out).expect("room");
    }
    let relays = |out: &[GroupCommand<u8>]| {
        let is_relay = |command: &&GroupCommand<u8>| {
            matches!(
                command,
                GroupCommand::Send {
                    message: GroupMessage::Relay { .. },
                    ..
                }
            )
        };
        out.iter().filter(is_relay).count()
    };
    assert_eq!((relays(&out), group.held_back()), (3, 7));
    let message = GroupMessage::Credit {
        view: group.view(),
        link: 2,
    };
    let from = NodeId(1);
    let credit = GroupEvent::Message { from, message };
    group
        .step(credit, 0, &mut out)
        .expect("credit for what was sent");
    assert_eq!((relays(&out), group.held_back()), (5, 5));
    let message = GroupMessage::Credit {
        view: group.view(),
        link: 6,
    };
    let credit = GroupEvent::Message { from, message };
    group
        .step(credit, 0, &mut out)
        .expect_err("no such message was sent");
}

#[test]
fn the_method_follows_from_the_size_and_from_what_the_port_offers() {
    let pairs = Settings::reliable();
    assert_eq!(pairs.method_for(100, 4), Method::Forward);
    assert_eq!(pairs.method_for(100_000, 4), Method::Ask);
    let datagrams = Settings::datagrams(60_000, 1_000_000);
    assert_eq!(datagrams.method_for(100, 4), Method::Forward);
    let multicast = Settings {
        multicast: true,
        ..datagrams
    };
    assert_eq!(multicast.method_for(50_000, 4), Method::Announce);
    assert_eq!(multicast.method_for(500_000, 4), Method::Ask);
    assert_eq!(by(Method::Ask).method_for(1, 4), Method::Ask);
}

#[test]
fn the_other_of_two_is_told_of_a_number_that_more_would_ask_for() {
    let of_two = one_broadcast(2, Settings::reliable(), 100_000);
    assert_eq!(of_two, [("accept", 1), ("announce", 1)]);
    let of_three = one_broadcast(3, Settings::reliable(), 100_000);
    assert_eq!(of_three, [("ask", 1), ("data", 2), ("grant", 1)]);
}

/// A crash of the sequencer among `nodes`, when nothing is on its way.
#[test]
fn a_change_of_the_view_takes_seven_messages_for_each_that_goes_on() {
    for nodes in [3, 5, 9_u64] {
        let mut world = World::new(0, nodes as usize, links(Settings::reliable()));
        world.at(1, Happening::Crash(NodeId(0)));
        assert!(world.run(10_000));
        // Those that notice first tell the coordinator, which asks, installs, starts, and says to
        // the lost one that it is out. Each of the others answers twice.
        let others = nodes - 2;
        let told = world.counts["change"] - 5 * others - 1;
        assert!(told <= others, "{told} of {others} told the coordinator");
        let going = world.nodes.iter().skip(1);
        assert!(going.clone().all(|node| node.views.len() == 1));
        assert!(
            going
                .clone()
                .all(|node| node.views[0].members.len() as u64 == nodes - 1)
        );
    }
}

#[test]
fn messages_weigh_what_their_fields_do() {
    let mut one: Group<Text> = Group::new(NodeId(1), 3, by(Method::Forward));
    let mut out = Vec::new();
    let body: Text = Arc::from(*b"abc");
    one.step(GroupEvent::Broadcast { body, bytes: 3 }, 0, &mut out)
        .expect("room for a broadcast");
    let Some(GroupCommand::Send { message, .. }) = out.pop() else {
        panic!("nothing is sent");
    };
    assert_eq!(message.body().map(|body| body.len()), Some(3));
    // Kind, view, part, a count and the body, acknowledgement.
    assert_eq!(message.wire_len(), 1 + 10 + 18 + (4 + 3) + 8);
    let view = ViewId {
        number: 1,
        sequencer: NodeId(0),
    };
    let token = GroupMessage::<Text>::Token {
        view,
        round: 1,
        high: 1,
        stable: 0,
    };
    assert_eq!((token.wire_len(), token.body()), (1 + 10 + 3 * 8, None));
    let view = GroupMessage::<Text>::Installed { view };
    assert_eq!(view.wire_len(), 1 + 10);
}

#[test]
fn of_two_halves_the_one_with_the_most_senior_goes_on() {
    for quorum in [Quorum::Majority, Quorum::Survivors] {
        let settings = Settings {
            quorum,
            ..Settings::reliable()
        };
        let ending = |me: u16, lost: u16| {
            let mut group: Group<u8> = Group::new(NodeId(me), 2, settings.clone());
            let mut out = Vec::new();
            let lost = GroupEvent::Lost(NodeId(lost));
            group.step(lost, 0, &mut out).expect("a loss is no error");
            group.ending()
        };
        let minority = Ending::Minority { left: 1, of: 2 };
        assert_eq!(ending(0, 1), None);
        let second = (quorum == Quorum::Majority).then_some(minority);
        assert_eq!(ending(1, 0), second);
    }
}
