//! Mailboxes in simulated clusters, under seeds of jitter: nodes send and receive at random. The
//! messages of each sender come whole and in order, and what was written before a message was sent
//! is read after it. A node may crash: then a prefix comes of what it has sent, and its loss is
//! told.

use dhole::mailbox::{MailboxError, Mailboxes};
use dhole::sim::{Crash, Settings};
use dhole::{Config, NodeId, Object, Ref, Result, Worker, on};
use dhole_model::Variants;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How a run is made.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes.
    pub nodes: u16,
    /// Messages that each node sends.
    pub messages: usize,
    /// The room for messages of one sender.
    pub room: usize,
    /// Nodes that crash, of a run that survives that.
    pub crashes: u16,
}

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Variants)]
pub enum Planted {
    /// Nothing.
    Nothing,
    /// A mailbox gives messages out in the order of their arrival.
    ByArrival,
    /// A full mailbox drops what comes.
    Drops,
    /// What a message tells of is written after it is sent.
    WrittenLate,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Letter {
    /// How many its sender sent to the receiver before it.
    number: usize,
    /// How many its sender sent in all, which it has written there.
    written: u64,
    at: Option<Ref<u64>>,
}

/// A mailbox that is wrong.
#[derive(Serialize, Deserialize, Default)]
struct Wrong {
    waiting: VecDeque<(NodeId, Letter)>,
    room: Option<usize>,
}

#[dhole::object]
impl Wrong {
    pub fn push(&mut self, from: NodeId, letter: Letter) {
        if self.room.is_none_or(|room| self.waiting.len() < room) {
            self.waiting.push_back((from, letter));
        }
    }

    #[when(self.waiting.iter().any(|(it, _)| it == from))]
    pub fn pop_from(&mut self, from: NodeId) -> Option<Letter> {
        let place = self.waiting.iter().position(|(it, _)| *it == from)?;
        self.waiting.remove(place).map(|(_, letter)| letter)
    }
}

/// What nodes send each other by.
#[derive(Clone)]
enum Mail {
    Right(Mailboxes<Letter>),
    Wrong(Vec<Object<Wrong>>),
}

impl Mail {
    fn make(w: &mut Worker<'_>, shape: Shape, planted: Planted) -> Result<Mail> {
        let room = match planted {
            Planted::Nothing | Planted::WrittenLate => {
                let mail = w.once(|w| Ok(Mailboxes::bounded(w, shape.room)?))?;
                return Ok(Mail::Right(mail));
            }
            Planted::ByArrival => None,
            Planted::Drops => Some(shape.room),
        };
        let each = (0..shape.nodes).map(|node| {
            w.once(|w| {
                let waiting = VecDeque::new();
                Ok(w.new_object(on(NodeId(node)), Wrong { waiting, room })?)
            })
        });
        Ok(Mail::Wrong(each.collect::<Result<_>>()?))
    }

    fn send(
        &self,
        w: &mut Worker<'_>,
        to: NodeId,
        letter: Letter,
    ) -> std::result::Result<(), MailboxError> {
        match self {
            Mail::Right(mail) => mail.send(w, to, letter),
            Mail::Wrong(all) => {
                let from = w.node();
                drop(all[to.index()].start_push(w, from, letter)?);
                Ok(())
            }
        }
    }

    /// The next message of a node, or none where it is lost and there is no other.
    fn recv_from(&self, w: &mut Worker<'_>, from: NodeId) -> Result<Option<Letter>> {
        match self {
            Mail::Right(mail) => match mail.recv_from(w, from) {
                Err(MailboxError::Lost { other, .. }) if other == from => Ok(None),
                letter => Ok(Some(letter?)),
            },
            Mail::Wrong(all) => Ok(all[w.node().index()].pop_from(w, from)?),
        }
    }
}

/// What a node does next.
#[derive(Clone, Copy, Debug)]
enum Act {
    SendTo(NodeId),
    ReceiveFrom(NodeId),
}

/// The acts of all nodes. As many messages are received as are sent; of each pair of nodes, no
/// receive comes before its message in the list.
fn acts(shape: Shape, random: &mut Random) -> Vec<Vec<Act>> {
    let mut acts = vec![Vec::new(); usize::from(shape.nodes)];
    let mut waiting: Vec<(NodeId, NodeId)> = Vec::new();
    let mut left = shape.messages * usize::from(shape.nodes);
    while left > 0 || !waiting.is_empty() {
        if left > 0 && random.random_bool(0.6) {
            left -= 1;
            let [from, to] = [(); 2].map(|()| NodeId(random.random_range(0..shape.nodes)));
            acts[from.index()].push(Act::SendTo(to));
            waiting.push((from, to));
        } else if !waiting.is_empty() {
            let place = random.random_range(0..waiting.len());
            let (from, to) = waiting.swap_remove(place);
            acts[to.index()].push(Act::ReceiveFrom(from));
        }
    }
    acts
}

/// Runs a random program under a random schedule.
///
/// # Errors
/// The error in what the nodes received.
pub fn run(shape: Shape, seed: u64, planted: Planted) -> std::result::Result<(), String> {
    let mut random = Random::seed_from_u64(seed);
    let programs = acts(shape, &mut random);
    let mut settings = Settings::fixed_cost(usize::from(shape.nodes));
    settings.seed = seed;
    settings.network.jitter = 1.0;
    for _ in 0..shape.crashes {
        let node = NodeId(random.random_range(0..shape.nodes));
        let at_ns = random.random_range(20_000..400_000);
        settings.crashes.push(Crash { node, at_ns });
    }
    let survives = shape.crashes > 0;
    let ran = Config::nodes(1).survive(survives).simulate(settings, |w| {
        let mail = Mail::make(w, shape, planted)?;
        perform(w, &mail, &programs[w.node().index()], planted)
    });
    let run = ran.map_err(|error| error.to_string())?;
    let left = |words: &&String| words.contains("never received");
    match run.report.warnings.iter().find(left) {
        Some(words) if !survives => Err(words.clone()),
        _ => Ok(()),
    }
}

fn perform(w: &mut Worker<'_>, mail: &Mail, acts: &[Act], planted: Planted) -> Result<()> {
    let mine = w.alloc(0_u64);
    let (mut sent, mut received) = (vec![0; w.nodes()], vec![0; w.nodes()]);
    let mut written = 0;
    for act in acts {
        w.work(w.random() % 20_000);
        match *act {
            Act::SendTo(to) => {
                written += 1;
                if planted != Planted::WrittenLate && !w.survives() {
                    *mine.get_mut(w) = written;
                }
                let letter = Letter {
                    number: sent[to.index()],
                    written,
                    // What a lost node has written last cannot be read.
                    at: (!w.survives()).then_some(mine),
                };
                sent[to.index()] += 1;
                match mail.send(w, to, letter) {
                    Err(MailboxError::Lost { .. }) if w.survives() => {}
                    sent => sent?,
                }
                if planted == Planted::WrittenLate {
                    *mine.get_mut(w) = written;
                }
            }
            Act::ReceiveFrom(from) => {
                let Some(letter) = mail.recv_from(w, from)? else {
                    continue;
                };
                let next = &mut received[from.index()];
                if letter.number != *next {
                    let me = w.node();
                    return Err(format!("{from} to {me}: {letter:?}, where {next} is next").into());
                }
                *next += 1;
                if let Some(at) = letter.at
                    && at.read(w) < letter.written
                {
                    return Err(format!("{letter:?} of {from}, and {} there", at.read(w)).into());
                }
            }
        }
    }
    Ok(())
}
