//! What a writer changed in a page: run-length differences against a twin (TreadMarks).
//!
//! A *diff* is a list of runs, each with its place and its bytes, in ascending order. Pages are
//! compared by words of 4 bytes; where a page has parts of values that are smaller than a word,
//! by bytes, so that two writers of one word lose nothing. What a run may not do is decided where
//! an object is read: its bytes are tested then.
//!
//! Raw memory compares its minipages so too, by bytes, a page or less at once.

use dhole_space::PAGE_BYTES;

/// Bytes of a page.
pub(crate) const BYTES: usize = PAGE_BYTES as usize;

/// A copy of a page.
pub(crate) type Snapshot = Box<[u8; BYTES]>;

/// Bytes of a run's place and length.
const RUN_BYTES: usize = 2 + 2;

/// Bytes that are compared at once.
pub(crate) const WORD: usize = 4;

/// Why bytes are no diff of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PageDiffError {
    /// A run's place or its bytes are missing.
    #[error("it ends within a run")]
    CutOff,
    /// A run lies outside of the page.
    #[error("{bytes} bytes at {offset} are beyond a page, or the part of one that is compared")]
    OutOfBounds {
        /// Where the run starts.
        offset: u16,
        /// Its bytes.
        bytes: u16,
    },
}

/// Appends to `out` how `new` differs from `old`, compared `grain` bytes at a time: two pages, or
/// equal parts of two.
///
/// # Panics
/// When they are longer than a page, or not of one length.
pub fn diff(old: &[u8], new: &[u8], grain: usize, out: &mut Vec<u8>) {
    let bytes = old.len();
    assert!(
        bytes <= BYTES && bytes == new.len(),
        "{bytes} bytes and {}",
        new.len()
    );
    let differs = |at: usize| old[at..at + grain] != new[at..at + grain];
    let mut at = 0;
    while let Some(start) = first_that_differs(old, new, at, grain) {
        let end = (start..bytes).step_by(grain).find(|&at| !differs(at));
        let end = end.unwrap_or(bytes);
        out.extend_from_slice(&(start as u16).to_le_bytes());
        out.extend_from_slice(&((end - start) as u16).to_le_bytes());
        out.extend_from_slice(&new[start..end]);
        at = end;
    }
}

/// Where the first bytes from a place on are that differ. Those that do not are passed over by
/// eights.
fn first_that_differs(old: &[u8], new: &[u8], from: usize, grain: usize) -> Option<usize> {
    const EIGHT: usize = 8;
    let rest = old
        .get(from..)?
        .chunks(EIGHT)
        .zip(new[from..].chunks(EIGHT));
    let equal = rest.take_while(|(old, new)| old == new).count();
    let behind = (from + equal * EIGHT).min(old.len());
    let mut all = (behind..old.len()).step_by(grain);
    all.find(|&at| old[at..at + grain] != new[at..at + grain])
}

/// Calls `f` with each run of a diff of so many bytes: where it starts, and its bytes.
///
/// # Errors
/// [`PageDiffError`], before `f` has been called.
pub fn runs(
    diff: &[u8],
    bytes: usize,
    mut f: impl FnMut(usize, &[u8]),
) -> Result<(), PageDiffError> {
    let mut rest = diff;
    while let Some((_, _, behind)) = next(rest, bytes)? {
        rest = behind;
    }
    rest = diff;
    while let Some((offset, run, behind)) = next(rest, bytes)? {
        f(offset, run);
        rest = behind;
    }
    Ok(())
}

type Run<'a> = (usize, &'a [u8], &'a [u8]);

/// The first run, and what follows on it.
fn next(diff: &[u8], all: usize) -> Result<Option<Run<'_>>, PageDiffError> {
    if diff.is_empty() {
        return Ok(None);
    }
    let (head, rest) = diff
        .split_first_chunk::<RUN_BYTES>()
        .ok_or(PageDiffError::CutOff)?;
    let [offset, bytes] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_le_bytes);
    if usize::from(offset) + usize::from(bytes) > all {
        return Err(PageDiffError::OutOfBounds { offset, bytes });
    }
    let split = rest.split_at_checked(usize::from(bytes));
    let (run, rest) = split.ok_or(PageDiffError::CutOff)?;
    Ok(Some((usize::from(offset), run, rest)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(changes: &[(usize, u8)]) -> Snapshot {
        let mut page = Box::new([7; BYTES]);
        changes.iter().for_each(|(at, byte)| page[*at] = *byte);
        page
    }

    fn apply(diff: &[u8], page: &mut [u8; BYTES]) -> Result<(), PageDiffError> {
        runs(diff, BYTES, |at, run| {
            page[at..at + run.len()].copy_from_slice(run)
        })
    }

    #[test]
    fn words_that_differ_and_touch_are_one_run() {
        let mut out = Vec::new();
        diff(
            &page(&[])[..],
            &page(&[(5, 1), (8, 2), (4095, 3)])[..],
            WORD,
            &mut out,
        );
        let mut seen = Vec::new();
        runs(&out, BYTES, |at, run| seen.push((at, run.len()))).unwrap();
        assert_eq!(seen, [(4, 8), (4092, 4)]);
        assert_eq!(out.len(), 2 * RUN_BYTES + 12);
    }

    #[test]
    fn writers_of_one_words_bytes_lose_nothing_where_bytes_are_compared() {
        let base = page(&[]);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        diff(&base[..], &page(&[(16, 1)])[..], 1, &mut one);
        diff(&base[..], &page(&[(17, 2)])[..], 1, &mut two);
        let mut merged = base.clone();
        apply(&one, &mut merged).unwrap();
        apply(&two, &mut merged).unwrap();
        assert_eq!(merged, page(&[(16, 1), (17, 2)]));
    }

    #[test]
    fn bytes_that_are_no_diff_are_refused_before_anything_is_changed() {
        let mut out = Vec::new();
        diff(
            &page(&[])[..],
            &page(&[(0, 1), (100, 1)])[..],
            WORD,
            &mut out,
        );
        let mut changed = page(&[]);
        for cut in [1, 5, out.len() - 1] {
            assert_eq!(apply(&out[..cut], &mut changed), Err(PageDiffError::CutOff));
        }
        let beyond = [0xff, 0x0f, 2, 0, 1, 1];
        let (offset, bytes) = (4095, 2);
        assert_eq!(
            apply(&beyond, &mut changed),
            Err(PageDiffError::OutOfBounds { offset, bytes })
        );
        assert_eq!(changed, page(&[]));
    }

    proptest! {
        #[test]
        fn a_diff_leads_from_the_old_page_to_the_new_one(
            changes in prop::collection::vec((0..BYTES, any::<u8>()), 0..200),
            grain in prop::sample::select(vec![1, WORD]),
        ) {
            let (old, new) = (page(&[]), page(&changes));
            let mut out = Vec::new();
            diff(&old[..], &new[..], grain, &mut out);
            let mut merged = old.clone();
            apply(&out, &mut merged).unwrap();
            prop_assert_eq!(merged, new);
        }

        #[test]
        fn writers_of_different_words_can_be_merged_in_any_order(
            mine in prop::collection::vec((0..BYTES / 8, any::<u8>()), 0..100),
            theirs in prop::collection::vec((0..BYTES / 8, any::<u8>()), 0..100),
        ) {
            let place = |half: usize| move |&(at, byte): &(usize, u8)| (8 * at + 4 * half, byte);
            let mine: Vec<_> = mine.iter().map(place(0)).collect();
            let theirs: Vec<_> = theirs.iter().map(place(1)).collect();
            let base = page(&[]);
            let diffs = [&mine, &theirs].map(|changes| {
                let mut out = Vec::new();
                diff(&base[..], &page(changes)[..], WORD, &mut out);
                out
            });
            let wanted = page(&[mine, theirs].concat());
            for order in [[0, 1], [1, 0]] {
                let mut merged = base.clone();
                for i in order {
                    let one: &[u8] = &diffs[i];
                    apply(one, &mut merged).unwrap();
                }
                prop_assert_eq!(&merged, &wanted);
            }
        }

        #[test]
        fn whatever_comes_is_a_diff_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut page = page(&[]);
            let _ = apply(&bytes, &mut page);
        }
    }
}
