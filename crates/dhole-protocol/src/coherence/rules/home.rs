//! What home answers.

use dhole_model::{CallSite, Elements, NodeId, Oid, OidRange, VectorTime};

use super::{AtSync, Forgetting, Rules};
use crate::coherence::Protocols;
use crate::coherence::home::Home;
use crate::coherence::object_table::ObjectState;
use crate::coherence::parts::{HasParts, Parts};
use crate::coherence::region::Table;
use crate::coherence::remembered::Remembered;
use crate::command::Commands;
use crate::sync::interval::Attached;

/// Writers flush to the home of a region, which remembers the nodes that keep copies.
pub(super) struct HomeRules;

impl<R: HasParts> Rules<R> for HomeRules {
    fn write_fault(&self, all: &mut Protocols, region: R, site: CallSite, out: &mut Commands) {
        region.write_for_home(all, site, out);
    }

    fn brought(&self, region: R, keep: bool, remembered: &mut Remembered<R>, _: &mut Commands) {
        remembered.home.cache(region, keep);
    }

    fn says_what_is_kept(&self, region: R, me: NodeId, table: &R::Table) -> bool {
        table.is_at_home(region, me)
    }

    fn freed(&self, object: Oid, state: &mut ObjectState, (home, races, _): Forgetting<'_, R>) {
        let ids = OidRange::one(object);
        home.forget(ids);
        races.forget_at_home(ids);
        // No notice names what its node flushes.
        state.dirty = false;
    }
}

fn flush<R: HasParts>(all: &mut Protocols, time: &VectorTime, out: &mut Commands) {
    let me = all.me;
    let Parts {
        table,
        remembered,
        races,
        ..
    } = R::parts(all);
    remembered.home.flush((me, time), table, races, out);
}

fn drop_cached<R: HasParts>(all: &mut Protocols, out: &mut Commands) {
    let Parts {
        table, remembered, ..
    } = R::parts(all);
    remembered.home.drop_cached(table, out);
}

/// The part for objects, and the part for elements of arrays.
#[inline]
fn parts(all: &Protocols) -> (&Home<Oid>, &Home<Elements>) {
    (&all.remembered.home, &all.arrays.remembered.home)
}

impl AtSync for HomeRules {
    #[inline]
    fn must_release(&self, all: &Protocols) -> bool {
        let (objects, elements) = parts(all);
        objects.has_written() || elements.has_written()
    }

    fn before_release(&self, all: &mut Protocols, out: &mut Commands) {
        let time = all.intervals.open_time();
        flush::<Elements>(all, &time, out);
        flush::<Oid>(all, &time, out);
    }

    fn is_releasing(&self, all: &Protocols) -> bool {
        let (objects, elements) = parts(all);
        objects.is_flushing() || elements.is_flushing()
    }

    /// Nothing is written that notices name; races are looked for by the interval's number.
    fn ends_interval(&self, all: &mut Protocols, _: &mut Attached, out: &mut Commands) -> bool {
        all.races.ends_at_home(out);
        let homes = (&mut all.remembered.home, &mut all.arrays.remembered.home);
        std::mem::take(&mut homes.0.tells) | std::mem::take(&mut homes.1.tells)
    }

    fn after_acquire(&self, all: &mut Protocols, out: &mut Commands) {
        drop_cached::<Oid>(all, out);
        drop_cached::<Elements>(all, out);
    }

    #[inline]
    fn deferred(&self, all: &Protocols) -> usize {
        let (objects, elements) = parts(all);
        objects.deferred() + elements.deferred()
    }

    #[inline]
    fn is_quiescent(&self, all: &Protocols) -> bool {
        let (objects, elements) = parts(all);
        let tells = objects.tells || elements.tells || all.races.has_to_tell();
        !(tells || objects.has_cached() || elements.has_cached())
    }
}
