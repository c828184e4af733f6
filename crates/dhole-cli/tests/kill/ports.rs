//! A program over a bare port: what the port itself makes of a death.

use std::time::Duration;
use std::{env, process};

use dhole_join::Membership;
use dhole_model::NodeId;
use dhole_net::{Loss, Port, SendError};

use crate::strike::{WHEN, happens, introduce, strikes};
use crate::{ALONE, NODES, TOLD};

/// Who dies.
const VICTIM: NodeId = NodeId(1);
/// One node of the program.
struct Member {
    port: Box<dyn Port>,
    heard: Vec<(NodeId, u8)>,
}

const ARRIVED: u8 = 1;
const PASS: u8 = 2;
const WANTS_LOCK: u8 = 3;
const HAS_LOCK: u8 = 4;
const GIVES_LOCK: u8 = 5;
const FETCH: u8 = 6;
const VALUE: u8 = 7;
const PASSED: u8 = 8;
/// And the number of the node that is lost.
const LOST: u8 = 100;

impl Member {
    fn me(&self) -> NodeId {
        self.port.me()
    }

    fn say(&mut self, to: NodeId, word: u8) {
        loop {
            match self.port.send(to, &[&[word]]) {
                Ok(()) => return,
                Err(SendError::Busy { .. }) => self.port.park(Duration::from_millis(1)),
                Err(SendError::Lost { .. }) => self.end_if_lost(),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Waits until this word has come from so many nodes.
    fn hear(&mut self, word: u8, count: usize) -> NodeId {
        loop {
            let heard = &mut self.heard;
            self.port
                .poll(&mut |from, frame| heard.push((from, frame[0])));
            let mut of_it = self.heard.iter().filter(|(_, w)| *w == word);
            if of_it.clone().count() >= count {
                let from = of_it.next().map_or(self.me(), |(from, _)| *from);
                self.heard.retain(|(_, w)| *w != word);
                return from;
            }
            self.end_if_lost();
            self.port.park(Duration::from_millis(100));
        }
    }

    /// A node that was told of a loss ends, and says to the others why: so none of them takes it
    /// for the cause.
    fn end_if_lost(&mut self) {
        let (me, heard) = (self.me(), &mut self.heard);
        self.port
            .poll(&mut |from, frame| heard.push((from, frame[0])));
        let mut lost = None;
        self.port.lost(&mut |peer, loss| {
            // It has heard the last word of node 0 sooner than this node.
            if loss == Loss::Left {
                return;
            }
            let first: &mut Option<_> = &mut lost;
            first.get_or_insert((peer, loss.to_string()));
        });
        let mut told = self.heard.iter().filter(|(_, word)| *word >= LOST);
        if let Some((from, word)) = told.next() {
            let peer = NodeId::at(usize::from(*word - LOST));
            lost = Some((peer, format!("as {from} says")));
        }
        let Some((peer, how)) = lost else {
            return;
        };
        println!("{me} lost {peer}: {how}");
        for other in (0..NODES).map(NodeId::at).filter(|n| *n != me) {
            // Who is gone need not be told.
            let _ = self.port.send(other, &[&[LOST + peer.0 as u8]]);
        }
        self.port.close(Duration::from_secs(1));
        process::exit(TOLD);
    }

    fn barrier(&mut self) {
        let zero = NodeId(0);
        if self.me() == zero {
            self.hear(ARRIVED, NODES - 1);
            (1..NODES).for_each(|node| self.say(NodeId::at(node), PASS));
        } else {
            self.say(zero, ARRIVED);
            self.hear(PASS, 1);
        }
    }
}

#[test]
fn member() {
    if env::var(WHEN).is_err() {
        return;
    }
    introduce();
    if strikes("at start-up") {
        happens(|| ());
    }
    let membership = Membership::from_env().unwrap().unwrap();
    let me = membership.node();
    let port = match membership.join() {
        Ok(port) => port,
        Err(error) => {
            println!("{me} did not join: {error}");
            process::exit(ALONE);
        }
    };
    let mut member = Member {
        port,
        heard: Vec::new(),
    };
    member.barrier();
    let mut member = Some(member);
    if strikes("in a barrier") {
        happens(|| drop(member.take()));
    }
    let mut it = member.take().unwrap();
    it.barrier();

    // Node 0 hands out a lock, first to the victim.
    match me {
        NodeId(0) => {
            assert_eq!(it.hear(WANTS_LOCK, 1), VICTIM);
            it.say(VICTIM, HAS_LOCK);
            it.hear(GIVES_LOCK, 1);
        }
        VICTIM => {
            it.say(NodeId(0), WANTS_LOCK);
            it.hear(HAS_LOCK, 1);
            let mut holder = Some(it);
            if strikes("with a lock held") {
                happens(|| drop(holder.take()));
            }
            it = holder.take().unwrap();
            it.say(NodeId(0), GIVES_LOCK);
        }
        _ => {}
    }

    // All others fetch from the victim.
    if me == VICTIM {
        it.hear(FETCH, NODES - 1);
        let mut owner = Some(it);
        if strikes("during a fetch") {
            happens(|| drop(owner.take()));
        }
        it = owner.take().unwrap();
        it.say(NodeId(0), VALUE);
        it.say(NodeId(2), VALUE);
    } else {
        it.say(VICTIM, FETCH);
        it.hear(VALUE, 1);
    }
    it.barrier();

    // Whoever has not yet passed the barrier would find the victim lost in it.
    if me == VICTIM {
        it.hear(PASSED, NODES - 1);
    } else {
        it.say(VICTIM, PASSED);
    }
    let mut last = Some(it);
    if strikes("at exit") {
        happens(|| drop(last.take()));
    }
    last.take().unwrap().port.close(Duration::from_secs(5));
    println!("{me} is done");
}
