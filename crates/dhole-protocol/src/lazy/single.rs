//! Misses of one object that nothing else comes of, which are most: what is asked, answered and
//! taken is handed on as it is, without lists and commands. Whatever is not so simple goes the
//! general way: nothing has happened then.

use dhole_model::{Coherence, NodeId};

use super::Lazy;
use super::aggregation::Want;
use crate::command::{Unread, WorkerIs};
use crate::{Sent, Wanted};

/// The answer to a question for one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The object, whose bytes go as they are stored here.
    pub sent: Sent,
    /// Whether the asker is to keep its copy over acquires.
    pub keep: bool,
    /// It is writable here, and has to be made clean first.
    pub make_clean: bool,
}

impl Lazy {
    /// The worker misses an object that its last writer alone is asked for: whom, the number of
    /// the question, and what is wanted.
    pub fn ask_singly(&mut self, miss: &Unread) -> Option<(NodeId, u32, Wanted)> {
        let oid = miss.oid;
        let object = self.objects.get_mut(oid);
        let coherence = object.coherence.unwrap_or(miss.coherence);
        let need = object.known(miss.creator);
        let has_another = object.freed || object.is_valid() || need.node == self.me;
        let has_home = object.had_home || coherence == Coherence::Home;
        let is_zero = need.lamport == 0 && miss.zero_ok && !has_home;
        if has_another || is_zero || !self.beside.is_empty() || self.inbox.holds(oid) {
            return None;
        }
        object.coherence = Some(coherence);
        self.home.asks();
        let (beside, wanted) = (false, Wanted { oid, need });
        let number = self.round.ask_singly(need.node, Want { beside, wanted });
        Some((need.node, number, wanted))
    }

    /// Another node asks for one object, and need not wait.
    pub fn answer_singly(
        &mut self,
        from: NodeId,
        Wanted { oid, need }: Wanted,
        worker: WorkerIs,
    ) -> Option<Answer> {
        // What is not here leaves no trace.
        let held = self.objects.get(oid).held();
        let version = held.filter(|held| *held >= need)?;
        let object = self.objects.get_mut(oid);
        let is_written = worker == WorkerIs::Computing && (object.exclusive || object.dirty);
        if is_written || object.pre_image || object.freed {
            return None;
        }
        object.served = true;
        object.served_since = true;
        let make_clean = std::mem::take(&mut object.exclusive);
        let (is_at_home, coherence) = (object.is_held_by(self.me), object.coherence);
        if coherence == Some(Coherence::Update) {
            self.copysets.join(oid, from);
        }
        let keep = coherence == Some(Coherence::Home)
            && is_at_home
            && self.home.fetched(from, std::iter::once(oid));
        Some(Answer {
            sent: Sent { oid, version },
            keep,
            make_clean,
        })
    }

    /// Whether a reply answers all that the worker waits for.
    pub fn is_answered_singly(&self, from: NodeId, number: u32, sent: Sent) -> bool {
        let fits = |want: &Want| {
            !want.beside && want.wanted.oid == sent.oid && sent.version >= want.wanted.need
        };
        self.round.asks_singly(from, number, fits)
            && !self.objects.get(sent.oid).is_valid()
            && !self.inbox.holds(sent.oid)
            && self.gone.is_none()
    }

    /// The object of such a reply is stored here now, perhaps to be kept.
    pub fn install_singly(&mut self, Sent { oid, version }: Sent, keep: bool) {
        self.lamport = self.lamport.max(version.lamport);
        let object = self.objects.get_mut(oid);
        object.hold(version);
        if object.coherence == Some(Coherence::Home) {
            self.home.cache(oid, keep);
        }
        self.round.begin();
    }
}
