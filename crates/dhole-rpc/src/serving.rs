//! What is done for others: their calls, and their use of memory.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;

use super::calls::Outcome;
use super::frame::{self, Said};
use super::place::{self, Place};
use super::transfer::Landing;
use super::{Rpc, RpcRefusal};
use dhole_net::{Incoming, Loss, SendError};

/// An answer that found no room yet.
enum Answer {
    Bytes(Vec<u8>),
    Refused(RpcRefusal),
    /// The bytes are read when there is room.
    Fetched(Place),
}

/// What this node owes others.
pub(super) struct Due {
    answers: VecDeque<(NodeId, u64, Answer)>,
    /// How many, by peer.
    owed: Vec<usize>,
    /// The last store of each peer that was refused, of which more pieces may come.
    refused: Vec<u64>,
}

impl Due {
    pub fn new(nodes: usize) -> Due {
        Due {
            answers: VecDeque::new(),
            owed: vec![0; nodes],
            refused: vec![0; nodes],
        }
    }

    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}

impl Rpc {
    pub(super) fn poll_with(&self, landing: &mut Option<Landing<'_>>) -> usize {
        self.pay();
        let mut cut_off: Vec<(NodeId, String)> = Vec::new();
        let taken = self.port.poll_in_place(&mut |from, frame| {
            if cut_off.iter().any(|(node, _)| *node == from) {
                return;
            }
            if let Err(what) = self.take(from, frame, landing) {
                cut_off.push((from, what));
            }
        });
        for (node, what) in cut_off {
            self.port.give_up(node, Loss::CutOff(what));
        }
        let mut losses = 0;
        self.port.lost(&mut |node, loss| {
            losses += 1;
            lock(&self.calls).lose(node, &loss);
            let mut due = lock(&self.due);
            due.answers.retain(|(to, _, _)| *to != node);
            due.owed[node.index()] = 0;
        });
        if losses > 0 {
            self.wake_waiting();
        }
        taken + losses
    }

    /// Takes one frame; what no sound node sends.
    fn take(
        &self,
        from: NodeId,
        mut frame: Incoming<'_>,
        landing: &mut Option<Landing<'_>>,
    ) -> Result<(), String> {
        let Some((call, said)) = frame::parse(&mut frame) else {
            return Err(format!("{} bytes that say nothing", frame.len()));
        };
        match said {
            Said::Answer => match landing {
                Some(landing) if landing.awaits(from, call) => {
                    let bytes = frame.len() - frame::HEAD;
                    landing.land(call, bytes, |into| frame.copy(frame::HEAD, into))?;
                    lock(&self.calls).landed(from, call);
                }
                _ => {
                    let bytes = frame.len() - frame::HEAD;
                    let most = self.limits.answer.max(self.limits.piece);
                    if bytes > most {
                        return Err(format!(
                            "an answer of {bytes} bytes, where {most} are allowed"
                        ));
                    }
                    let answer = frame.bytes()[frame::HEAD..].to_vec();
                    self.ended(from, call, Outcome::Answer(answer));
                }
            },
            Said::Refused(refusal) => self.ended(from, call, Outcome::Refused(refusal)),
            Said::Tell { procedure } => {
                let arguments = &frame.bytes()[frame::HEAD..];
                drop(self.run(from, procedure, arguments));
            }
            Said::Call { procedure } => {
                let arguments = &frame.bytes()[frame::HEAD..];
                let answer = match self.run(from, procedure, arguments) {
                    Ok(answer) if answer.len() > self.limits.answer => {
                        Answer::Refused(RpcRefusal::AnswerTooLong)
                    }
                    Ok(answer) => Answer::Bytes(answer),
                    Err(refusal) => Answer::Refused(refusal),
                };
                self.answer(from, call, answer)?;
            }
            Said::Fetch(place) => {
                let most = self.port.offers().largest - frame::HEAD;
                let answer = match place.bytes > most as u64 {
                    true => Answer::Refused(RpcRefusal::TooFar),
                    false => Answer::Fetched(place),
                };
                self.answer(from, call, answer)?;
            }
            Said::Store { place, last } => {
                // Of a store that was refused nobody waits for the rest.
                if lock(&self.due).refused[from.index()] == call {
                    return Ok(());
                }
                let store = |into: &mut [u8]| frame.copy(frame::HEAD + place::PLACE, into);
                let answer = match self.grants.write(&place, store) {
                    Ok(()) if !last => return Ok(()),
                    Ok(()) => Answer::Bytes(Vec::new()),
                    Err(refusal) => {
                        lock(&self.due).refused[from.index()] = call;
                        Answer::Refused(refusal)
                    }
                };
                self.answer(from, call, answer)?;
            }
        }
        Ok(())
    }

    fn ended(&self, from: NodeId, call: u64, outcome: Outcome) {
        if lock(&self.calls).end(from, call, outcome) {
            self.wake_waiting();
        }
    }

    /// Runs a procedure for another node.
    fn run(&self, from: NodeId, procedure: u16, arguments: &[u8]) -> Result<Vec<u8>, RpcRefusal> {
        let procedure = self.procedures.get(usize::from(procedure));
        let procedure = procedure.ok_or(RpcRefusal::NoProcedure)?;
        let ran = catch_unwind(AssertUnwindSafe(|| procedure(from, arguments)));
        ran.map_err(|_| RpcRefusal::Panicked)
    }

    /// Answers, now or when there is room.
    fn answer(&self, to: NodeId, call: u64, answer: Answer) -> Result<(), String> {
        if self.has_answered(to, call, &answer) {
            return Ok(());
        }
        let mut due = lock(&self.due);
        if due.owed[to.index()] >= self.limits.unanswered {
            let most = self.limits.unanswered;
            return Err(format!("more than {most} calls before it took an answer"));
        }
        due.owed[to.index()] += 1;
        due.answers.push_back((to, call, answer));
        self.owes.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether an answer is gone: sent, or to nobody.
    fn has_answered(&self, to: NodeId, call: u64, answer: &Answer) -> bool {
        let refuse = |refusal| self.port.send(to, &[&frame::refused(call, refusal)]);
        let head = frame::answer(call);
        let sent = match answer {
            Answer::Bytes(bytes) => self.port.send(to, &[&head, bytes]),
            Answer::Refused(refusal) => refuse(*refusal),
            Answer::Fetched(place) => {
                let sent = self
                    .grants
                    .read(place, |bytes| self.port.send(to, &[&head, bytes]));
                sent.unwrap_or_else(refuse)
            }
        };
        !matches!(sent, Err(SendError::Busy { .. }))
    }

    /// Sends the answers that found no room before.
    fn pay(&self) {
        if !self.owes.load(Ordering::Relaxed) {
            return;
        }
        let mut due = lock(&self.due);
        let mut full = vec![false; self.nodes()];
        let Due { answers, owed, .. } = &mut *due;
        answers.retain(|(to, call, answer)| {
            let full = &mut full[to.index()];
            *full = *full || !self.has_answered(*to, *call, answer);
            if !*full {
                owed[to.index()] -= 1;
            }
            *full
        });
        self.owes.store(!answers.is_empty(), Ordering::Relaxed);
    }
}
