//! What TreadMarks answers. It keeps pages consistent: of objects and elements it knows nothing.

use super::AtSync;
use crate::Interval;
use crate::coherence::Protocols;
use crate::command::Commands;
use crate::sync::interval::Attached;

/// An interval carries the pages that it wrote, and invalidates copies of them.
pub(super) struct TreadMarksRules;

impl AtSync for TreadMarksRules {
    fn ends_interval(
        &self,
        all: &mut Protocols,
        attached: &mut Attached,
        out: &mut Commands,
    ) -> bool {
        let Protocols {
            treadmarks,
            intervals,
            ..
        } = all;
        treadmarks.protect(out);
        if !treadmarks.has_written() {
            return false;
        }
        let of = (intervals.open(), intervals.open_version().lamport);
        let pages = treadmarks.end_interval(of, &intervals.open_time(), out);
        *attached = pages.map_or(Attached::Nothing, Attached::Pages);
        true
    }

    fn noticed(&self, all: &mut Protocols, interval: &Interval, out: &mut Commands) {
        all.treadmarks.notice(interval, out);
    }

    #[inline]
    fn is_quiescent(&self, all: &Protocols) -> bool {
        !all.treadmarks.is_writable()
    }
}
