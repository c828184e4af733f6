//! Freed minipages of a manager, which are allocated again for numbers of the same shape.

use dhole_model::SortedMap;
use std::collections::BTreeSet;

use super::minipage::{Minipage, offset_of};
use super::run::MinipageRun;

/// What the address of a minipage is a multiple of, which is the size of its numbers; and whether
/// nodes may write it together.
pub(super) type Kind = (u64, bool);

/// Bytes of a minipage, and its kind. A reference to what was freed leads to numbers of the same
/// size, as long as it is used.
pub(super) type Shape = (u64, Kind);

/// Freed minipages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Freed {
    /// By the offset of the first minipage of a run: their kind.
    pub shapes: SortedMap<u64, Kind>,
    /// Bytes of all that are freed.
    pub bytes: u64,
    /// By their shape, at these addresses, with the offset of the first minipage of the run.
    single: SortedMap<Shape, SortedMap<u64, u64>>,
    /// By the offset of the first minipage of a run: how many of it are freed.
    of_run: SortedMap<u64, u64>,
    /// Runs of which all are freed, by their shape and how many they are: the offsets.
    whole: SortedMap<(Shape, u64), BTreeSet<u64>>,
}

impl Freed {
    fn shape(&self, run: &MinipageRun) -> Shape {
        let kind = self.shapes.get(&offset_of(run.at));
        (run.bytes.into(), kind.copied().unwrap_or((1, false)))
    }

    /// A minipage of a run is freed.
    pub fn put(&mut self, minipage: Minipage, run: &MinipageRun) {
        let (shape, first) = (self.shape(run), offset_of(run.at));
        let single = self.single.get_or_default(shape);
        if single.insert(minipage.at, first).is_some() {
            return;
        }
        self.bytes += u64::from(minipage.bytes);
        let of_run = self.of_run.get_or_default(first);
        *of_run += 1;
        if *of_run == run.count {
            let whole = self.whole.get_or_default((shape, run.count));
            whole.insert(first);
        }
    }

    /// Freed minipages of a shape: a whole run of so many, or one of any run.
    pub fn take(
        &mut self,
        count: u64,
        shape: Shape,
        runs: &SortedMap<u64, MinipageRun>,
    ) -> Option<MinipageRun> {
        if let Some(whole) = self.whole.get_mut(&(shape, count))
            && let Some(first) = whole.pop_first()
        {
            let run = *runs.get(&first)?;
            let single = self.single.get_or_default(shape);
            for minipage in (0..count).filter_map(|index| run.minipage(index)) {
                single.remove(&minipage.at);
            }
            self.of_run.remove(&first);
            self.bytes -= count * u64::from(run.bytes);
            return Some(run);
        }
        if count != 1 {
            return None;
        }
        let (at, first) = self.single.get_mut(&shape)?.pop_first()?;
        let run = *runs.get(&first)?;
        if let Some(of_run) = self.of_run.get_mut(&first) {
            if *of_run == run.count
                && let Some(whole) = self.whole.get_mut(&(shape, run.count))
            {
                whole.remove(&first);
            }
            *of_run -= 1;
        }
        self.bytes -= u64::from(run.bytes);
        Some(MinipageRun {
            at,
            on_page: 1,
            count: 1,
            ..run
        })
    }
}
