//! Threads that wait for themselves, through others.
//!
//! A thread that has waited for long has a *probe* sent. It follows the threads that wait for each
//! other, each for a lock that the next one holds, or for its end. A probe that comes back to its
//! first thread has found a circle, if all of it was there at one moment. So it is sent twice.
//! Where the second one finds the same waits, none of them was over in between. A thread that waits
//! gives nothing up: so at that moment all of them waited for each other.

use dhole_part::PartEffects;

use super::message::MOST_PATH;
use super::{HeldBy, ThreadId, ThreadMessage, ThreadRefusal, ThreadSync, WaitingThread, WaitsOn};

impl ThreadSync {
    /// A thread has waited for long. Where it waits for itself it gets
    /// [`ThreadRefusal::Deadlock`].
    pub fn suspect(&mut self, thread: ThreadId, out: &mut impl PartEffects<Self>) {
        if let Some(first) = self.waiting(thread) {
            self.probe(vec![first], out);
            self.own_messages(out);
        }
    }

    /// A thread of this node that waits for another one.
    fn waiting(&self, thread: ThreadId) -> Option<WaitingThread> {
        let waits_for = match self.waits_on(thread)? {
            WaitsOn::Lock(key) => HeldBy::Lock(key),
            WaitsOn::Thread(of) => HeldBy::Thread(of),
            _ => return None,
        };
        let wait = self.waits.get(&thread)?;
        Some(WaitingThread {
            thread,
            waits_for,
            wait: wait.wait,
            site: wait.site,
        })
    }

    /// Sends a probe to the nodes that may know what the last thread waits for.
    fn probe(&mut self, path: Vec<WaitingThread>, out: &mut impl PartEffects<Self>) {
        let Some(last) = path.last() else {
            return;
        };
        match last.waits_for {
            // A holder that this node knows is its own, unless the lock is shared.
            HeldBy::Lock(key) => match self.holder(key) {
                Some(holder) => self.send(holder.node(), ThreadMessage::Probe { path }, out),
                None if self.shared.locks().is_some() => {}
                None => self.send_others(&ThreadMessage::Probe { path }, out),
            },
            HeldBy::Thread(of) => self.send(of.node(), ThreadMessage::Probe { path }, out),
        }
    }

    /// Follows a path by one thread.
    pub(super) fn follow(
        &mut self,
        mut path: Vec<WaitingThread>,
        out: &mut impl PartEffects<Self>,
    ) {
        let (Some(first), Some(last)) = (path.first(), path.last()) else {
            return;
        };
        let next = match last.waits_for {
            HeldBy::Lock(key) => self.holder(key),
            HeldBy::Thread(of) => Some(of),
        };
        let Some(next) = next.filter(|next| next.node() == self.me) else {
            return;
        };
        if first.thread == next {
            return self.close(path, out);
        }
        // Those on a circle that the first one is not on find it themselves.
        let is_on = path.iter().any(|it| it.thread == next);
        if let Some(waiting) = self.waiting(next)
            && !is_on
            && path.len() < MOST_PATH
        {
            path.push(waiting);
            self.probe(path, out);
        }
    }

    /// A probe has come back to its first thread.
    fn close(&mut self, path: Vec<WaitingThread>, out: &mut impl PartEffects<Self>) {
        let thread = path[0].thread;
        if self.waiting(thread).as_ref() != path.first() {
            return;
        }
        if self.suspected.get(&thread) != Some(&path) {
            self.suspected.insert(thread, path);
            return self.suspect_again(thread, out);
        }
        if let Some(WaitsOn::Lock(key)) = self.waits_on(thread) {
            self.forget(thread, key);
        }
        self.finish(thread, Err(ThreadRefusal::Deadlock(path)), out);
    }

    fn suspect_again(&mut self, thread: ThreadId, out: &mut impl PartEffects<Self>) {
        if let Some(first) = self.waiting(thread) {
            self.probe(vec![first], out);
        }
    }
}
