//! Totally ordered groups.

use std::collections::VecDeque;

use std::collections::BTreeMap;

use dhole_group::{Group, GroupCommand, GroupEvent, Settings};
use dhole_model::NodeId;

use crate::world::{Happening, Links, World};

#[test]
fn all_members_deliver_in_the_order_of_the_sequencer() -> Result<(), Box<dyn std::error::Error>> {
    let mut groups: Vec<Group<u8>> = (0..3)
        .map(|node| Group::new(NodeId::at(node), 3, Settings::reliable()))
        .collect();
    let mut delivered = vec![Vec::new(); 3];
    let mut events: VecDeque<_> = (0..6_u8)
        .map(|body| {
            (
                usize::from(body % 3),
                GroupEvent::Broadcast { body, bytes: 1 },
            )
        })
        .collect();
    let mut out = Vec::new();
    while let Some((node, event)) = events.pop_front() {
        groups[node].step(event, 0, &mut out)?;
        let from = NodeId::at(node);
        for command in out.drain(..) {
            match command {
                GroupCommand::Send { to, message } => {
                    events.push_back((to.index(), GroupEvent::Message { from, message }));
                }
                GroupCommand::SendAll { message } => {
                    for to in groups[node].others() {
                        let message = message.clone();
                        events.push_back((to.index(), GroupEvent::Message { from, message }));
                    }
                }
                GroupCommand::Deliver { body, .. } => delivered[node].push(body),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(delivered[0], [0, 3, 1, 2, 4, 5]);
    assert!(delivered.iter().all(|member| *member == delivered[0]));
    Ok(())
}

#[test]
fn what_comes_alone_is_taken_so_on_every_member() {
    let mut world = World::new(1, 2, Links::reliable());
    for number in 0..7 {
        let node = NodeId(u16::from(number % 2 == 1));
        world.at(number * 10_000, Happening::Broadcast(node, 16));
    }
    assert!(world.run(1000) && world.refused.is_none());
    let alone = [
        ("data", 4),
        ("numbered", 3),
        ("own", 4),
        ("own data", 3),
        ("submitted", 3),
    ];
    assert_eq!(world.alone, BTreeMap::from(alone));
}
