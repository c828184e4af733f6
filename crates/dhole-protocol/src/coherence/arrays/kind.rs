//! Elements of arrays as a [kind](crate::coherence::kind) of regions.

use dhole_model::{CallSite, Elements, IntervalIndex, NodeId, Version};

use super::ArrayTable;
use crate::coherence::kind::Kind;
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::Table;
use crate::command::{Command, Commands};
use crate::error::ProtocolError;
use crate::{Flush, Flushed, RegionCommand};

impl Kind for Elements {
    type Table = ArrayTable;
    const STAYS_WRITABLE: bool = false;
    const NOT_AT_HOME: &'static str = "a flush of elements that are not at home here";
    const MOST_ALONG: usize = 0;

    fn command(it: RegionCommand<Elements>) -> Command {
        Command::Array(it)
    }

    fn no_copy(self, from: NodeId, need: Version) -> ProtocolError {
        let elements = self;
        ProtocolError::NoElements {
            from,
            elements,
            need,
        }
    }

    fn compare(self, _: Option<CallSite>) -> Command {
        unreachable!("{self}: elements have no twins")
    }

    fn find_races(
        from: NodeId,
        flush: &Flush<Elements>,
        _: &[(Elements, SiteId)],
        arrays: &ArrayTable,
        (races, open): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> bool {
        let Some(at) = &flush.at else {
            return false;
        };
        for (Flushed { region, .. }, site) in flush.flushed.iter().zip(&at.sites) {
            if !arrays.is_freed(*region) {
                let site = site.map_or_else(SiteId::default, |site| races.site(site));
                let by = (from, at.time.of(from));
                races.elements_changed_at_home(*region, by, site, (&at.time, open), out);
            }
        }
        false
    }
}
