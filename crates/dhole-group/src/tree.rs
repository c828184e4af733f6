//! A multicast along a tree: each member passes it on to few others, and to each of them only so
//! much at a time as it has credits for (Orca, section 2.4, on Myrinet).
//!
//! The root is whoever multicasts; the members, in the order of seniority from the root on, are the
//! tree's nodes level by level. What waits for credits is a message that the history keeps anyway,
//! or an announced one. A receiver gives credits back when it has passed on half of them. Links
//! that lose messages lose credits too: then one message goes without, now and then, until some
//! come.

use std::collections::VecDeque;

use dhole_model::{NodeId, NodeMap};

use super::message::{Cast, GroupMessage};
use super::{Body, Group, GroupCommand};

/// One member's links to and from its neighbours in all trees.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tree<B> {
    down: NodeMap<Down<B>>,
    up: NodeMap<Up>,
}

/// A link to a member to which messages are passed on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Down<B> {
    /// The last message on this link.
    sent: u64,
    /// The last one that the receiver has passed on, as far as it has said so.
    credited: u64,
    /// What waits for credits, with the roots.
    waiting: VecDeque<(NodeId, Cast<B>)>,
}

/// A link from a member that passes messages on to this one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Up {
    /// The last message that came.
    taken: u64,
    /// The last one for which credit was given back.
    credited: u64,
}

impl<B> Tree<B> {
    pub(super) fn new() -> Tree<B> {
        Tree {
            down: NodeMap::new(),
            up: NodeMap::new(),
        }
    }

    /// Whether messages wait for credits.
    pub(super) fn waits(&self) -> bool {
        self.down.values().any(|link| !link.waiting.is_empty())
    }

    /// How many messages wait for credits.
    pub(super) fn waiting(&self) -> usize {
        self.down.values().map(|link| link.waiting.len()).sum()
    }
}

impl<B> Down<B> {
    /// The next message, with its number on the link.
    fn next(&mut self) -> Option<(NodeId, u64, Cast<B>)> {
        let (root, cast) = self.waiting.pop_front()?;
        self.sent += 1;
        Some((root, self.sent, cast))
    }
}

impl<B: Body> Group<B> {
    /// Sends a message to all other members: itself, or along the tree.
    pub(super) fn multicast(&mut self, cast: Cast<B>, out: &mut Vec<GroupCommand<B>>) {
        let others = self.view.members.len() - 1;
        match self.settings.fanout {
            Some(fanout) if others > fanout as usize && !self.settings.multicast => {
                self.pass_on(self.me, &cast, out);
            }
            _ if others > 0 => {
                let message = cast.into_message(self.view.id);
                out.push(GroupCommand::SendAll { message });
            }
            _ => {}
        }
    }

    /// Where a member is in the tree of a root, level by level.
    fn place(&self, root: NodeId, node: NodeId) -> Option<usize> {
        let members = &self.view.members;
        let place = |node| members.iter().position(|other| *other == node);
        let (root, node) = (place(root)?, place(node)?);
        Some((node + members.len() - root) % members.len())
    }

    /// The most messages that a sound group has wait on one link.
    fn most_waiting(&self) -> usize {
        (self.peers.len() + 1) * 2 * self.settings.window as usize
    }

    /// Passes a message on to the next members of the tree.
    fn pass_on(&mut self, root: NodeId, cast: &Cast<B>, out: &mut Vec<GroupCommand<B>>) {
        let fanout = self.settings.fanout.unwrap_or(1).max(1) as usize;
        let Some(place) = self.place(root, self.me) else {
            return;
        };
        let members = &self.view.members;
        let start = members.iter().position(|node| *node == root).unwrap_or(0);
        let below = fanout * place + 1..=fanout * place + fanout;
        let below = below.filter(|place| *place < members.len());
        let most = self.most_waiting();
        let below: Vec<NodeId> = below
            .map(|place| members[(start + place) % members.len()])
            .collect();
        for to in below {
            let link = self.tree.down.get_or_insert(
                to,
                Down {
                    sent: 0,
                    credited: 0,
                    waiting: VecDeque::new(),
                },
            );
            // Where messages are lost, credits are too, and what is sent again meanwhile waits as
            // well: who misses what is not passed on asks for it.
            if self.settings.reliable || link.waiting.len() < most {
                link.waiting.push_back((root, cast.clone()));
            }
            self.spend_credits(to, out);
        }
    }

    /// Sends what waits on a link as far as credits go.
    fn spend_credits(&mut self, to: NodeId, out: &mut Vec<GroupCommand<B>>) {
        let view = self.view.id;
        let credits = u64::from(self.settings.credits.max(1));
        let Some(down) = self.tree.down.get_mut(&to) else {
            return;
        };
        while down.sent < down.credited + credits {
            let Some((root, link, cast)) = down.next() else {
                return;
            };
            let message = GroupMessage::Relay {
                view,
                root,
                link,
                cast,
            };
            out.push(GroupCommand::Send { to, message });
        }
    }

    /// Sends one message on each link that waits, for its credits may be lost.
    pub(super) fn send_without_credit(&mut self, out: &mut Vec<GroupCommand<B>>) {
        let waits = self
            .tree
            .down
            .iter()
            .filter(|(_, link)| !link.waiting.is_empty());
        for to in waits.map(|(to, _)| *to).collect::<Vec<_>>() {
            let credits = u64::from(self.settings.credits.max(1));
            if let Some(link) = self.tree.down.get_mut(&to) {
                link.credited = link.credited.max((link.sent + 1).saturating_sub(credits));
            }
            self.spend_credits(to, out);
        }
    }

    /// Takes a message that is passed on along a tree, and passes it on.
    pub(super) fn take_relayed(
        &mut self,
        from: NodeId,
        root: NodeId,
        number: u64,
        cast: Cast<B>,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        let fanout = self.settings.fanout.unwrap_or(1).max(1) as usize;
        let places = (self.place(root, self.me), self.place(root, from));
        let (Some(mine), Some(above)) = places else {
            return Err("a message of a tree whose root is no member");
        };
        if mine == 0 || (mine - 1) / fanout != above {
            return Err("a message from a node that is not above this one in the tree");
        }
        if self.settings.reliable && self.tree.waiting() > fanout * self.most_waiting() {
            return Err("more messages to pass on than there may be");
        }
        let message = cast.clone().into_message(self.view.id);
        message.check(root, self.peers.len(), &self.settings)?;
        self.take_in_view(root, message, out)?;
        self.pass_on(root, &cast, out);
        let half = u64::from(self.settings.credits / 2).max(1);
        let link = self.tree.up.get_or_default(from);
        link.taken = link.taken.max(number);
        if link.taken - link.credited >= half {
            link.credited = link.taken;
            let message = GroupMessage::Credit {
                view: self.view.id,
                link: link.taken,
            };
            out.push(GroupCommand::Send { to: from, message });
        }
        Ok(())
    }

    /// A member below has passed on what came over a link.
    pub(super) fn take_credit(
        &mut self,
        from: NodeId,
        number: u64,
        out: &mut Vec<GroupCommand<B>>,
    ) -> Result<(), &'static str> {
        match self.tree.down.get_mut(&from) {
            Some(link) if number <= link.sent => link.credited = link.credited.max(number),
            _ => return Err("credit for what was not sent"),
        }
        self.spend_credits(from, out);
        Ok(())
    }
}
