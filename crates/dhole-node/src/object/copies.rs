//! The copies of objects that a node has, and how operations are executed on them.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dhole_heap::HeapMut;
use dhole_model::{NodeId, ObjectId, VectorTime};
use dhole_protocol::objects::{
    Admitted, Bytes, Call, CallRef, Host, Outcome, Ran, Refusal, Saved, Tried,
};
use dhole_protocol::{Protocol, RwLockId, WriteNotices};
use dhole_registry::fnv1a;
use rustc_hash::FxHashMap;

use crate::failure::into_words;

use super::kind::{
    self, AnyObject, Applied, Kind, Lent, Malformed, ObjectType, OperationInfo, encode,
};
use super::sections_here::SectionsHere;

/// The copies of objects on one node.
#[derive(Default)]
pub(crate) struct Copies {
    copies: FxHashMap<ObjectId, Kept>,
    /// Why there is no copy where one should be.
    spoilt: BTreeMap<ObjectId, Refusal>,
    /// Times what the machine of objects executes, where the program's computation is measured.
    pub stopwatch: Option<fn() -> u64>,
    /// Nanoseconds that it has taken and that nobody has been told of.
    pub executed_ns: u64,
    /// Where the bytes of a result are gathered.
    result: Vec<u8>,
}

/// Room for arguments and results that has grown past this is kept while each call needs it.
const MOST_KEPT: usize = 1 << 16;

/// Empties room for the bytes of the next call. If those of the last call were few, what it has
/// grown to before is given back.
#[inline]
pub(crate) fn empty(room: &mut Vec<u8>) {
    if room.capacity() > MOST_KEPT && room.len() <= MOST_KEPT {
        room.shrink_to(MOST_KEPT);
    }
    room.clear();
}

/// A copy of an object.
struct Kept {
    kind: &'static Kind,
    /// What tells the type from others.
    key: u64,
    state: Box<dyn AnyObject>,
    poisoned: Option<Refusal>,
}

fn malformed(cause: Malformed) -> Refusal {
    Refusal::Malformed(cause.to_string().into())
}

impl Kept {
    #[inline]
    fn sound(&mut self) -> Result<&mut Kept, Refusal> {
        match &self.poisoned {
            None => Ok(self),
            Some(refusal) => Err(refusal.clone()),
        }
    }

    /// Runs an operation. One that panics while it writes has left a state that nobody may see.
    #[inline]
    fn run<R>(
        &mut self,
        operation: u16,
        f: impl FnOnce(&mut dyn AnyObject) -> R,
    ) -> Result<R, Refusal> {
        let state = &mut *self.state;
        match catch_unwind(AssertUnwindSafe(|| f(state))) {
            Ok(result) => Ok(result),
            Err(panic) => Err(self.panicked(operation, panic)),
        }
    }

    /// The operation that a call says, of the type that it says.
    #[inline]
    fn checked(
        &self,
        key: u64,
        operation: u16,
        writes: bool,
    ) -> Result<&'static OperationInfo, Refusal> {
        if self.key != key {
            return Err(Refusal::OtherType(self.kind.name().into()));
        }
        let info = self.kind.operations.get(usize::from(operation));
        // Whoever says that it only reads a replica must not change it, and only the order of the
        // group says that a node is lost.
        let is_hook = self.kind.on_loss == Some(operation);
        match info.filter(|info| !is_hook && info.writes == writes) {
            Some(info) => Ok(info),
            None => Err(Refusal::Malformed("it has no such operation".into())),
        }
    }

    #[cold]
    fn panicked(&mut self, operation: u16, panic: Box<dyn Any + Send>) -> Refusal {
        self.has_panicked(operation, into_words(panic))
    }

    fn has_panicked(&mut self, operation: u16, words: Arc<str>) -> Refusal {
        let poisoned = Refusal::Poisoned {
            operation: self.kind.operation(operation),
            words,
        };
        let info = self.kind.operations.get(usize::from(operation));
        if info.is_some_and(|info| info.writes) {
            self.poisoned = Some(poisoned.clone());
        }
        poisoned
    }
}

impl Copies {
    #[cold]
    fn why_not(&self, object: ObjectId) -> Refusal {
        self.spoilt
            .get(&object)
            .cloned()
            .unwrap_or(Refusal::Unknown)
    }

    /// What is left of the copies here, of those objects that count, by their ids.
    pub fn left(&self, counts: impl Fn(ObjectId) -> bool) -> Vec<(ObjectId, String)> {
        let sound = |kept: &&Kept| kept.poisoned.is_none();
        let counted = self.copies.iter().filter(|(object, _)| counts(**object));
        let counted = counted.filter(|(_, kept)| sound(kept));
        let mut left: Vec<_> = counted
            .filter_map(|(object, kept)| {
                let said = catch_unwind(AssertUnwindSafe(|| kept.state.left()));
                let words = said.unwrap_or_else(|panic| Some(into_words(panic).to_string()))?;
                Some((*object, format!("{object} ({}): {words}", kept.kind.name())))
            })
            .collect();
        left.sort();
        left
    }

    /// The name of the type of a copy that is here.
    pub fn type_name(&self, object: ObjectId) -> Option<&'static str> {
        self.copies.get(&object).map(|kept| kept.kind.name())
    }

    /// Room for the bytes of a result.
    #[inline]
    pub fn room(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.result)
    }

    /// It is needed no longer.
    #[inline]
    pub fn keep_room(&mut self, mut room: Vec<u8>) {
        empty(&mut room);
        self.result = room;
    }

    /// Lends the state of an object that has a monitor to the process that executes a call.
    pub fn lend(&mut self, call: &Call) -> Result<Box<dyn Lent>, Refusal> {
        let Some(kept) = self.copies.get_mut(&call.object) else {
            return Err(self.why_not(call.object));
        };
        let kept = kept.sound()?;
        kept.checked(call.kind, call.operation, call.writes)?;
        kept.state.lend(call.writes).ok_or(Refusal::Unknown)
    }

    /// An operation of the object here, in words.
    pub fn operation_name(&self, object: ObjectId, operation: u16) -> Arc<str> {
        let kept = self.copies.get(&object);
        kept.map_or_else(
            || Arc::from("an operation"),
            |kept| kept.kind.operation(operation),
        )
    }

    /// Takes the state back, if the object is here still.
    pub fn give_back(&mut self, object: ObjectId, state: Box<dyn Any + Send>) {
        if let Some(kept) = self.copies.get_mut(&object) {
            kept.state.give_back(state);
        }
    }

    /// The operation of a process has panicked.
    pub fn panicked(&mut self, call: &Call, words: Arc<str>) -> Refusal {
        match self.copies.get_mut(&call.object) {
            Some(kept) => kept.has_panicked(call.operation, words),
            None => Refusal::Panicked(words),
        }
    }

    /// Runs an operation of a known type.
    #[inline]
    pub fn run<T: ObjectType>(
        &mut self,
        object: ObjectId,
        operation: u16,
        f: impl FnOnce(&mut T),
    ) -> Result<(), Refusal> {
        let Some(kept) = self.copies.get_mut(&object) else {
            return Err(self.why_not(object));
        };
        let kept = kept.sound()?;
        let ran = kept.run(operation, |state| {
            let state: &mut dyn Any = state;
            state.downcast_mut().map(f)
        })?;
        ran.ok_or_else(|| Refusal::OtherType(kept.kind.name().into()))
    }
}

/// How a call that holds the monitor of its object is executed.
fn admitted(
    state: &dyn AnyObject,
    takes_worker: bool,
    (operation, arguments): (u16, &[u8]),
) -> Result<Admitted, Malformed> {
    if !takes_worker {
        return Ok(Admitted::AtOnce);
    }
    Ok(match state.may(operation, arguments)? {
        true => Admitted::ByProcess,
        false => Admitted::Blocked,
    })
}

/// The copies of a node, what its worker has seen, and the objects that sections touch.
pub(crate) struct Hosting<'a, 'g> {
    pub copies: &'a mut Copies,
    pub protocol: &'a mut Protocol,
    pub heap: &'a mut HeapMut<'g>,
    pub sections: &'a mut SectionsHere,
}

impl Host for Hosting<'_, '_> {
    fn create(&mut self, object: ObjectId, key: u64, state: &[u8]) -> Outcome {
        let way = kind::find(key)
            .ok_or_else(|| Refusal::Malformed("its type is not known in this process".into()))?;
        let (state, comes_back) = catch_unwind(|| way.make(state))
            .map_err(|panic| Refusal::Panicked(into_words(panic)))??;
        let poisoned = None;
        self.copies.copies.insert(
            object,
            Kept {
                kind: way.kind,
                key: way.key,
                state,
                poisoned,
            },
        );
        Ok(Bytes::from(&comes_back[..]))
    }

    fn spoil(&mut self, object: ObjectId, refusal: Refusal) {
        self.copies.copies.remove(&object);
        self.copies.spoilt.insert(object, refusal);
    }

    fn apply(&mut self, call: &Call) -> Tried {
        let mut result = self.copies.room();
        let applied = self.apply_to(call.by_ref(), &mut result);
        let outcome = applied.map(|done| done.then(|| Bytes::from(&result[..])));
        self.copies.keep_room(result);
        match outcome.transpose() {
            Some(outcome) => Tried::Done(outcome),
            None => Tried::Blocked,
        }
    }

    fn apply_to(&mut self, call: CallRef<'_>, result: &mut Vec<u8>) -> Result<bool, Refusal> {
        let CallRef {
            object,
            kind,
            operation,
            writes,
            arguments,
            ..
        } = call;
        let Some(kept) = self.copies.copies.get_mut(&object) else {
            return Err(self.copies.why_not(object));
        };
        let kept = kept.sound()?;
        kept.checked(kind, operation, writes)?;
        let began = self.copies.stopwatch.map(|now| (now, now()));
        let applied = kept.run(operation, |state| state.apply(operation, arguments, result));
        if let Some((now, began)) = began {
            self.copies.executed_ns += now().saturating_sub(began);
        }
        Ok(applied?.map_err(|cause| malformed(*cause))? == Applied::Done)
    }

    fn apply_section(
        &mut self,
        call: CallRef<'_>,
        time: Option<&VectorTime>,
        result: &mut Vec<u8>,
    ) -> Result<Ran, Refusal> {
        self.section(call, time, result)
    }

    fn sections_wait(&mut self, lock: ObjectId, wait: bool) {
        self.protocol.section_waits(RwLockId(lock.0), wait);
    }

    fn has_monitor(&self, object: ObjectId) -> bool {
        let kept = self.copies.copies.get(&object);
        kept.is_some_and(|kept| kept.kind.has_monitor)
    }

    fn stays(&self, object: ObjectId) -> Option<Refusal> {
        self.copies.copies.get(&object)?.kind.stays.clone()
    }

    fn admits(&mut self, call: CallRef<'_>) -> Result<Admitted, Refusal> {
        let Some(kept) = self.copies.copies.get_mut(&call.object) else {
            return Err(self.copies.why_not(call.object));
        };
        let kept = kept.sound()?;
        let info = kept.checked(call.kind, call.operation, call.writes)?;
        let asked = (call.operation, call.arguments);
        let admitted = kept.run(call.operation, |state| {
            admitted(state, info.takes_worker, asked)
        })?;
        admitted.map_err(malformed)
    }

    fn lose(&mut self, object: ObjectId, node: NodeId) -> Option<u16> {
        let kept = self.copies.copies.get_mut(&object)?.sound().ok()?;
        let operation = kept.kind.on_loss?;
        let node = encode("the node that is lost", &node).ok()?;
        // One that panics poisons the copy, on every node alike: whoever calls it later is told.
        let mut nothing = Vec::new();
        let _ = kept.run(operation, |state| {
            state.apply(operation, &node, &mut nothing)
        });
        Some(operation)
    }

    fn save(&mut self, object: ObjectId) -> Saved {
        let Some(kept) = self.copies.copies.get_mut(&object) else {
            return Err(self.copies.why_not(object));
        };
        let kept = kept.sound()?;
        if let Some(refusal) = &kept.kind.stays {
            return Err(refusal.clone());
        }
        let state = catch_unwind(AssertUnwindSafe(|| kept.state.save()))
            .map_err(|panic| Refusal::Malformed(into_words(panic)))?;
        Ok((kept.key, state.map_err(malformed)?))
    }

    fn discard(&mut self, object: ObjectId) {
        self.copies.copies.remove(&object);
        self.copies.spoilt.remove(&object);
    }

    fn digest(&mut self, object: ObjectId) -> u64 {
        let saved = self.save(object).map(|(_, state)| state);
        let bytes = saved.unwrap_or_else(|refusal| refusal.to_string().as_bytes().into());
        fnv1a(bytes.iter().copied())
    }

    fn name_of(&self, object: ObjectId, operation: u16) -> Arc<str> {
        self.copies.operation_name(object, operation)
    }

    fn time(&self) -> Option<VectorTime> {
        self.protocol.seen().cloned()
    }

    fn has_news_since(&self, seen: &VectorTime) -> bool {
        self.protocol.has_news_for(seen)
    }

    fn news_since(&self, seen: &VectorTime) -> Option<Arc<WriteNotices>> {
        self.protocol.news_for(seen)
    }
}
