//! Runs an evaluation.

use crate::cache::ResultCache;
use crate::cell::Cell;
use crate::error::PaperError;
use crate::paper::{Batch, Variant};
use crate::scope::{Evaluation, Key, Scope};

/// The number of runs that failed, and of all.
#[derive(Default)]
pub struct Count {
    pub failed: usize,
    pub all: usize,
}

/// Runs what has not run yet, so many at once, and keeps in `evaluation` what the runs print.
///
/// # Errors
/// [`PaperError`] if nothing more can run.
pub fn run(
    evaluation: &mut Evaluation,
    cache: &ResultCache,
    at_once: usize,
) -> Result<Count, PaperError> {
    let mut count = Count::default();
    for batch in 0..evaluation.paper.runs.len() {
        let cells = cells(&evaluation.scope(), &evaluation.paper.runs[batch]);
        let paper = &evaluation.paper.name;
        let cells = cells.map_err(|why| PaperError::Data {
            paper: paper.clone(),
            why,
        })?;
        for (turns, cells) in cells {
            let (keys, cells): (Vec<Key>, Vec<Cell>) = cells.into_iter().unzip();
            // What is timed runs alone.
            let found = cache.fetch(&cells, if turns { 1 } else { at_once })?;
            count.all += cells.len();
            let mut known = 0;
            for (key, printed) in keys
                .iter()
                .zip(found)
                .filter_map(|(key, found)| Some((key, found.ok()?)))
            {
                evaluation.printed.entry(*key).or_default().push(printed);
                known += 1;
            }
            count.failed += cells.len() - known;
            if turns && known < cells.len() {
                keys.first().map(|key| evaluation.printed.remove(key));
            }
        }
    }
    Ok(count)
}

type Cells = Vec<(bool, Vec<(Key, Cell)>)>;

/// The runs of a batch: the turns of each that is timed, one after the other; all others together.
fn cells(scope: &Scope<'_>, batch: &Batch) -> Result<Cells, String> {
    let mut all = Cells::new();
    if !scope.holds(batch.when.as_deref())? {
        return Ok(all);
    }
    let mut places = Vec::new();
    for axes in &batch.each {
        places.extend(scope.along(axes, None)?);
    }
    for place in places {
        let key = place
            .key()
            .ok_or("a run lacks its program, nodes or variant")?;
        let cells = Cell::at(&place)?.into_iter().map(|cell| (key, cell));
        let turns = place.entry::<Variant>("variant")?.turns.is_some();
        match all.last_mut() {
            Some((false, together)) if !turns => together.extend(cells),
            _ => all.push((turns, cells.collect())),
        }
    }
    Ok(all)
}
