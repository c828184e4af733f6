//! Misses of one object that nothing else comes of, which are most: what is asked, answered and
//! taken is handed on as it is, without lists and commands. Whatever is not so simple goes the
//! general way: nothing has happened then.

use dhole_model::{Coherence, NodeId, Version};

use super::Lazy;
use super::aggregation::Want;
use crate::command::{Unread, WorkerIs};
use crate::{Sent, Wanted};

impl Lazy {
    /// The worker misses an object that its last writer alone is asked for: whom, the number of
    /// the question, and what is wanted.
    pub fn ask_singly(&mut self, miss: &Unread) -> Option<(NodeId, u32, Wanted)> {
        let object = self.objects.get_mut(miss.oid);
        let coherence = object.coherence.unwrap_or(miss.coherence);
        let need = object.known(miss.creator);
        let has_another = object.freed || object.is_valid() || need.node == self.me;
        let is_zero = need.lamport == 0 && miss.zero_ok && !object.had_home;
        let others = !self.beside.is_empty() || !self.inbox.is_empty();
        if coherence != Coherence::Lazy || has_another || is_zero || others {
            return None;
        }
        object.coherence = Some(coherence);
        self.home.asks();
        let wanted = Wanted {
            oid: miss.oid,
            need,
        };
        let beside = false;
        let number = self.round.ask_singly(need.node, Want { beside, wanted });
        Some((need.node, number, wanted))
    }

    /// Another node asks for one object, and need not wait: the version that it is sent, as it is
    /// stored here, and whether that is writable and has to be made clean first.
    pub fn answer_singly(&mut self, wanted: Wanted, worker: WorkerIs) -> Option<(Version, bool)> {
        let object = self.objects.get_mut(wanted.oid);
        let held = object.held().filter(|held| *held >= wanted.need)?;
        let is_written = worker == WorkerIs::Computing && (object.exclusive || object.dirty);
        let is_simple = object.coherence == Some(Coherence::Lazy) && !object.freed;
        if is_written || object.pre_image || !is_simple {
            return None;
        }
        object.served = true;
        object.served_since = true;
        Some((held, std::mem::take(&mut object.exclusive)))
    }

    /// Whether a reply answers all that the worker waits for.
    pub fn is_answered_singly(&self, from: NodeId, number: u32, sent: Sent) -> bool {
        let fits = |want: &Want| {
            !want.beside && want.wanted.oid == sent.oid && sent.version >= want.wanted.need
        };
        if !self.round.asks_singly(from, number, fits) {
            return false;
        }
        let object = self.objects.get(sent.oid);
        let is_simple = object.coherence == Some(Coherence::Lazy) && !object.is_valid();
        is_simple && self.gone.is_none() && self.inbox.is_empty()
    }

    /// The object of such a reply is stored here now.
    pub fn install_singly(&mut self, Sent { oid, version }: Sent) {
        self.lamport = self.lamport.max(version.lamport);
        self.objects.get_mut(oid).hold(version);
        self.round.begin();
    }
}
