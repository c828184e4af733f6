//! Elements of arrays as a [kind](crate::coherence::kind) of regions.

use dhole_model::{Elements, IntervalIndex, Version};

use super::ArrayTable;
use crate::Message;
use crate::array_command::{ArrayCommand, FlushedElements, PushedElements};
use crate::coherence::kind::{Flush, Kind, RegionCommand, RegionMessage};
use crate::coherence::races::{RaceFinder, SiteId};
use crate::coherence::region::Table;
use crate::command::{Command, Commands};

impl Kind for Elements {
    type Table = ArrayTable;
    type Pushed = PushedElements;
    type Flushed = FlushedElements;
    const STAYS_WRITABLE: bool = false;
    const NOT_AT_HOME: &'static str = "a flush of elements that are not at home here";

    fn command(it: RegionCommand<Elements>) -> Command {
        Command::Array(match it {
            RegionCommand::Keep(elements, bytes) => ArrayCommand::Keep { elements, bytes },
            RegionCommand::Discard(elements) => ArrayCommand::Discard(elements),
            RegionCommand::Compare(elements, _) => {
                unreachable!("{elements}: elements have no twins")
            }
            RegionCommand::Flush(to, number, elements, at) => ArrayCommand::Flush {
                to,
                number,
                elements,
                at,
            },
            RegionCommand::Hold(from) => ArrayCommand::Hold { from },
            RegionCommand::Merge(flush, held) => ArrayCommand::Merge {
                from: flush.from,
                flushed: flush.flushed,
                held,
            },
            RegionCommand::MakeClean(elements) => ArrayCommand::MakeClean(elements),
            RegionCommand::Invalidate(elements) => ArrayCommand::Invalidate(elements),
        })
    }

    fn message(it: RegionMessage<Elements>) -> Message {
        match it {
            RegionMessage::DropOut(elements) => Message::DropOutElements { elements },
            RegionMessage::FlushAck(number) => Message::ElementsFlushed { number },
            RegionMessage::Outdated(number, elements) => {
                Message::OutdatedElements { number, elements }
            }
            RegionMessage::OutdatedAck(number) => Message::OutdatedElementsAck { number },
        }
    }

    fn pushed(it: &PushedElements) -> (Elements, Version, u64) {
        (it.sent.elements, it.sent.version, it.bytes)
    }

    fn flushed(it: &FlushedElements) -> Elements {
        it.elements
    }

    fn find_races(
        flush: &Flush<Elements>,
        _: &[(Elements, SiteId)],
        arrays: &ArrayTable,
        (races, open): (&mut RaceFinder, IntervalIndex),
        out: &mut Commands,
    ) -> bool {
        let Some(at) = &flush.at else {
            return false;
        };
        for (FlushedElements { elements, .. }, site) in flush.flushed.iter().zip(&at.sites) {
            if !arrays.is_freed(*elements) {
                let site = site.map_or_else(SiteId::default, |site| races.site(site));
                let by = (flush.from, at.time.of(flush.from));
                races.elements_changed_at_home(*elements, by, site, (&at.time, open), out);
            }
        }
        false
    }
}
