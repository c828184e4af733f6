//! Mailboxes: messages between nodes.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use dhole::mailbox::{MailboxError, Mailboxes};
use dhole::{Counters, MessageKind, NodeId, Ref, Result, Share, Worker, on, op};
use serde::{Deserialize, Serialize};

use super::{assert_says, fail, succeed};
use crate::{ByMessage, Platform};

/// The next node of a ring, and the one before.
fn neighbours(w: &Worker<'_>) -> (NodeId, NodeId) {
    let (me, nodes) = (w.node().index(), w.nodes());
    let at = |place| NodeId::at(place % nodes);
    (at(me + 1), at(me + nodes - 1))
}

/// All nodes send to all, themselves too. Each gets what each other sent, in that order.
pub fn messages_of_a_node_arrive_in_the_order_of_sending(on_: &dyn Platform) {
    const EACH: usize = 150;
    succeed(on_, 3, |w| {
        for way in 0..3 {
            let mail = w.once(|w| Ok(Mailboxes::<(usize, String)>::new(w)?))?;
            let me = w.node();
            for number in 0..EACH {
                for to in (0..w.nodes()).map(NodeId::at) {
                    mail.send(w, to, (number, format!("{me} to {to}")))?;
                }
            }
            let mut next = vec![0; w.nodes()];
            for place in 0..EACH * w.nodes() {
                let (from, (number, words)) = match way {
                    0 => mail.recv(w)?,
                    1 => {
                        let from = NodeId::at(place / EACH);
                        (from, mail.recv_from(w, from)?)
                    }
                    _ => loop {
                        match mail.try_recv(w)? {
                            Some(message) => break message,
                            None => w.pause()?,
                        }
                    },
                };
                assert_eq!(number, next[from.index()], "{from} to {me}");
                assert_eq!(words, format!("{from} to {me}"));
                next[from.index()] += 1;
            }
            assert!(mail.try_recv(w)?.is_none());
            w.barrier()?;
            if me == NodeId(1) {
                mail.free(w)?;
            }
            w.barrier()?;
            let freed = mail.send(w, me, (0, String::new()));
            assert!(matches!(freed, Err(MailboxError::Object(_))), "{freed:?}");
        }
        Ok(())
    });
}

/// A number goes round; each node writes it into an object of its own and sends a reference on.
pub fn what_was_written_before_a_message_is_read_after_it(on_: &dyn Platform) {
    #[derive(Share, Clone, Copy)]
    struct Stop {
        number: u64,
        before: Option<Ref<Stop>>,
    }
    succeed(on_, 3, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<Ref<Stop>>::new(w)?))?;
        let (right, left) = neighbours(w);
        let mine = w.alloc(Stop {
            number: 0,
            before: None,
        });
        for round in 0..20 {
            let before = match w.node() == NodeId(0) && round == 0 {
                true => None,
                false => Some(mail.recv_from(w, left)?),
            };
            let number = before.map_or(0, |before| before.get(w).number);
            assert_eq!(number as usize, round * w.nodes() + w.node().index());
            *mine.get_mut(w) = Stop {
                number: number + 1,
                before,
            };
            mail.send(w, right, mine)?;
        }
        if w.node() == NodeId(0) {
            let last = mail.recv_from(w, left)?;
            assert_eq!(last.get(w).number, 60);
        }
        w.barrier()?;
        Ok(())
    });
}

fn of_operations(counters: &Counters) -> u64 {
    counters.sent(MessageKind::OperationRequest) + counters.sent(MessageKind::OperationReply)
}

/// A message takes a request and a reply; one to the own node, and a receive, take none. What is
/// sent in a row takes less.
pub fn a_message_takes_two_messages_and_a_receive_none(on_: &dyn Platform) {
    const ROUNDS: u64 = 10;
    const IN_A_ROW: u64 = 500;
    succeed(&ByMessage(on_), 3, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
        let (right, left) = neighbours(w);
        let before = of_operations(&w.counters());
        w.barrier()?;
        for round in 0..ROUNDS {
            mail.send(w, right, round)?;
            assert_eq!(mail.recv(w)?, (left, round));
            w.barrier()?; // and so no message overtakes another
        }
        let me = w.node();
        mail.send(w, me, 7)?;
        assert_eq!(mail.recv(w)?, (me, 7));
        assert_eq!(mail.try_recv(w)?, None);
        w.barrier()?;
        let all = w.all_reduce(of_operations(&w.counters()) - before, |a, b| a + b)?;
        assert_eq!(all, 2 * ROUNDS * w.nodes() as u64);
        let before = of_operations(&w.counters());
        w.barrier()?;
        (0..IN_A_ROW).try_for_each(|number| mail.send(w, right, number))?;
        for number in 0..IN_A_ROW {
            assert_eq!(mail.recv(w)?, (left, number));
        }
        w.barrier()?;
        let all = w.all_reduce(of_operations(&w.counters()) - before, |a, b| a + b)?;
        // Where messages overtake each other, some are told that they wait.
        assert!(all <= 3 * IN_A_ROW * w.nodes() as u64, "{all}");
        Ok(())
    });
}

/// A mailbox has room for two messages of each node. A node that has sent more gets on; its
/// messages wait, and those of another node pass them.
pub fn a_full_mailbox_holds_up_its_sender_and_no_other(on_: &dyn Platform) {
    succeed(on_, 3, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::bounded(w, 2)?))?;
        match w.node().0 {
            0 => (0..1000).try_for_each(|number| mail.send(w, NodeId(2), number))?,
            1 => (0..2).try_for_each(|number| mail.send(w, NodeId(2), number))?,
            _ => {
                w.barrier()?;
                assert_eq!(mail.recv_from(w, NodeId(1))?, 0);
                for number in 0..1000 {
                    assert_eq!(mail.recv_from(w, NodeId(0))?, number);
                }
                assert_eq!(mail.recv(w)?, (NodeId(1), 1));
                return Ok(w.barrier()?);
            }
        }
        w.barrier()?;
        Ok(w.barrier()?)
    });
}

/// Nodes that have filled each other's mailboxes can still receive.
pub fn who_has_filled_a_mailbox_can_still_receive(on_: &dyn Platform) {
    succeed(on_, 2, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::bounded(w, 1)?))?;
        let (other, _) = neighbours(w);
        (0..500).try_for_each(|number| mail.send(w, other, number))?;
        w.barrier()?;
        for number in 0..500 {
            assert_eq!(mail.recv(w)?, (other, number));
        }
        Ok(())
    });
}

/// The processes of a node have one mailbox.
pub fn processes_of_a_node_share_its_mailbox(on_: &dyn Platform) {
    if on_.coherence().properties().keeps_pages() {
        return; // no processes there
    }
    fn answer(w: &mut Worker<'_>, mail: Mailboxes<u64>) -> Result<u64> {
        let (from, number) = mail.recv(w)?;
        mail.send(w, from, number + 1)?;
        Ok(number)
    }
    succeed(on_, 2, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
        if w.node() == NodeId(0) {
            let spawn = |_| w.spawn(on(NodeId(1)), mail, op!(answer));
            let started = (0..3)
                .map(spawn)
                .collect::<std::result::Result<Vec<_>, _>>()?;
            (0..3).try_for_each(|number| mail.send(w, NodeId(1), 10 * number))?;
            let mut answers = Vec::new();
            for _ in 0..3 {
                answers.push(mail.recv_from(w, NodeId(1))?);
            }
            answers.sort_unstable();
            assert_eq!(answers, [1, 11, 21]);
            for process in started {
                process.join(w)?;
            }
        }
        w.barrier()?;
        Ok(())
    });
}

/// A node waits for a message that no node sends.
pub fn a_receive_that_no_node_satisfies_is_a_deadlock_that_names_it(on_: &dyn Platform) {
    for nodes in [1, 3] {
        for from in [false, true] {
            let error = fail(on_, nodes, |w| {
                let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
                if w.node().index() + 1 < w.nodes() {
                    return Ok(());
                }
                match from {
                    false => drop(mail.recv(w)?),
                    true => drop(mail.recv_from(w, NodeId(0))?),
                }
                Ok(())
            });
            let word = ["Mailboxes::recv of", "Mailboxes::recv_from(node 0)"][usize::from(from)];
            assert_says(&error, &[word, "mailboxes.rs:"]);
            if nodes == 1 {
                let word = ["for a message in", "for a message of node 0 in"][usize::from(from)];
                assert_says(
                    &error,
                    &[word, "the mailbox of node 0", "no node can send one"],
                );
            }
        }
    }
    // A full mailbox that nobody empties.
    let error = fail(on_, 2, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::bounded(w, 1)?))?;
        if w.node() == NodeId(0) {
            (0..2).try_for_each(|number| mail.send(w, NodeId(1), number))?;
        }
        Ok(())
    });
    assert_says(&error, &["Mailbox::push", "mailboxes.rs:"]);
}

/// What is left in mailboxes at the end is told, with the line that sent it.
pub fn messages_that_no_node_receives_are_a_warning_with_their_line(on_: &dyn Platform) {
    let sent_at = AtomicUsize::new(0);
    let outcome = succeed(on_, 2, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<u64>::new(w)?))?;
        if w.node() == NodeId(0) {
            mail.send(w, NodeId(1), 1)?;
            for number in 2..4 {
                sent_at.store(line!() as usize + 1, SeqCst);
                mail.send(w, NodeId(1), number)?;
            }
        } else {
            assert_eq!(mail.recv(w)?, (NodeId(0), 1));
        }
        Ok(())
    });
    let told = |words: &&String| words.contains("never received");
    let warnings: Vec<_> = outcome.warnings.iter().filter(told).collect();
    let [warning] = warnings[..] else {
        panic!("{:?}", outcome.warnings)
    };
    let line = format!("mailboxes.rs:{}:", sent_at.into_inner());
    let words = [
        "on node 1",
        "2 messages were",
        "node 0 sent the first of them",
        &line,
    ];
    words
        .iter()
        .for_each(|word| assert!(warning.contains(word), "{word}: {warning}"));
}

/// Values that cannot be written, and nodes that there are not.
pub fn messages_that_cannot_be_are_errors_that_say_why(on_: &dyn Platform) {
    /// Some cannot be written as bytes.
    #[derive(Clone)]
    struct Fickle(u64);

    impl Serialize for Fickle {
        fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
            match self.0 {
                13 => Err(serde::ser::Error::custom("not this one")),
                number => number.serialize(to),
            }
        }
    }

    impl<'de> Deserialize<'de> for Fickle {
        fn deserialize<D: serde::Deserializer<'de>>(
            from: D,
        ) -> std::result::Result<Fickle, D::Error> {
            u64::deserialize(from).map(Fickle)
        }
    }

    succeed(on_, 2, |w| {
        let mail = w.once(|w| Ok(Mailboxes::<Fickle>::new(w)?))?;
        let (other, _) = neighbours(w);
        let far = NodeId(9);
        for error in [
            mail.send(w, far, Fickle(1)).err(),
            mail.recv_from(w, far).err(),
        ] {
            assert!(
                matches!(error, Some(MailboxError::NoNode { .. })),
                "{error:?}"
            );
            let words = error.map(|it| it.to_string()).unwrap_or_default();
            assert!(
                words.contains("node 9") && words.contains("2 nodes"),
                "{words}"
            );
        }
        // One that is refused leaves no gap.
        for number in 12..15 {
            match mail.send(w, other, Fickle(number)) {
                Err(error) => assert!(error.to_string().contains("the arguments"), "{error}"),
                Ok(()) => assert_ne!(number, 13),
            }
        }
        for number in [12, 14] {
            assert_eq!(mail.recv_from(w, other)?.0, number);
        }
        Ok(())
    });
}
