//! Threads that nodes start, and their ends.

use std::collections::VecDeque;

use dhole_model::{CallSite, NodeId, SortedMap};
use dhole_part::PartEffects;

use super::{
    Attempt, Taken, ThreadAct, ThreadAttempt, ThreadId, ThreadMessage, ThreadRefusal, ThreadSync,
    WaitsOn,
};

/// Most threads that are started on a node in a run.
pub const MOST_STARTED: usize = 1 << 20;

/// In place of the value of a thread that another one has waited for.
const WAITED_FOR: u64 = 1;
/// In place of the value of a thread that is detached.
const DETACHED: u64 = 2;

/// The threads of a node that others have started.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Started {
    /// The last number that this node has given a thread.
    number: u32,
    all: SortedMap<ThreadId, Run>,
    /// Those that are to begin, with what they do.
    next: VecDeque<(ThreadId, u64, u64)>,
    /// Those that have not begun and are awaited, with the threads that have started them.
    awaited: SortedMap<ThreadId, ThreadId>,
    /// The program that starts threads has ended.
    pub has_left: bool,
    /// No thread of this node begins any more.
    stopped: bool,
}

/// How far a thread of this node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Run {
    /// It has not begun, as far as this node knows, or runs; that thread waits for its end.
    On(bool, Option<ThreadId>),
    /// It has ended, with this value if it ran.
    Ended(Option<u64>),
    /// It runs, and no thread may wait for its end.
    Detached,
    /// It was waited for, or has ended detached.
    Joined,
}

impl ThreadSync {
    /// A number for another thread of this node, which nobody starts.
    pub fn number_thread(&mut self) -> ThreadId {
        self.started.number += 1;
        ThreadId::new(self.me, self.me, self.started.number)
    }

    /// Starts a thread on a node, and does not wait for it.
    ///
    /// # Errors
    /// [`ThreadRefusal::NoNode`]
    pub fn start(
        &mut self,
        node: NodeId,
        entry: u64,
        argument: u64,
        out: &mut impl PartEffects<Self>,
    ) -> Result<ThreadId, ThreadRefusal> {
        self.send_start(node, (entry, argument), None, out)
    }

    /// As [`start`](ThreadSync::start), of a thread that waits until the new one has begun. Its
    /// result is the new one.
    ///
    /// # Errors
    /// [`ThreadRefusal::NoNode`]; [`ThreadRefusal::Full`]; [`ThreadRefusal::NotBegun`], as a
    /// result.
    pub fn start_and_await(
        &mut self,
        by: ThreadId,
        node: NodeId,
        (entry, argument): (u64, u64),
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        // The number that it gets.
        let thread = ThreadId::new(node, self.me, self.started.number + 1);
        self.begin(by, WaitsOn::Beginning(thread), site)?;
        if let Err(refusal) = self.send_start(node, (entry, argument), Some(by), out) {
            self.waits.remove(&by);
            return Err(refusal);
        }
        Ok(match self.result(by) {
            Some(begun) => ThreadAttempt::Done(begun?),
            None => ThreadAttempt::Waits,
        })
    }

    fn send_start(
        &mut self,
        node: NodeId,
        (entry, argument): (u64, u64),
        by: Option<ThreadId>,
        out: &mut impl PartEffects<Self>,
    ) -> Result<ThreadId, ThreadRefusal> {
        if node.index() >= self.nodes {
            return Err(ThreadRefusal::NoNode(node));
        }
        if node == self.me && self.started.all.len() >= MOST_STARTED {
            let (what, most) = ("threads that are started on a node", MOST_STARTED);
            return Err(ThreadRefusal::Full { what, most });
        }
        self.started.number += 1;
        let thread = ThreadId::new(node, self.me, self.started.number);
        let start = ThreadMessage::Start {
            thread,
            entry,
            argument,
            by: by.unwrap_or(thread),
            awaited: by.is_some(),
        };
        self.send(node, start, out);
        self.own_messages(out);
        Ok(thread)
    }

    /// The next thread of this node that is to begin: which, and what it does.
    pub fn next_start(&mut self) -> Option<(ThreadId, u64, u64)> {
        self.started.next.pop_front()
    }

    /// Threads that are started on this node begin from here on, or wait until they do.
    pub fn begins(&mut self) {
        self.started.stopped = false;
    }

    /// No thread begins on this node any more, of those that were started or will be; whether some
    /// are to be [ended](ThreadSync::end_starts).
    pub fn begins_no_more(&mut self) -> bool {
        self.started.stopped = true;
        !self.started.next.is_empty()
    }

    /// Threads that were started and do not begin end without a value.
    pub fn end_starts(&mut self, out: &mut impl PartEffects<Self>) {
        while let Some((thread, ..)) = self.next_start() {
            self.end(thread, None, out);
        }
        self.own_messages(out);
    }

    /// How many threads that were started on this node have not ended.
    pub fn running(&self) -> usize {
        let on = |run: &&Run| matches!(run, Run::On(true, _) | Run::Detached);
        self.started.all.values().filter(on).count()
    }

    /// Whether a thread that was started on this node runs or is to begin, or has ended. `None` of
    /// one that is not known, or whose value is taken.
    pub fn is_running(&self, thread: ThreadId) -> Option<bool> {
        match self.started.all.get(&thread)? {
            Run::On(true, _) | Run::Detached => Some(true),
            Run::Ended(_) => Some(false),
            Run::On(false, _) | Run::Joined => None,
        }
    }

    /// Whether a thread was started on this node.
    pub(super) fn was_started(&self, thread: ThreadId) -> bool {
        self.started.all.contains_key(&thread)
    }

    /// No thread waits for the end of a thread of this node from here on, unless one does.
    ///
    /// # Errors
    /// [`ThreadRefusal::Detached`]: it is so already. [`ThreadRefusal::NoThread`]
    pub fn detach(&mut self, thread: ThreadId) -> Result<(), ThreadRefusal> {
        let run = match self.started.all.get(&thread) {
            Some(Run::On(true, None)) => Run::Detached,
            Some(Run::Ended(_)) => Run::Joined,
            Some(Run::On(true, Some(_))) => return Ok(()),
            Some(Run::Detached) => return Err(ThreadRefusal::Detached(thread)),
            _ => return Err(ThreadRefusal::NoThread(thread)),
        };
        self.started.all.insert(thread, run);
        Ok(())
    }

    /// Whether the program that starts threads has ended.
    pub fn has_left(&self) -> bool {
        self.started.has_left
    }

    /// The program that starts threads ends: those that serve it go on.
    pub fn leave(&mut self, out: &mut impl PartEffects<Self>) {
        self.send_others(&ThreadMessage::Leave, out);
    }

    /// A thread of this node has begun that was [next](ThreadSync::next_start).
    pub fn begun(&mut self, thread: ThreadId, out: &mut impl PartEffects<Self>) {
        self.tell_begun(thread, true, out);
        self.own_messages(out);
    }

    /// Whether a thread awaits the beginning of one, which it is told.
    fn tell_begun(
        &mut self,
        thread: ThreadId,
        begins: bool,
        out: &mut impl PartEffects<Self>,
    ) -> bool {
        let Some(by) = self.started.awaited.remove(&thread) else {
            return false;
        };
        self.send(by.node(), ThreadMessage::Begun { thread, by, begins }, out);
        true
    }

    /// A thread of this node has ended, with a value if it ran.
    pub fn ended(
        &mut self,
        thread: ThreadId,
        value: Option<u64>,
        out: &mut impl PartEffects<Self>,
    ) {
        self.end(thread, value, out);
        self.own_messages(out);
    }

    fn end(&mut self, thread: ThreadId, value: Option<u64>, out: &mut impl PartEffects<Self>) {
        // Where it does not begin its starter has no thread, and nobody waits for its end.
        let never_was = self.tell_begun(thread, value.is_some(), out) && value.is_none();
        let run = match self.started.all.get(&thread).copied() {
            Some(Run::On(_, None)) if never_was => Run::Joined,
            Some(Run::On(_, None)) => Run::Ended(value),
            Some(Run::On(_, Some(by))) => {
                self.tell_joined((thread, by), value, out);
                Run::Joined
            }
            Some(Run::Detached) => Run::Joined,
            _ => return,
        };
        self.started.all.insert(thread, run);
    }

    fn tell_joined(
        &mut self,
        (thread, by): (ThreadId, ThreadId),
        value: Option<u64>,
        out: &mut impl PartEffects<Self>,
    ) {
        let joined = ThreadMessage::Joined {
            thread,
            by,
            value: value.unwrap_or_default(),
            ran: value.is_some(),
        };
        self.send(by.node(), joined, out);
    }

    /// A thread waits for the end of another one, and gets what it says.
    ///
    /// # Errors
    /// [`ThreadRefusal::NoThread`]; [`ThreadRefusal::Full`]. The result of the wait may be
    /// [`ThreadRefusal::Detached`].
    pub fn join(
        &mut self,
        by: ThreadId,
        thread: ThreadId,
        site: CallSite,
        out: &mut impl PartEffects<Self>,
    ) -> Attempt {
        let is_node = |node: NodeId| node.index() < self.nodes;
        let mine = thread.starter() == self.me && thread.number() > self.started.number;
        let is_one = is_node(thread.node()) && is_node(thread.starter());
        if !is_one || mine || thread.number() == 0 {
            return Err(ThreadRefusal::NoThread(thread));
        }
        self.begin(by, WaitsOn::Thread(thread), site)?;
        self.send(thread.node(), ThreadMessage::Join { thread, by }, out);
        self.own_messages(out);
        Ok(match self.result(by) {
            Some(joined) => ThreadAttempt::Done(joined?),
            None => ThreadAttempt::Waits,
        })
    }

    pub(super) fn take_start(
        &mut self,
        from: NodeId,
        thread: ThreadId,
        (entry, argument): (u64, u64),
        awaited_by: Option<ThreadId>,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        let by = match self.started.all.get(&thread) {
            None if self.started.all.len() < MOST_STARTED => None,
            // Another node waits for its end already.
            Some(Run::On(false, by)) => *by,
            _ => return Err("a thread begins twice, or one too many"),
        };
        if thread.node() != self.me || thread.starter() != from || thread.number() == 0 {
            return Err("a thread begins that its starter does not number");
        }
        if awaited_by.is_some_and(|by| by.node() != from) {
            return Err("a thread of another node awaits one that it has not started");
        }
        self.started.all.insert(thread, Run::On(true, by));
        if let Some(by) = awaited_by {
            self.started.awaited.insert(thread, by);
        }
        if self.started.stopped {
            self.end(thread, None, out);
            return Ok(());
        }
        self.started.next.push_back((thread, entry, argument));
        out.act(ThreadAct::Started);
        Ok(())
    }

    pub(super) fn take_begun(
        &mut self,
        from: NodeId,
        (thread, by): (ThreadId, ThreadId),
        begins: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if thread.node() != from {
            return Err("what only the node of a thread says");
        }
        if self.waits_on(by) != Some(WaitsOn::Beginning(thread)) {
            return Err("a thread begins that nobody awaits");
        }
        let result = match begins {
            true => Ok(thread.0),
            false => Err(ThreadRefusal::NotBegun(thread)),
        };
        self.finish(by, result, out);
        Ok(())
    }

    pub(super) fn take_join(
        &mut self,
        thread: ThreadId,
        by: ThreadId,
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if thread.node() != self.me {
            return Err("a thread of another node is waited for here");
        }
        let run = match self.started.all.get(&thread).copied() {
            None if self.started.all.len() < MOST_STARTED => Run::On(false, Some(by)),
            Some(Run::On(known, None)) => Run::On(known, Some(by)),
            Some(Run::Ended(value)) => {
                self.tell_joined((thread, by), value, out);
                Run::Joined
            }
            // There is an answer, but no value, and it is not waited for.
            other => {
                let value = match other {
                    Some(Run::Detached) => DETACHED,
                    _ => WAITED_FOR,
                };
                let ran = false;
                let joined = ThreadMessage::Joined {
                    thread,
                    by,
                    value,
                    ran,
                };
                self.send(by.node(), joined, out);
                return Ok(());
            }
        };
        self.started.all.insert(thread, run);
        Ok(())
    }

    pub(super) fn take_joined(
        &mut self,
        from: NodeId,
        (thread, by): (ThreadId, ThreadId),
        (value, ran): (u64, bool),
        out: &mut impl PartEffects<Self>,
    ) -> Taken {
        if thread.node() != from {
            return Err("what only the node of a thread says");
        }
        // One that was told of a deadlock waits no more, or for another thread by now.
        if self.waits_on(by) != Some(WaitsOn::Thread(thread)) {
            return Ok(());
        }
        let result = match (ran, value) {
            (true, value) => Ok(value),
            (false, WAITED_FOR) => Err(ThreadRefusal::NoThread(thread)),
            (false, DETACHED) => Err(ThreadRefusal::Detached(thread)),
            (false, _) => Err(ThreadRefusal::NotBegun(thread)),
        };
        self.finish(by, result, out);
        Ok(())
    }
}
