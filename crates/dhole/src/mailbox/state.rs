//! The state of a mailbox and its operations.

use std::collections::VecDeque;

use dhole_model::{CallSite, NodeId};
use serde::{Deserialize, Serialize};

use crate::job_queue::ByValue;

/// The messages that wait in the mailbox of one node.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: ByValue")]
pub(super) struct Mailbox<T: ByValue> {
    /// What each node has sent.
    senders: Vec<Sender<T>>,
    /// As many messages have come.
    come: u64,
    /// The most messages of one sender that may wait.
    most: u64,
}

/// What one node has sent.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: ByValue")]
struct Sender<T: ByValue> {
    /// The number of its next message: as many have come.
    next: u64,
    /// Those that wait, in the order of their numbers.
    waiting: VecDeque<Message<T>>,
    /// Where in the program the last one was sent.
    site: CallSite,
    /// Whether the node is lost.
    is_lost: bool,
}

/// A message that waits.
#[derive(Serialize, Deserialize)]
#[serde(bound = "T: ByValue")]
struct Message<T: ByValue> {
    /// How many messages of all nodes had come before it.
    place: u64,
    /// Where in the program it was sent.
    site: CallSite,
    value: T,
}

impl<T: ByValue> Mailbox<T> {
    /// An empty mailbox in a run of so many nodes.
    pub fn new(nodes: usize, most: usize) -> Mailbox<T> {
        let sender = |_| Sender {
            next: 0,
            waiting: VecDeque::new(),
            site: CallSite::runtime("an unknown place"),
            is_lost: false,
        };
        Mailbox {
            senders: (0..nodes).map(sender).collect(),
            come: 0,
            most: most as u64,
        }
    }
}

#[dhole_macros::object(crate = "dhole_node")]
impl<T: ByValue> Mailbox<T> {
    /// Puts a message in: the one of this number of its sender, which was sent there in the program
    /// or where the one before it was. It waits for the messages before it, and for room.
    #[when(self.may_come(*from, *number))]
    pub fn push(&mut self, from: NodeId, number: u64, site: Option<CallSite>, value: T) {
        // What no sound node sends.
        let Some(sender) = self.senders.get_mut(from.index()) else {
            return;
        };
        if number != sender.next {
            return;
        }
        sender.next += 1;
        sender.site = site.unwrap_or(sender.site);
        sender.waiting.push_back(Message {
            place: self.come,
            site: sender.site,
            value,
        });
        self.come += 1;
    }

    /// Waits for a message.
    #[when(self.has_message())]
    pub fn receive(&mut self) -> Option<(NodeId, T)> {
        self.pop()
    }

    /// The message that came first.
    pub fn pop(&mut self) -> Option<(NodeId, T)> {
        let (node, _) = self.first()?;
        let value = self.senders[node].waiting.pop_front()?.value;
        Some((NodeId::at(node), value))
    }

    /// Waits for a message of this node. `None` if it is lost, and has sent no other.
    #[when(self.has_message_of(*from))]
    pub fn receive_from(&mut self, from: NodeId) -> Option<T> {
        let sender = self.senders.get_mut(from.index())?;
        sender.waiting.pop_front().map(|message| message.value)
    }

    #[on_loss]
    fn lose(&mut self, node: NodeId) {
        if let Some(sender) = self.senders.get_mut(node.index()) {
            sender.is_lost = true;
        }
    }

    /// Says what was never received.
    #[on_end]
    fn left(&self) -> Option<String> {
        let (node, first) = self.first()?;
        let (from, site) = (NodeId::at(node), first.site);
        let left: usize = self.senders.iter().map(|it| it.waiting.len()).sum();
        let were = if left == 1 {
            "message was"
        } else {
            "messages were"
        };
        Some(format!(
            "{left} {were} never received. {from} sent the first of them at {site}"
        ))
    }

    /// Whether a message need not wait: it is its sender's next one, and there is room for it. What
    /// no sound node sends does not wait either, and is dropped.
    fn may_come(&self, from: NodeId, number: u64) -> bool {
        let Some(sender) = self.senders.get(from.index()) else {
            return true;
        };
        let is_next = number == sender.next && (sender.waiting.len() as u64) < self.most;
        is_next || number < sender.next
    }

    pub(super) fn has_message(&self) -> bool {
        self.first().is_some()
    }

    /// Whether a node need not wait for a message of this one: there is one, or will be none.
    pub(super) fn has_message_of(&self, from: NodeId) -> bool {
        let sender = self.senders.get(from.index());
        sender.is_none_or(|it| it.is_lost || !it.waiting.is_empty())
    }

    /// The message that came first, and its sender.
    fn first(&self) -> Option<(usize, &Message<T>)> {
        let senders = self.senders.iter().enumerate();
        let heads = senders.filter_map(|(node, it)| Some((node, it.waiting.front()?)));
        heads.min_by_key(|(_, message)| message.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    fn push(mailbox: &mut Mailbox<u8>, from: NodeId, number: u64, value: u8) -> bool {
        let may = mailbox.may_come(from, number);
        if may {
            mailbox.push(from, number, None, value);
        }
        may
    }

    #[test]
    fn messages_of_one_node_come_in_their_order_and_all_in_that_of_arrival() {
        let mut mailbox = Mailbox::new(2, 9);
        assert!(!push(&mut mailbox, A, 1, 11), "one is missing before it");
        assert!(push(&mut mailbox, B, 0, 20) && push(&mut mailbox, A, 0, 10));
        assert!(push(&mut mailbox, A, 1, 11));
        assert_eq!(mailbox.receive_from(A), Some(10));
        assert_eq!(mailbox.pop(), Some((B, 20)));
        assert_eq!((mailbox.pop(), mailbox.pop()), (Some((A, 11)), None));
    }

    #[test]
    fn a_full_mailbox_takes_the_next_message_of_every_other_node() {
        let mut mailbox = Mailbox::new(2, 2);
        assert!((0..2).all(|number| push(&mut mailbox, A, number, 0)));
        assert!(!push(&mut mailbox, A, 2, 0));
        assert!(push(&mut mailbox, B, 0, 1));
        assert_eq!(mailbox.receive_from(A), Some(0));
        assert!(push(&mut mailbox, A, 2, 0));
    }

    #[test]
    fn what_no_sound_node_sends_is_dropped() {
        let mut mailbox = Mailbox::new(2, 2);
        assert!(push(&mut mailbox, NodeId(7), 0, 1));
        assert!(push(&mut mailbox, A, 0, 1) && push(&mut mailbox, A, 0, 2));
        assert_eq!((mailbox.pop(), mailbox.pop()), (Some((A, 1)), None));
        assert_eq!(mailbox.receive_from(NodeId(7)), None);
    }

    #[test]
    fn who_waits_for_a_lost_node_gets_what_it_has_sent_and_then_nothing() {
        let mut mailbox = Mailbox::new(2, 2);
        assert!(push(&mut mailbox, A, 0, 1));
        mailbox.lose(A);
        assert!(mailbox.has_message_of(A));
        assert_eq!(mailbox.receive_from(A), Some(1));
        assert!(mailbox.has_message_of(A) && !mailbox.has_message());
        assert_eq!(mailbox.receive_from(A), None);
        assert!(!mailbox.has_message_of(B));
    }

    #[test]
    fn what_is_left_is_told_with_the_line_of_the_first() {
        let mut mailbox = Mailbox::new(2, 9);
        assert_eq!(mailbox.left(), None);
        let site = CallSite::runtime("the line");
        mailbox.push(B, 0, Some(site), 1);
        mailbox.push(B, 1, None, 2);
        let words = mailbox.left().unwrap_or_default();
        assert_eq!(
            words,
            "2 messages were never received. node 1 sent the first of them at the line"
        );
    }
}
