//! Read aggregation: what is missed is fetched with the other invalid objects of its page (DOSA,
//! section 3.6).
//!
//! Which objects lie on a page is the heap's business, so the engine names them, and the protocol
//! says which are worth asking for, and whom. They are marked in the question: a node that is
//! writing one leaves it out of its reply, for nobody waits for it.

use dhole_model::{Coherence, Oid};

use super::Protocols;
use crate::coherence::pending_fetches::Asked;
use crate::{Sent, SentList, Wanted, WantedList};

/// The most objects that are asked for because they lie beside one that is missed.
pub const MOST_BESIDE: usize = 255;

/// What a round asks a node for: first what the worker waits for, then what lies beside it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Want {
    /// It is asked for because of its place, and may be left out.
    pub beside: bool,
    pub wanted: Wanted,
}

impl Protocols {
    /// The object that the worker is about to miss has this one on its page, without a valid copy.
    pub fn lies_beside(&mut self, oid: Oid) {
        if self.fetching.beside.len() < MOST_BESIDE {
            self.fetching.beside.push(oid);
        }
    }

    /// Adds what lies beside a missed object to the round that fetches it.
    pub(super) fn aggregate(&mut self, missed: Oid) {
        let Protocols {
            me,
            objects,
            fetching,
            ..
        } = self;
        let (fetches, beside) = (&mut fetching.fetches, &mut fetching.beside);
        if fetches.is_over() {
            // Nobody need be asked for what is missed.
            beside.clear();
        }
        for oid in beside.drain(..).filter(|oid| *oid != missed) {
            let object = objects.get(oid);
            let is_lazy = object.coherence == Some(Coherence::Lazy) && !object.freed;
            let writer = object.last().filter(|node| *node != *me);
            if let Some(node) = writer.filter(|_| is_lazy && !object.is_valid()) {
                let need = object.known(node);
                let wanted = Wanted { oid, need };
                let beside = true;
                fetches.want(node, Want { beside, wanted });
            }
        }
    }

    /// Whether an object that nobody waits for may go into a reply. One that has a twin may: as a
    /// rule its page is being written, and not it.
    pub(super) fn may_go_beside(&self, wanted: &Wanted) -> bool {
        let object = self.objects.get(wanted.oid);
        let has_twin = self.lazy.compares && object.pre_image;
        let is_written = object.exclusive || object.dirty && !has_twin;
        !is_written && !object.freed && object.held() >= Some(wanted.need)
    }

    /// How many objects of a reply were asked for, those that go along with them aside.
    ///
    /// # Errors
    /// When it is no answer to what was asked for.
    pub(super) fn answers(asked: Asked<'_, Want>, sent: &[Sent]) -> Result<usize, &'static str> {
        let mut answers = 0;
        for (_, Want { beside, wanted }) in asked {
            let fits = |sent: &&Sent| sent.oid == wanted.oid && sent.version >= wanted.need;
            match sent.get(answers).filter(fits) {
                Some(_) => answers += 1,
                None if *beside => {}
                None => return Err("a reply to another question"),
            }
        }
        Ok(answers)
    }
}

/// Lists of questions and replies that are used again. A reply goes in the list that its question
/// came in, and the asker keeps it for the next question: so a warm miss allocates nothing,
/// however much it brings.
#[derive(Default, Debug)]
pub(crate) struct SpareLists(Vec<WantedList>);

impl SpareLists {
    /// More are not kept: as many nodes may be asked at once without allocating.
    const MOST: usize = 64;

    /// What a node is asked for in a round, and how much of it nobody waits for.
    pub fn question(&mut self, asked: Asked<'_, Want>) -> (WantedList, u16) {
        if let [(_, want)] = asked {
            return (WantedList::from_buf([want.wanted]), u16::from(want.beside));
        }
        let mut wanted = self.0.pop().unwrap_or_default();
        wanted.extend(asked.iter().map(|(_, want)| want.wanted));
        let beside = asked.iter().filter(|(_, want)| want.beside).count() as u16;
        (wanted, beside)
    }

    /// The list of a reply, filled with what `sent` makes of the question.
    pub fn reply(wanted: WantedList, mut sent: impl FnMut(Wanted) -> Option<Sent>) -> SentList {
        if let [wanted] = wanted[..] {
            return sent(wanted).map_or_else(SentList::new, |sent| SentList::from_buf([sent]));
        }
        match wanted.spilled() {
            true => SentList::from_vec(wanted.into_vec().into_iter().filter_map(sent).collect()),
            false => wanted.into_iter().filter_map(sent).collect(),
        }
    }

    /// Keeps the list of a reply.
    pub fn keep(&mut self, sent: SentList) {
        if sent.spilled() && self.0.len() < SpareLists::MOST {
            let mut sent = sent.into_vec();
            sent.clear();
            let none = |sent: Sent| Wanted {
                oid: sent.oid,
                need: sent.version,
            };
            // As long as both have one layout, the library keeps the buffer.
            self.0
                .push(WantedList::from_vec(sent.into_iter().map(none).collect()));
        }
    }
}

/// Empty lists are no part of a node's state.
impl PartialEq for SpareLists {
    fn eq(&self, _: &SpareLists) -> bool {
        true
    }
}

impl Eq for SpareLists {}

impl std::hash::Hash for SpareLists {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Clone for SpareLists {
    fn clone(&self) -> SpareLists {
        SpareLists::default()
    }
}
