//! Write aggregation: a write fault makes all clean objects of the page writable, and what was
//! written is found when the interval ends, by comparison with the page's twin (DOSA, section 3.5).
//!
//! The twin is kept object by object, as their pre-images, from which requests are answered
//! meanwhile. An object that was written and is as it was before gives no notice. No object is
//! exclusive: without a fault there would be no twin to compare with. Elements of arrays and
//! objects that have a home are written as ever.

use dhole_model::{CallSite, Oid};

use super::Protocols;
use crate::RegionCommand;
use crate::coherence::lazy::Lazy;
use crate::coherence::races::SiteId;
use crate::command::{Command, Commands};

impl Protocols {
    /// From now on what was written is found by comparing.
    pub fn compare(&mut self) {
        self.lazy.compares = true;
    }

    /// Whether what was written is found by comparing.
    pub fn compares(&self) -> bool {
        self.lazy.compares
    }

    /// Makes an object writable, and with it those that lie beside it and are clean.
    pub(super) fn make_page_writable(&mut self, oid: Oid, site: CallSite, out: &mut Commands) {
        let site = self.races.site(site);
        self.make_twin(oid, site, out);
        let mut beside = std::mem::take(&mut self.fetching.beside);
        for oid in beside.drain(..) {
            // Where it is written, if it is, no fault will tell.
            self.make_twin(oid, SiteId::default(), out);
        }
        self.fetching.beside = beside;
    }

    fn make_twin(&mut self, oid: Oid, site: SiteId, out: &mut Commands) {
        let object = self.objects.get_mut(oid);
        if object.aggregates() && object.is_valid() && !object.dirty && !object.freed {
            (object.dirty, object.pre_image) = (true, true);
            self.lazy.dirty.push((oid, site));
            let pre_image = true;
            out.push(Command::Objects(RegionCommand::MakeWritable {
                region: oid,
                pre_image,
            }));
        }
    }

    /// The objects that have a twin to be compared with, or that were expected to be written.
    pub fn twins(&self) -> impl Iterator<Item = Oid> {
        // Marks say what was written: then nothing is looked through.
        let written = self
            .lazy
            .compares
            .then_some(&self.lazy.dirty)
            .into_iter()
            .flatten();
        let twin = |oid: &Oid| self.objects.get(*oid).pre_image;
        let compared = written.map(|(oid, _)| *oid).filter(twin);
        compared.chain(self.lazy.expected.objects())
    }

    /// These objects, in ascending order, were not written, or are as their twins.
    pub fn unwritten(&mut self, unwritten: &[Oid], out: &mut Commands) {
        let Protocols { objects, lazy, .. } = self;
        let Lazy {
            dirty, compares, ..
        } = lazy;
        dirty.retain(|(oid, _)| {
            let object = objects.get_mut(*oid);
            // What was expected to be written may have no pre-image; what is compared has one.
            let is_clean = (object.pre_image || !*compares) && unwritten.binary_search(oid).is_ok();
            if is_clean {
                (object.dirty, object.pre_image) = (false, false);
                out.push(Command::Objects(RegionCommand::MakeClean(*oid)));
            }
            !is_clean
        });
    }
}
