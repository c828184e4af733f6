//! How many mappings the views need under `mprotect`, which splits one where pages that follow each
//! other have different protections.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ProtectionError;
use crate::protection::Protection;
use crate::variable::variable;

/// The variable that says how many mappings of the process there may be.
const VARIABLE: &str = "DHOLE_MOST_MAPPINGS";

/// How many the system allows a process, and what is so where the file cannot be read.
const ALLOWED_FILE: &str = "/proc/sys/vm/max_map_count";
const ALLOWED: usize = 65_530;

/// Mappings of the views of all nodes of this process.
static OF_VIEWS: AtomicUsize = AtomicUsize::new(0);

/// Pages of one view that follow each other and have one protection: a mapping.
#[derive(Clone, Copy)]
struct Mapping {
    end: usize,
    /// Where its view begins.
    view: usize,
    protection: Protection,
}

/// The mappings of a node's views.
pub(super) struct Mappings {
    /// By the address at which they begin.
    all: Mutex<BTreeMap<usize, Mapping>>,
    /// Mappings of the process for anything else, when the node was made.
    others: usize,
    most: usize,
    allowed: usize,
}

impl Mappings {
    /// For a node of this process.
    ///
    /// # Errors
    /// The system's own; or the variable is no number.
    pub(super) fn new() -> io::Result<Mappings> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let of_views = OF_VIEWS.load(Ordering::SeqCst);
        let allowed = std::fs::read_to_string(ALLOWED_FILE).ok();
        let allowed = allowed.and_then(|text| text.trim().parse().ok());
        let allowed = allowed.unwrap_or(ALLOWED);
        let most = match variable(VARIABLE) {
            None => allowed / 5 * 4,
            Some(said) => said.parse().map_err(|_| {
                let why = format!("{VARIABLE} is `{said}`: a number is expected");
                io::Error::new(io::ErrorKind::InvalidInput, why)
            })?,
        };
        let others = maps.lines().count().saturating_sub(of_views);
        Ok(Mappings::limited(others, most, allowed))
    }

    fn limited(others: usize, most: usize, allowed: usize) -> Mappings {
        Mappings {
            all: Mutex::default(),
            others,
            most,
            allowed,
        }
    }

    /// How many they are.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Mapping>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A view is mapped here, and closed.
    pub(super) fn add(&self, view: Range<usize>) {
        let mapping = Mapping {
            end: view.end,
            view: view.start,
            protection: Protection::Closed,
        };
        if self.all().insert(view.start, mapping).is_none() {
            OF_VIEWS.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// No view is mapped any more.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.all());
        OF_VIEWS.fetch_sub(all.len(), Ordering::SeqCst);
    }

    /// Gives pages of a view another protection by `act`, unless there would be too many mappings.
    ///
    /// # Errors
    /// [`ProtectionError`]
    pub(super) fn change(
        &self,
        pages: Range<usize>,
        protection: Protection,
        act: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), ProtectionError> {
        let mut all = self.all();
        let Some((gone, made)) = split(&all, &pages, protection) else {
            return Ok(act()?);
        };
        let more = made.len().saturating_sub(gone.len());
        let of_views = OF_VIEWS.fetch_add(more, Ordering::SeqCst) + more;
        let mappings = self.others + of_views;
        let acted = match more > 0 && mappings > self.most {
            true => Err(ProtectionError::Mappings {
                mappings,
                most: self.most,
                allowed: self.allowed,
            }),
            false => act().map_err(ProtectionError::from),
        };
        if let Err(cause) = acted {
            OF_VIEWS.fetch_sub(more, Ordering::SeqCst);
            return Err(cause);
        }
        OF_VIEWS.fetch_sub(gone.len().saturating_sub(made.len()), Ordering::SeqCst);
        gone.iter().for_each(|start| _ = all.remove(start));
        all.extend(made);
        Ok(())
    }
}

impl Drop for Mappings {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Which mappings are gone if pages get a protection, and which there are in their place; none
/// where no view is known there.
type Split = (Vec<usize>, Vec<(usize, Mapping)>);

fn split(
    all: &BTreeMap<usize, Mapping>,
    pages: &Range<usize>,
    protection: Protection,
) -> Option<Split> {
    let (first, before) = all.range(..=pages.start).next_back()?;
    let view = before.view;
    let mut whole = pages.clone();
    let mut made = Vec::new();
    // What is left in front joins the pages, or stays a mapping; so does the one before.
    match *first < pages.start {
        true if before.protection == protection => whole.start = *first,
        true => made.push((
            *first,
            Mapping {
                end: pages.start,
                ..*before
            },
        )),
        false => {
            let joins = |(_, it): &(&usize, &Mapping)| {
                it.view == view && it.end == pages.start && it.protection == protection
            };
            let neighbour = all.range(..*first).next_back().filter(joins);
            whole.start = neighbour.map_or(whole.start, |(start, _)| *start);
        }
    }
    let (last, behind) = all.range(..pages.end).next_back()?;
    match behind.end > pages.end {
        true if behind.protection == protection => whole.end = behind.end,
        true => made.push((pages.end, *behind)),
        false => {
            let neighbour = all.get(&pages.end);
            let joins = |it: &&Mapping| it.view == view && it.protection == protection;
            whole.end = neighbour.filter(joins).map_or(whole.end, |it| it.end);
        }
    }
    debug_assert!(*last >= *first && behind.view == view);
    let mapping = Mapping {
        end: whole.end,
        view,
        protection,
    };
    let from = whole.start.min(*first);
    let gone = all.range(from..whole.end).map(|(start, _)| *start);
    made.push((whole.start, mapping));
    Some((gone.collect(), made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_make_too_many_mappings_is_refused_and_changes_nothing() {
        use Protection::{Closed, Open};
        // Other tests of this process may have views.
        let mut mappings = Mappings::limited(0, usize::MAX, 70_000);
        mappings.add(0x10_000..0x20_000);
        let pages = |first: usize, last: usize| 0x10_000 + first * 0x1000..0x10_000 + last * 0x1000;
        mappings.change(pages(2, 4), Open, || Ok(())).unwrap();
        assert_eq!(mappings.count(), 3);
        mappings.most = 0;
        let refused = mappings.change(pages(6, 7), Open, || unreachable!("it is refused"));
        let is_refused = matches!(
            refused,
            Err(ProtectionError::Mappings {
                mappings: 5..,
                most: 0,
                allowed: 70_000
            })
        );
        assert!(is_refused, "{refused:?}");
        assert_eq!(mappings.count(), 3);
        // What the system refuses is not counted, and what needs no more mappings may be.
        let cause = || io::Error::from_raw_os_error(libc::ENOMEM);
        assert!(
            mappings
                .change(pages(2, 4), Closed, || Err(cause()))
                .is_err()
        );
        assert_eq!(mappings.count(), 3);
        mappings.change(pages(3, 5), Open, || Ok(())).unwrap();
        mappings.change(pages(2, 5), Closed, || Ok(())).unwrap();
        assert_eq!(mappings.count(), 1);
    }
}
