//! Whatever a peer sends, a member neither panics nor grows without limit.

use dhole_group::{
    Cast, Group, GroupError, GroupEvent, GroupMessage, Member, Part, Settings, State, ViewId, Wants,
};
use dhole_model::NodeId;
use proptest::prelude::*;

const WINDOW: u32 = 8;

fn settings(reliable: bool) -> Settings {
    Settings {
        window: WINDOW,
        under_way: 2,
        queue: 4,
        reliable,
        fanout: Some(1),
        credits: 2,
        resend_ns: 100,
        ..Settings::reliable()
    }
}

/// Numbers that make sense, and numbers that do not.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..12_u64, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn nodes() -> impl Strategy<Value = NodeId> {
    prop_oneof![9 => (0..3_u16).prop_map(NodeId), 1 => Just(NodeId(900))]
}

fn views() -> impl Strategy<Value = ViewId> {
    let views = (
        prop_oneof![6 => Just(1_u64), 2 => 0..4_u64, 1 => numbers()],
        nodes(),
    );
    views.prop_map(|(number, sequencer)| ViewId { number, sequencer })
}

fn parts() -> BoxedStrategy<Part> {
    let few = || prop_oneof![8 => 0..3_u32, 1 => any::<u32>()];
    (nodes(), numbers(), few(), few())
        .prop_map(|(origin, serial, part, parts)| Part {
            origin,
            serial,
            part,
            parts,
        })
        .boxed()
}

fn wants() -> BoxedStrategy<Wants> {
    let lives = || proptest::collection::btree_map(nodes(), 0..3_u64, 0..3);
    (lives(), lives(), lives())
        .prop_map(|(lost, leaving, joining)| Wants {
            lost: lost.into_iter().collect(),
            leaving: leaving.into_iter().collect(),
            joining: joining.into_iter().collect(),
        })
        .boxed()
}

fn lists() -> impl Strategy<Value = Vec<NodeId>> {
    proptest::collection::vec(nodes(), 0..4)
}

fn states() -> BoxedStrategy<State> {
    let held = proptest::collection::vec(numbers(), 0..6);
    (
        views(),
        lists(),
        lists(),
        numbers(),
        numbers(),
        held,
        wants(),
    )
        .prop_map(
            |(view, members, electors, start, done, held, wants)| State {
                view,
                members,
                electors,
                start,
                done,
                held,
                wants,
            },
        )
        .boxed()
}

fn members() -> impl Strategy<Value = Vec<Member>> {
    let member = (nodes(), 0..2_u64, numbers()).prop_map(|(node, incarnation, serial)| Member {
        node,
        incarnation,
        serial,
    });
    proptest::collection::vec(member, 0..4)
}

fn casts() -> BoxedStrategy<Cast<u8>> {
    prop_oneof![
        (numbers(), parts(), any::<u8>(), numbers()).prop_map(|(number, part, body, stable)| {
            Cast::Data {
                number,
                part,
                body,
                stable,
            }
        }),
        (parts(), any::<u8>(), numbers()).prop_map(|(part, body, done)| Cast::Announce {
            part,
            body,
            done,
        }),
        (nodes(), 0..12_u32, numbers(), numbers(), numbers()).prop_map(
            |(origin, parts, serial, first, stable)| Cast::Accept {
                origin,
                serial,
                parts,
                first,
                stable,
            }
        ),
    ]
    .boxed()
}

fn in_order() -> BoxedStrategy<GroupMessage<u8>> {
    let three = || (numbers(), numbers(), numbers());
    prop_oneof![
        (views(), parts(), any::<u8>(), numbers()).prop_map(|(view, part, body, done)| {
            GroupMessage::Submit {
                view,
                part,
                body,
                done,
            }
        }),
        (views(), parts(), any::<u8>(), numbers()).prop_map(|(view, part, body, done)| {
            GroupMessage::Announce {
                view,
                part,
                body,
                done,
            }
        }),
        (views(), numbers(), 0..12_u32, numbers()).prop_map(|(view, serial, parts, done)| {
            GroupMessage::Ask {
                view,
                serial,
                parts,
                done,
            }
        }),
        (views(), three()).prop_map(|(view, (serial, first, stable))| {
            GroupMessage::Grant {
                view,
                serial,
                first,
                stable,
            }
        }),
        (views(), nodes(), 0..12_u32, three()).prop_map(
            |(view, origin, parts, (serial, first, stable))| GroupMessage::Accept {
                view,
                origin,
                serial,
                parts,
                first,
                stable,
            }
        ),
        (views(), numbers(), parts(), any::<u8>(), numbers()).prop_map(
            |(view, number, part, body, stable)| GroupMessage::Data {
                view,
                number,
                part,
                body,
                stable,
            }
        ),
        (views(), three()).prop_map(|(view, (first, last, done))| {
            GroupMessage::Fetch {
                view,
                first,
                last,
                done,
            }
        }),
        (views(), nodes(), numbers(), casts()).prop_map(|(view, root, link, cast)| {
            GroupMessage::Relay {
                view,
                root,
                link,
                cast,
            }
        }),
        (views(), numbers()).prop_map(|(view, link)| GroupMessage::Credit { view, link }),
        (views(), numbers(), any::<bool>()).prop_map(|(view, done, asks)| GroupMessage::Have {
            view,
            done,
            asks
        }),
        (views(), three()).prop_map(|(view, (round, high, stable))| {
            GroupMessage::Token {
                view,
                round,
                high,
                stable,
            }
        }),
    ]
    .boxed()
}

fn of_changes() -> BoxedStrategy<GroupMessage<u8>> {
    prop_oneof![
        numbers().prop_map(|incarnation| GroupMessage::Join { incarnation }),
        (views(), wants()).prop_map(|(view, wants)| GroupMessage::Suspect { view, wants }),
        (views(), 0..2_u64, numbers(), wants()).prop_map(|(view, life, attempt, wants)| {
            GroupMessage::Collect {
                view,
                life,
                attempt,
                wants,
            }
        }),
        (numbers(), states()).prop_map(|(attempt, state)| GroupMessage::State {
            attempt,
            state: Box::new(state),
        }),
        (numbers(), proptest::collection::vec(numbers(), 0..10))
            .prop_map(|(attempt, numbers)| GroupMessage::Gather { attempt, numbers }),
        (numbers(), numbers(), parts(), any::<u8>()).prop_map(|(attempt, number, part, body)| {
            GroupMessage::Gathered {
                attempt,
                number,
                part,
                body,
            }
        }),
        (numbers(), views(), members(), lists(), numbers()).prop_map(
            |(attempt, view, members, electors, end)| GroupMessage::Install {
                attempt,
                view,
                members,
                electors,
                end,
            }
        ),
        views().prop_map(|view| GroupMessage::Installed { view }),
        views().prop_map(|view| GroupMessage::Active { view }),
        (views(), any::<bool>(), 0..2_u64, 0..2_u64).prop_map(|(view, listed, one, other)| {
            GroupMessage::Out {
                view,
                listed,
                lives: (one, other),
            }
        }),
    ]
    .boxed()
}

fn events() -> impl Strategy<Value = GroupEvent<u8>> {
    let message = prop_oneof![3 => in_order(), 2 => of_changes()];
    prop_oneof![
        20 => (nodes(), message).prop_map(|(from, message)| GroupEvent::Message { from, message }),
        4 => any::<u8>().prop_map(|body| GroupEvent::Broadcast { body, bytes: 1 }),
        2 => Just(GroupEvent::Tick),
        1 => nodes().prop_map(GroupEvent::Lost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_message_makes_a_member_panic_or_grow(
        me in 0..3_u16,
        reliable in any::<bool>(),
        joins in prop_oneof![4 => Just(false), 1 => Just(true)],
        events in proptest::collection::vec(events(), 1..60),
    ) {
        let mut group: Group<u8> = match joins {
            true => Group::joining(NodeId(me), 1, 3, settings(reliable)),
            false => Group::new(NodeId(me), 3, settings(reliable)),
        };
        let mut out = Vec::new();
        for (now_ns, event) in events.into_iter().enumerate() {
            let from = match &event {
                GroupEvent::Message { from, .. } => Some(*from),
                _ => None,
            };
            out.clear();
            match group.step(event, 50 * now_ns as u64, &mut out) {
                Err(GroupError::Message { from: accused, .. }) => {
                    prop_assert_eq!(Some(accused), from);
                }
                Err(_) => prop_assert!(from.is_none()),
                Ok(()) => {}
            }
            prop_assert!(group.history() <= 2 * WINDOW as usize);
            prop_assert!(group.waiting() <= 4);
            prop_assert!(group.held_back() <= 8 * WINDOW as usize + 4);
            prop_assert!(group.unnumbered() <= 3 * (2 * WINDOW + 2) as usize);
        }
    }
}

#[test]
fn a_broadcast_too_many_or_too_large_is_refused_with_words() {
    let mut group: Group<std::sync::Arc<[u8]>> = Group::new(NodeId(1), 3, settings(true));
    let mut out = Vec::new();
    let mut broadcast = |bytes: usize| {
        let body = std::sync::Arc::from(vec![0_u8; bytes.min(1 << 10)]);
        group.step(GroupEvent::Broadcast { body, bytes }, 0, &mut out)
    };
    let large = (WINDOW as usize + 1) << 20;
    let words = broadcast(large).expect_err("it is too large").to_string();
    assert_eq!(
        words,
        format!(
            "broadcasting {large} bytes to the group: at most {} fit",
            8 << 20
        )
    );
    (0..4).for_each(|_| broadcast(10).expect("there is room"));
    let words = broadcast(10).expect_err("the queue is full").to_string();
    assert_eq!(
        words,
        "broadcasting to the group: 4 broadcasts of this node wait already"
    );
}
