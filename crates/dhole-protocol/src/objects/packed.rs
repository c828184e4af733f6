//! Calls that go together, and what they came to, as the bytes that go: where there is nothing
//! else to tell, nobody makes anything else of them on the way.

use std::convert::Infallible;
use std::fmt;

use dhole_model::{NodeId, ObjectId};
use dhole_wire::{Tail, Wire, WireError, count};

use super::bytes::{Bytes, number};
use super::call::{CallId, CallRef, Outcome};

/// Calls that one node's worker has started. Each begins with a byte: the length of the arguments,
/// and whether the number is that of the call before and one, and whether all else is as it was
/// there. What is not so follows, then the arguments. So most calls take a byte beside these.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PackedCalls {
    bytes: Vec<u8>,
    calls: usize,
    /// Bytes of all arguments together.
    arguments: usize,
    last: Last,
}

/// Results of calls, each with the number of its call, in the same way.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PackedResults {
    bytes: Vec<u8>,
    results: usize,
    /// Bytes of all results together.
    all: usize,
    /// The number of the last one.
    last: u64,
}

/// What a call may have in common with the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Last {
    number: u64,
    alike: Alike,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Alike {
    object: u64,
    kind: u64,
    operation: u16,
    writes: bool,
}

/// In the first byte: the number is the one before and one.
const NEXT: u8 = 0x80;
/// All else is as before.
const SAME: u8 = 0x40;
/// The length, or that it follows.
const LENGTH: u8 = 0x3f;

/// Appends a first byte, the number where it is not the next, what `rest` appends, and the body,
/// with its length before it where that is not short: nothing, if there is no body. What appends
/// these is handed on in registers so.
#[inline(always)]
fn put<E>(
    bytes: &mut Vec<u8>,
    (last, number): (u64, u64),
    rest: impl FnOnce(&mut Vec<u8>) -> u8,
    body: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let begin = bytes.len();
    let mut whole = Whole { bytes, end: begin };
    let bytes = &mut *whole.bytes;
    let mut first = NEXT;
    bytes.push(first);
    if number != last.wrapping_add(1) {
        bytes.extend_from_slice(&number.to_le_bytes());
        first = 0;
    }
    first |= rest(bytes);
    let at = bytes.len();
    if !body(bytes)? {
        return Ok(None);
    }
    let length = bytes.len() - at;
    if length >= usize::from(LENGTH) {
        bytes.splice(at..at, (length as u64).to_le_bytes());
    }
    bytes[begin] = first | length.min(LENGTH.into()) as u8;
    whole.end = bytes.len();
    Ok(Some(length))
}

/// Bytes of which those behind `end` are not kept: of what failed or panicked, while it was
/// written, nothing is left.
struct Whole<'a> {
    bytes: &'a mut Vec<u8>,
    end: usize,
}

impl Drop for Whole<'_> {
    #[inline]
    fn drop(&mut self) {
        self.bytes.truncate(self.end);
    }
}

/// The first byte and the number that `bytes` begin with, and what is behind them.
#[inline]
fn first(bytes: &[u8], last: u64) -> Option<(u8, u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    match first & NEXT {
        0 => number(rest).map(|(its, rest)| (first, its, rest)),
        _ => Some((first, last.wrapping_add(1), rest)),
    }
}

/// The body that comes next behind this first byte, and what is behind it.
#[inline]
fn body(first: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match first & LENGTH {
        LENGTH => number(rest)?,
        short => (short.into(), rest),
    };
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// The first call of `bytes`, its arguments by themselves, and what is behind it.
#[inline]
fn first_call(bytes: &[u8], last: Last) -> Option<(Last, &[u8], &[u8])> {
    let (first, its, mut rest) = first(bytes, last.number)?;
    let mut alike = last.alike;
    if first & SAME == 0 {
        (alike.object, rest) = number(rest)?;
        (alike.kind, rest) = number(rest)?;
        let ([o1, o2, writes @ (0 | 1)], behind) = rest.split_first_chunk()? else {
            return None;
        };
        alike.operation = u16::from_le_bytes([*o1, *o2]);
        (alike.writes, rest) = (*writes == 1, behind);
    }
    let (arguments, rest) = body(first, rest)?;
    Some((Last { number: its, alike }, arguments, rest))
}

/// The first result of `bytes`, and what is behind it.
#[inline]
fn first_result(bytes: &[u8], last: u64) -> Option<(u64, &[u8], &[u8])> {
    let (first, its, rest) = first(bytes, last)?;
    if first & SAME != 0 {
        return None;
    }
    let (result, rest) = body(first, rest)?;
    Some((its, result, rest))
}

impl PackedCalls {
    /// Puts one more behind the others.
    #[inline]
    pub fn push(&mut self, call: CallRef<'_>) {
        self.push_with(call, |bytes| {
            bytes.extend_from_slice(call.arguments);
            Ok::<_, Infallible>(())
        });
    }

    /// The same, with the arguments that are appended, whatever those of `call` are; whether they
    /// could be.
    #[inline]
    pub(super) fn push_with<E>(
        &mut self,
        call: CallRef<'_>,
        arguments: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> bool {
        let alike = Alike {
            object: call.object.0,
            kind: call.kind,
            operation: call.operation,
            writes: call.writes,
        };
        let same = alike == self.last.alike;
        let number = call.id.number;
        let rest = |bytes: &mut Vec<u8>| {
            if same {
                return SAME;
            }
            bytes.extend_from_slice(&alike.object.to_le_bytes());
            bytes.extend_from_slice(&alike.kind.to_le_bytes());
            bytes.extend_from_slice(&alike.operation.to_le_bytes());
            bytes.push(u8::from(alike.writes));
            0
        };
        let arguments = |bytes: &mut Vec<u8>| arguments(bytes).map(|()| true);
        let put = put(&mut self.bytes, (self.last.number, number), rest, arguments);
        let Ok(Some(length)) = put else {
            return false;
        };
        self.calls += 1;
        self.arguments += length;
        self.last = Last { number, alike };
        true
    }

    /// How many they are.
    #[inline]
    pub fn len(&self) -> usize {
        self.calls
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// The number of the first.
    pub(super) fn first(&self) -> Option<u64> {
        self.iter(NodeId(0)).next().map(|call| call.id.number)
    }

    /// Bytes of all arguments together.
    #[inline]
    pub fn arguments(&self) -> usize {
        self.arguments
    }

    /// The calls, in order, as the worker of this node made them.
    #[inline]
    pub fn iter(&self, node: NodeId) -> impl Iterator<Item = CallRef<'_>> {
        let (mut rest, mut last) = (&self.bytes[..], Last::default());
        std::iter::from_fn(move || {
            let (call, arguments, behind) = first_call(rest, last)?;
            (rest, last) = (behind, call);
            let Last { number, alike } = call;
            Some(CallRef {
                id: CallId { node, number },
                object: ObjectId(alike.object),
                kind: alike.kind,
                operation: alike.operation,
                writes: alike.writes,
                started: true,
                chain: &[],
                arguments,
            })
        })
    }

    /// The calls of these bytes, if that is what they are.
    fn of(bytes: &[u8]) -> Option<PackedCalls> {
        let mut all = PackedCalls::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (last, arguments, behind) = first_call(rest, all.last)?;
            (rest, all.last) = (behind, last);
            all.calls += 1;
            all.arguments += arguments.len();
        }
        all.bytes = bytes.to_vec();
        Some(all)
    }
}

impl PackedResults {
    /// None, with room for so many small ones.
    pub(super) fn with_room(results: usize) -> PackedResults {
        PackedResults {
            bytes: Vec::with_capacity(results * size_of::<u64>()),
            ..PackedResults::default()
        }
    }

    /// Puts one more behind the others.
    pub fn push(&mut self, call: u64, result: &[u8]) {
        let Ok(_) = self.push_with(call, |bytes| {
            bytes.extend_from_slice(result);
            Ok::<_, Infallible>(true)
        });
    }

    /// The same, with the result that is appended, if there is one.
    ///
    /// # Errors
    /// As appending it; then it is not there.
    #[inline(always)] // as `put`
    pub(super) fn push_with<E>(
        &mut self,
        call: u64,
        result: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let put = put(&mut self.bytes, (self.last, call), |_| 0, result)?;
        if let Some(length) = put {
            self.results += 1;
            self.all += length;
            self.last = call;
        }
        Ok(put.is_some())
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.results
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.results == 0
    }

    /// Bytes of all results together.
    pub fn bytes(&self) -> usize {
        self.all
    }

    /// The results, in order, each with the number of its call.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let (mut rest, mut last) = (&self.bytes[..], 0);
        std::iter::from_fn(move || {
            let (call, result, behind) = first_result(rest, last)?;
            (rest, last) = (behind, call);
            Some((call, result))
        })
    }

    /// The same, as outcomes.
    #[inline]
    pub fn outcomes(&self) -> impl Iterator<Item = (u64, Outcome)> {
        self.iter()
            .map(|(call, result)| (call, Ok(Bytes::from(result))))
    }

    /// The results of these bytes, if that is what they are.
    fn of(bytes: &[u8]) -> Option<PackedResults> {
        let mut all = PackedResults::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (call, result, behind) = first_result(rest, all.last)?;
            (rest, all.last) = (behind, call);
            all.results += 1;
            all.all += result.len();
        }
        all.bytes = bytes.to_vec();
        Some(all)
    }
}

impl fmt::Debug for PackedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of which node they are is said beside them.
        f.debug_list().entries(self.iter(NodeId(0))).finish()
    }
}

impl fmt::Debug for PackedResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

macro_rules! packed {
    ($($packed:ident),*) => {$(
        impl Wire for $packed {
            type Head = u32;

            fn head(&self) -> u32 {
                count(self.bytes.len())
            }

            fn tail_len(&self) -> usize {
                self.bytes.len()
            }

            fn write_tail(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.bytes);
            }

            fn read(head: &u32, tail: &mut Tail<'_>) -> Result<$packed, WireError> {
                let all = $packed::of(tail.bytes(*head as usize)?);
                all.ok_or(WireError::Value("calls or results that end in the middle of one"))
            }
        }
    )*};
}

packed!(PackedCalls, PackedResults);

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::call::Call;
    use super::*;

    fn call(number: u64, operation: u16, arguments: &[u8]) -> Call {
        Call {
            id: CallId {
                node: NodeId(3),
                number,
            },
            object: ObjectId(1 << 20),
            kind: u64::MAX,
            operation,
            writes: operation.is_multiple_of(2),
            started: true,
            chain: Bytes::default(),
            arguments: arguments.into(),
        }
    }

    /// Calls that are alike and not, whose numbers follow each other and do not, of all lengths.
    fn calls() -> Vec<Call> {
        let long = [7; 100];
        let lengths = [0, 1, 62, 63, 64, 100, 0, 0];
        let numbers = [5, 6, 7, 9, 10, 3, u64::MAX, 0];
        let operations = [1, 1, 2, 2, 300, 300, 0, 0];
        let three = lengths.into_iter().zip(numbers).zip(operations);
        three
            .map(|((length, number), operation)| call(number, operation, &long[..length]))
            .collect()
    }

    fn packed() -> (PackedCalls, PackedResults) {
        let (mut packed, mut results) = (PackedCalls::default(), PackedResults::default());
        for call in calls() {
            packed.push(call.by_ref());
            results.push(call.id.number, &call.arguments);
        }
        (packed, results)
    }

    #[test]
    fn calls_and_results_come_back_as_they_were() {
        let (packed, results) = packed();
        assert_eq!((packed.len(), packed.arguments()), (8, 290));
        assert_eq!((results.len(), results.bytes()), (8, 290));
        let both = (packed, results);
        let back = <(PackedCalls, PackedResults)>::parse(&both.to_bytes()).unwrap();
        assert_eq!(back, both);
        let calls = calls();
        assert!(back.0.iter(NodeId(3)).eq(calls.iter().map(Call::by_ref)));
        let expected = calls.iter().map(|it| (it.id.number, &it.arguments[..]));
        assert!(back.1.iter().eq(expected));
    }

    #[test]
    fn most_take_a_byte_beside_what_they_bring() {
        let (mut packed, mut results) = (PackedCalls::default(), PackedResults::default());
        for number in 100..164 {
            packed.push(call(number, 1, &[1]).by_ref());
            results.push(number, &[1, 2]);
        }
        assert_eq!(
            (packed.bytes.len(), results.bytes.len()),
            (64 * 2 + 27, 64 * 3 + 8)
        );
    }

    #[test]
    fn what_ends_in_the_middle_of_one_is_refused() {
        let (packed, results) = packed();
        let ends = |bytes: &[u8], whole: fn(&[u8]) -> bool| {
            let all = 0..=bytes.len();
            all.filter(|end| whole(&bytes[..*end])).collect::<Vec<_>>()
        };
        let of_calls = ends(&packed.bytes, |bytes| PackedCalls::of(bytes).is_some());
        let of_results = ends(&results.bytes, |bytes| PackedResults::of(bytes).is_some());
        assert_eq!(of_calls, [0, 28, 30, 112, 192, 284, 401, 429, 430]);
        assert_eq!(of_results, [0, 9, 11, 74, 154, 227, 344, 353, 354]);
    }

    #[test]
    fn nothing_is_left_of_what_could_not_be_appended() {
        let (mut packed, mut results) = packed();
        let whole = (packed.clone(), results.clone());
        let other = call(77, 9, &[]);
        packed.push_with(other.by_ref(), |bytes| {
            bytes.extend([1; 70]);
            Err(())
        });
        let refused = results.push_with(77, |bytes| {
            bytes.extend([1; 70]);
            Err(())
        });
        assert_eq!(refused, Err(()));
        let blocked = results.push_with::<()>(77, |bytes| {
            bytes.push(1);
            Ok(false)
        });
        assert_eq!(blocked, Ok(false));
        assert_eq!((packed, results), whole);
    }

    #[test]
    fn nothing_is_left_of_what_panicked_while_it_was_appended() {
        let (mut packed, mut results) = packed();
        let whole = (packed.clone(), results.clone());
        let panics = |bytes: &mut Vec<u8>| -> Result<(), Infallible> {
            bytes.extend([1; 70]);
            panic!("on purpose")
        };
        let other = call(77, 9, &[]);
        let pushes = || packed.push_with(other.by_ref(), panics);
        assert!(catch_unwind(AssertUnwindSafe(pushes)).is_err());
        let pushes = || results.push_with(77, |bytes| panics(bytes).map(|()| true));
        assert!(catch_unwind(AssertUnwindSafe(pushes)).is_err());
        assert_eq!((packed, results), whole);
    }

    #[test]
    fn what_nobody_says_is_refused() {
        let mut neither = PackedCalls::default();
        neither.push(call(5, 1, &[]).by_ref());
        *neither.bytes.last_mut().unwrap() = 2;
        assert_eq!(PackedCalls::of(&neither.bytes), None);
        assert_eq!(PackedResults::of(&[NEXT | SAME]), None);
        // Longer than all memory.
        let mut long = vec![NEXT | LENGTH];
        long.extend([0xff; 8]);
        assert_eq!(PackedResults::of(&long), None);
    }
}
