//! What a node wrote into a minipage together with others: the difference from its twin.
//!
//! For each page of the minipage that differs: the number of the page and how long its part is, 4
//! bytes each, and the runs of bytes that differ ([`page_diff`]). Single bytes are compared: what
//! numbers a program has there nobody knows, and two nodes may write bytes side by side.

use dhole_heap::page_diff::{self, PageDiffError};
use dhole_protocol::memory::MINIPAGE_PAGE;

const PAGE: usize = MINIPAGE_PAGE as usize;

/// Bytes of a page's number and the length of its part.
const HEAD: usize = 4 + 4;

/// How `new` differs from `old`, which is as long.
pub(crate) fn diff(old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (page, (old, new)) in old.chunks(PAGE).zip(new.chunks(PAGE)).enumerate() {
        if old == new {
            continue;
        }
        out.extend_from_slice(&(page as u32).to_le_bytes());
        let length = out.len();
        out.extend_from_slice(&[0; 4]);
        page_diff::diff(old, new, 1, &mut out);
        let bytes = (out.len() - length - 4) as u32;
        out[length..length + 4].copy_from_slice(&bytes.to_le_bytes());
    }
    out
}

/// Calls `f` with each run of a diff of so many bytes: where it starts, and its bytes.
///
/// # Errors
/// [`PageDiffError`]. `f` has been called with no run that is not within them.
pub(crate) fn runs(
    mut diff: &[u8],
    bytes: usize,
    mut f: impl FnMut(usize, &[u8]),
) -> Result<(), PageDiffError> {
    while !diff.is_empty() {
        let (head, rest) = diff
            .split_first_chunk::<HEAD>()
            .ok_or(PageDiffError::CutOff)?;
        let [page, length] = [&head[..4], &head[4..]]
            .map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")) as usize);
        let part = rest.split_at_checked(length);
        let (part, rest) = part.ok_or(PageDiffError::CutOff)?;
        let begins = page.saturating_mul(PAGE);
        let within = bytes.saturating_sub(begins).min(PAGE);
        page_diff::runs(part, within, |at, run| f(begins + at, run))?;
        diff = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merged(diff: &[u8], mut into: Vec<u8>) -> Result<Vec<u8>, PageDiffError> {
        let bytes = into.len();
        runs(diff, bytes, |at, run| {
            into[at..at + run.len()].copy_from_slice(run)
        })?;
        Ok(into)
    }

    fn changed(old: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
        let mut new = old.to_vec();
        changes
            .iter()
            .for_each(|(at, byte)| new[at % old.len()] = *byte);
        new
    }

    #[test]
    fn bytes_that_no_node_changed_take_nothing() {
        let old = vec![7; 2 * PAGE + 100];
        assert_eq!(diff(&old, &old), []);
        let new = changed(&old, &[(PAGE + 5, 1), (PAGE + 6, 2)]);
        let of = diff(&old, &new);
        assert_eq!(of, [1, 0, 0, 0, 6, 0, 0, 0, 5, 0, 2, 0, 1, 2]);
        let last = diff(&old, &changed(&old, &[(2 * PAGE + 99, 1)]));
        assert_eq!(last.len(), HEAD + 5);
        // The same at the end of a minipage that is a byte shorter is beyond it.
        assert!(merged(&last, vec![7; 2 * PAGE + 99]).is_err());
        assert!(merged(&of, vec![7; PAGE]).is_err());
        for cut in 1..of.len() {
            assert_eq!(merged(&of[..cut], old.clone()), Err(PageDiffError::CutOff));
        }
    }

    proptest! {
        #[test]
        fn writers_of_different_bytes_are_merged_in_any_order(
            bytes in 1..2 * PAGE,
            mine in prop::collection::vec((0..2 * PAGE, any::<u8>()), 0..100),
            theirs in prop::collection::vec((0..2 * PAGE, any::<u8>()), 0..100),
        ) {
            let old = vec![3; bytes];
            let side = |even: bool| move |&(at, byte): &(usize, u8)| {
                let at = at % bytes;
                (at % 2 == usize::from(!even)).then_some((at, byte))
            };
            let mine: Vec<_> = mine.iter().filter_map(side(true)).collect();
            let theirs: Vec<_> = theirs.iter().filter_map(side(false)).collect();
            let wanted = changed(&changed(&old, &mine), &theirs);
            let [one, two] = [&mine, &theirs].map(|it| changed(&old, it));
            prop_assert_eq!(merged(&diff(&old, &two), one.clone()), Ok(wanted.clone()));
            prop_assert_eq!(merged(&diff(&old, &one), two), Ok(wanted));
        }

        #[test]
        fn whatever_comes_is_within_the_minipage_or_refused(
            diff in prop::collection::vec(any::<u8>(), 0..64),
            bytes in 1..2 * PAGE,
        ) {
            let _ = merged(&diff, vec![0; bytes]);
        }
    }
}
