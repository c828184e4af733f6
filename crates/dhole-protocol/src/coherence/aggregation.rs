//! Read aggregation: what is missed is fetched with the other invalid objects of its page (DOSA,
//! section 3.6).
//!
//! Which objects lie on a page is the heap's business, so the engine names them, and the protocol
//! says which are worth asking for, and whom. They are marked in the question: a node that is
//! writing one leaves it out of its reply, for nobody waits for it.

use dhole_model::Oid;

use super::Protocols;
use crate::coherence::parts::HasParts;
use crate::coherence::pending_fetches::{Asked, Want};
use crate::coherence::region::{Region, Table};
use crate::{Sent, Wanted};

/// The most objects that are asked for because they lie beside one that is missed.
pub const MOST_BESIDE: usize = 255;

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
            let may = object.aggregates() && !object.freed && !object.is_valid();
            let writer = object.last().filter(|node| *node != *me);
            if let Some(node) = writer.filter(|_| may) {
                let (region, need) = (oid, object.known(node));
                fetches.want(0, true, Wanted { region, need });
            }
        }
    }

    /// Whether an object that nobody waits for may go into a reply. One that has a twin may: as a
    /// rule its page is being written, and not it.
    pub(super) fn may_go_beside<R: HasParts>(&mut self, wanted: &Wanted<R>) -> bool {
        let object = R::parts(self).table.whole(wanted.region);
        let has_twin = self.lazy.compares && object.pre_image;
        let is_written = object.exclusive || object.dirty && !has_twin;
        !is_written && !object.freed && object.held() >= Some(wanted.need)
    }

    /// How many objects of a reply were asked for, those that go along with them aside.
    ///
    /// # Errors
    /// When it is no answer to what was asked for.
    pub(super) fn answers<R: Region>(
        asked: Asked<'_, Want<R>>,
        sent: &[Sent<R>],
    ) -> Result<usize, &'static str> {
        let mut answers = 0;
        for (_, Want { beside, wanted }) in asked {
            let fits =
                |sent: &&Sent<R>| sent.region == wanted.region && sent.version >= wanted.need;
            match sent.get(answers).filter(fits) {
                Some(_) => answers += 1,
                None if *beside => {}
                None => return Err("a reply to another question"),
            }
        }
        Ok(answers)
    }
}
