//! Ports with planted bugs, which the suite must find over every port.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dhole_model::{NodeId, Notify};
use dhole_net::{Layer, Loss, Port, SendError};

use super::Make;

/// A bug of a port, or of the calls, answers, fetches and stores over it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A frame is lost.
    Lose,
    /// A frame comes twice.
    Repeat,
    /// Two frames of one sender change places.
    Overtake,
    /// A byte of a frame is another.
    Spoil,
    /// A frame comes without its end.
    Cut,
    /// A frame comes as if another had sent it.
    Misname,
    /// A frame is taken where there is no room, and dropped.
    DropWhenBusy,
    /// A frame that can never be sent is refused as if there were no room now.
    BusyForEver,
    /// The end is a loss.
    ForgetGoodbye,
    /// A loss is a goodbye.
    TakeLossForGoodbye,
    /// A loss is reported twice.
    TellTwice,
    /// A peer that is given up is not reported.
    KeepLoss,
    /// A sender shows no sign of life.
    Deaf,
    /// An answer belongs to another call.
    MixAnswers,
    /// A refusal is an answer of nothing.
    AnswerRefused,
    /// A one-way call is executed twice.
    TellAgain,
    /// An answer is lost.
    LoseAnswer,
    /// A fetch brings the first contents of the memory.
    FetchStale,
    /// A store writes one byte further on.
    StoreBeside,
    /// A piece of a store is lost.
    LosePiece,
    /// A capability is as good as any other.
    ForgeCapability,
}

/// One in so many frames suffers it.
const ONE_IN: usize = 11;

/// Kinds of frames between those that call and answer, as `dhole-net` has them.
const TELL: u8 = 2;
const ANSWER: u8 = 3;
const REFUSED: u8 = 4;
const FETCH: u8 = 5;
const STORE: u8 = 6;
/// Where in such a frame the call's number begins, the key, and the offset.
const CALL: usize = 8;
const KEY: usize = 16;
const OFFSET: usize = 32;

std::thread_local! {
    static MADE: Cell<Option<(Make, Mistake)>> = const { Cell::new(None) };
}

/// Whether a check fails on ports that make the mistake, for all that they are otherwise sound.
pub fn is_found(make: Make, mistake: Mistake, check: fn(Make)) -> bool {
    MADE.set(Some((make, mistake)));
    let found = std::panic::catch_unwind(|| check(mistaken)).is_err();
    MADE.set(None);
    found
}

fn mistaken(nodes: usize) -> Vec<Box<dyn Port>> {
    let (make, mistake) = MADE.get().expect("a mistake to make");
    let ports = make(nodes).into_iter();
    let port = |port| {
        Box::new(Mistaken {
            port,
            mistake,
            frames: AtomicUsize::new(0),
            held: Mutex::default(),
            key: Mutex::default(),
        }) as _
    };
    ports.map(port).collect()
}

struct Mistaken {
    port: Box<dyn Port>,
    mistake: Mistake,
    frames: AtomicUsize,
    /// A frame that another is to overtake.
    held: Mutex<Option<(NodeId, Vec<u8>)>>,
    /// The key of the first capability that was used.
    key: Mutex<Option<Vec<u8>>>,
}

impl Mistaken {
    /// Whether this frame suffers it.
    fn strikes(&self) -> bool {
        self.frames.fetch_add(1, Ordering::Relaxed) % ONE_IN == ONE_IN - 1
    }

    fn take(&self, from: NodeId, frame: &[u8], take: &mut dyn FnMut(NodeId, &[u8])) {
        let held = self.held.lock().expect("no panic").take();
        if let Some((before, held)) = held {
            take(from, frame);
            return take(before, &held);
        }
        let kind = frame.first().copied().unwrap_or_default();
        let mut own = frame.to_vec();
        match self.mistake {
            Mistake::Lose if self.strikes() => return,
            Mistake::Repeat if self.strikes() => take(from, frame),
            Mistake::Overtake if self.strikes() => {
                *self.held.lock().expect("no panic") = Some((from, own));
                return;
            }
            Mistake::Spoil if !frame.is_empty() && self.strikes() => own[frame.len() / 2] ^= 1,
            Mistake::Cut if self.strikes() => drop(own.pop()),
            Mistake::Misname if self.strikes() => {
                let nodes = self.inner().nodes();
                let other = (0..nodes).map(NodeId::at).find(|n| *n != from);
                return take(other.unwrap_or(from), frame);
            }
            Mistake::MixAnswers if kind == ANSWER && self.strikes() => own[CALL] ^= 1,
            Mistake::AnswerRefused if kind == REFUSED => own[0] = ANSWER,
            Mistake::TellAgain if kind == TELL && self.strikes() => take(from, frame),
            Mistake::LoseAnswer if kind == ANSWER && self.strikes() => return,
            Mistake::FetchStale if kind == ANSWER && self.strikes() => own[16..].fill(0),
            Mistake::StoreBeside if kind == STORE && self.strikes() => own[OFFSET] ^= 1,
            Mistake::LosePiece if kind == STORE && own[2] == 0 && self.strikes() => return,
            Mistake::ForgeCapability if [FETCH, STORE].contains(&kind) => {
                let mut key = self.key.lock().expect("no panic");
                let key = key.get_or_insert_with(|| frame[KEY..OFFSET].to_vec());
                own[KEY..OFFSET].copy_from_slice(key);
            }
            _ => {}
        }
        take(from, &own);
    }
}

impl Layer for Mistaken {
    type Inner = dyn Port;

    fn inner(&self) -> &Self::Inner {
        &*self.port
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        match (self.mistake, self.inner().send_with(to, parts, notify)) {
            (Mistake::DropWhenBusy, Err(SendError::Busy { .. })) => Ok(()),
            (Mistake::BusyForEver, Err(SendError::TooLarge { to, .. })) => {
                Err(SendError::Busy { to })
            }
            (_, sent) => sent,
        }
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.inner()
            .poll(&mut |from, frame| self.take(from, frame, take))
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        match self.mistake {
            Mistake::Deaf => {}
            _ => self.inner().heard(tell),
        }
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.inner()
            .lost(&mut |peer, loss| match (self.mistake, loss) {
                (Mistake::TakeLossForGoodbye, Loss::Broken(_) | Loss::Silent(_)) => {
                    tell(peer, Loss::Left);
                }
                (Mistake::TellTwice, loss) => {
                    tell(peer, loss.clone());
                    tell(peer, loss);
                }
                (Mistake::KeepLoss, _) => {}
                (_, loss) => tell(peer, loss),
            });
    }

    fn close(&self, at_most: Duration) {
        match self.mistake {
            // What is seen of a process that ends without it, once it has sent what it kept back.
            Mistake::ForgetGoodbye => {
                for peer in (0..self.inner().nodes()).map(NodeId::at) {
                    self.inner().give_up(peer, Loss::Left);
                }
            }
            _ => self.inner().close(at_most),
        }
    }
}
