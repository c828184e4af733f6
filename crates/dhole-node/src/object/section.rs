//! Sections: critical sections as functions that travel to the home of the lock's object (Jackal,
//! section 6).
//!
//! A section reads and writes *copies*. They are written to the objects when it is over. So a
//! section that fails, waits, or goes elsewhere has changed nothing.

use std::any::{Any, type_name};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dhole_heap::{HeapMut, Ref, Share, pack};
use dhole_model::{CallSite, NodeId, Oid};
use dhole_protocol::Protocol;
use dhole_registry::{Ship, Shipped, Stateless, put_carrying};
use rustc_hash::FxHashMap;

use super::in_section::{InSection, LendsWorker, sealed::Copying};
use crate::error::{Error, Result};
use crate::failure::{Failed, why};

/// Accesses that a section may make at a home.
const MOST_ACCESSES: u32 = 4096;
/// Objects that it may write there.
const MOST_WRITTEN: usize = 256;
/// Bytes that it may write there.
const MOST_WRITTEN_BYTES: usize = 64 << 10;

/// What a section may touch: the objects of the shared space, while no other node is under the same
/// lock. See [`ObjectLock::run`](crate::ObjectLock::run).
///
/// A section reads and writes copies, which are written to the objects when it is over. It
/// acquires, allocates and sends nothing. So it waits for its own condition alone
/// ([`wait_until`](Section::wait_until)).
pub struct Section<'s> {
    source: Source<'s>,
    copies: Vec<Copied>,
    /// The place of each object's copy.
    places: FxHashMap<Oid, usize>,
    accesses: u32,
    written: usize,
    written_bytes: usize,
    /// Why it goes no further, once it does not.
    stopped: Option<Stopped>,
    /// Units of work that it has done at the home.
    units: u64,
    node: NodeId,
}

/// Where the objects come from.
enum Source<'s> {
    /// The home's heap.
    Home {
        heap: &'s HeapMut<'s>,
        protocol: &'s Protocol,
    },
    /// The worker of the section's caller, which holds the lock.
    Caller(&'s mut dyn LendsWorker),
}

/// The copy of an object.
struct Copied {
    oid: Oid,
    /// The object's bytes, packed.
    packed: Vec<u8>,
    value: Box<dyn AnyCopy>,
    is_written: bool,
}

/// A copy of whatever type.
trait AnyCopy: Any {
    fn pack(&self, out: &mut Vec<u8>);

    /// Writes the copy to its object.
    fn write_to_object(&self, worker: &mut dyn LendsWorker) -> Result<()>;
}

struct CopyOf<R: Copying> {
    of: R,
    value: R::Value,
}

impl<R: Copying> AnyCopy for CopyOf<R> {
    fn pack(&self, out: &mut Vec<u8>) {
        R::pack(&self.value, out);
    }

    fn write_to_object(&self, worker: &mut dyn LendsWorker) -> Result<()> {
        self.of.write(&self.value, worker)
    }
}

/// Why a section has not come to its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It waits until its condition is true.
    Waits,
    /// Its caller has to run it.
    Elsewhere,
    Failed(Error),
    Panicked(Arc<str>),
    /// What was sent is not what it takes.
    Malformed(Arc<str>),
    /// It goes on with another section.
    Then(Rest),
}

/// The section with which one goes on.
pub(crate) struct Rest {
    /// Its place in the table.
    pub place: Option<u32>,
    /// Its arguments, packed.
    pub arguments: Vec<u8>,
    /// Runs it in this process.
    pub run: Box<RunsHere>,
}

/// Runs a section of known arguments.
type RunsHere = dyn FnMut(&mut Section<'_>) -> std::result::Result<Box<dyn Any>, Stopped>;

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl<'s> Section<'s> {
    /// A section at the home of what it touches.
    pub(super) fn at_home(
        heap: &'s HeapMut<'_>,
        protocol: &'s Protocol,
        node: NodeId,
    ) -> Section<'s> {
        Section::of(Source::Home { heap, protocol }, node)
    }

    /// A section at its caller.
    pub(crate) fn at_caller(worker: &'s mut dyn LendsWorker, node: NodeId) -> Section<'s> {
        Section::of(Source::Caller(worker), node)
    }

    fn of(source: Source<'s>, node: NodeId) -> Section<'s> {
        Section {
            source,
            copies: Vec::new(),
            places: FxHashMap::default(),
            accesses: 0,
            written: 0,
            written_bytes: 0,
            stopped: None,
            units: 0,
            node,
        }
    }

    /// The number of the node where the section runs: the home of the lock's object, or its caller.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// What `r` refers to, to read: an object, or the numbers of a row.
    ///
    /// # Errors
    /// Why the object cannot be read: it was freed. Or the section goes no further here, and runs
    /// again: return the error.
    #[track_caller]
    pub fn get<R: InSection>(&mut self, r: R) -> Result<&R::Object> {
        let place = self.place(r, CallSite::caller())?;
        self.copies[place].object::<R>()
    }

    /// What `r` refers to, to write. The object is written when the section is over.
    ///
    /// # Errors
    /// As [`get`](Section::get).
    #[track_caller]
    pub fn get_mut<R: InSection>(&mut self, r: R) -> Result<&mut R::Object> {
        let place = self.place(r, CallSite::caller())?;
        let copied = &mut self.copies[place];
        if !std::mem::replace(&mut copied.is_written, true) {
            self.written += 1;
            self.written_bytes += copied.packed.len();
            let is_much = self.written > MOST_WRITTEN || self.written_bytes > MOST_WRITTEN_BYTES;
            if is_much && matches!(self.source, Source::Home { .. }) {
                return Err(self.stops(Stopped::Elsewhere));
            }
        }
        let any: &mut dyn Any = &mut *self.copies[place].value;
        let copy = any.downcast_mut::<CopyOf<R>>();
        copy.map(|copy| R::object_mut(&mut copy.value))
            .ok_or_else(other_type)
    }

    /// A copy of what `r` refers to.
    ///
    /// # Errors
    /// As [`get`](Section::get).
    #[track_caller]
    pub fn read<T: Share + Copy>(&mut self, r: Ref<T>) -> Result<T> {
        self.get(r).copied()
    }

    /// Goes on if `condition` is true. Otherwise the section waits, has changed nothing, and runs
    /// again from its beginning when another section under the same lock, or a node that held that
    /// lock to write, may have changed something.
    ///
    /// # Errors
    /// If `condition` is false: return the error.
    pub fn wait_until(&mut self, condition: bool) -> Result<()> {
        match condition && self.stopped.is_none() {
            true => Ok(()),
            false => Err(self.stops(Stopped::Waits)),
        }
    }

    /// Ends this section, whose writes stay, and goes on with another one, under the same lock and
    /// as the same call. The other section may wait: then other sections and nodes are under the
    /// lock meanwhile. Its result is the result of the call.
    ///
    /// A barrier is two sections: the first counts the arrival, and the second waits until all have
    /// arrived. So an arrival takes one round trip.
    ///
    /// ```
    /// # use dhole_heap::Ref;
    /// # use dhole_model::Coherence;
    /// # use dhole_node::{Lockable, Result, Section, Worker, section};
    /// fn arrive(s: &mut Section<'_>, (arrived, all): (Ref<u64>, u64)) -> Result<()> {
    ///     *s.get_mut(arrived)? += 1;
    ///     s.then(section!(leave), (arrived, all))
    /// }
    /// fn leave(s: &mut Section<'_>, (arrived, all): (Ref<u64>, u64)) -> Result<()> {
    ///     let arrived = s.read(arrived)?;
    ///     s.wait_until(arrived == all)
    /// }
    /// # fn example(w: &mut Worker<'_>) -> Result<()> {
    /// let arrived = w.once(|w| Ok(w.under(Coherence::Home).alloc(0_u64)))?;
    /// let all = w.nodes() as u64;
    /// arrived.lock().run(w, (arrived, all), section!(arrive))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Always: return the error, as the last act of the section.
    pub fn then<A: Share + Copy, R: Share + Copy>(
        &mut self,
        section: SectionOp<A, R>,
        arguments: A,
    ) -> Result<R> {
        let mut packed = Vec::new();
        pack(&arguments, &mut packed);
        let rest = Rest {
            place: section.place,
            arguments: packed,
            run: Box::new(move |s| {
                let ran = s.run(section.function, arguments)?;
                Ok(Box::new(ran))
            }),
        };
        Err(self.stops(Stopped::Then(rest)))
    }

    /// Says that the section computes `units` of work, as [`Worker::work`](crate::Worker::work)
    /// does. In a simulation they cost time where the section runs: at its home, or at its caller.
    pub fn work(&mut self, units: u64) {
        match &mut self.source {
            Source::Home { .. } => self.units = self.units.saturating_add(units),
            Source::Caller(worker) => worker.lend(&mut |w| w.work(units)),
        }
    }

    /// Units of work that it has done at the home.
    pub(super) fn units(&self) -> u64 {
        self.units
    }

    /// The section goes no further; what its function is to return.
    #[cold]
    fn stops(&mut self, why: Stopped) -> Error {
        self.stopped.get_or_insert(why);
        Error::program("the section goes no further here, and runs again")
    }

    /// The place of an object's copy.
    fn place<R: Copying>(&mut self, r: R, site: CallSite) -> Result<usize> {
        self.accesses = self.accesses.saturating_add(1);
        let is_much = self.accesses > MOST_ACCESSES && matches!(self.source, Source::Home { .. });
        if is_much || self.stopped.is_some() {
            return Err(self.stops(Stopped::Elsewhere));
        }
        let oid = r.oid();
        if let Some(place) = self.places.get(&oid) {
            return Ok(*place);
        }
        let copied = self.copy(r, site)?;
        let place = self.copies.len();
        self.copies.push(copied);
        self.places.insert(oid, place);
        Ok(place)
    }

    fn copy<R: Copying>(&mut self, r: R, site: CallSite) -> Result<Copied> {
        let oid = r.oid();
        let mut packed = Vec::new();
        let value = match &mut self.source {
            Source::Home { heap, protocol } => {
                protocol
                    .check_not_freed(oid)
                    .map_err(|freed| Error::program(format!("a section at {site}: {freed}")))?;
                let is_here = protocol.is_for_sections(oid);
                let gathered = is_here && heap.gather(oid, &mut packed).is_ok();
                let unpacked = gathered.then(|| r.unpack(heap, &packed)).flatten();
                match unpacked {
                    Some(value) => value,
                    None => return Err(self.stops(Stopped::Elsewhere)),
                }
            }
            Source::Caller(worker) => {
                let value = r.read(*worker)?;
                R::pack(&value, &mut packed);
                value
            }
        };
        Ok(Copied {
            oid,
            packed,
            value: Box::new(CopyOf { of: r, value }),
            is_written: false,
        })
    }

    /// Runs a function, unless what it ran into before says that it cannot come to its end.
    pub(crate) fn run<A, R>(
        &mut self,
        function: impl FnOnce(&mut Section<'_>, A) -> Result<R>,
        arguments: A,
    ) -> std::result::Result<R, Stopped> {
        let ran = catch_unwind(AssertUnwindSafe(|| function(self, arguments)));
        let ran = match ran {
            Ok(ran) => ran.map_err(Stopped::Failed),
            Err(payload) => Err(match why(payload) {
                Failed::Panicked(words) => Stopped::Panicked(words),
                Failed::Error(error) => Stopped::Failed(*error),
            }),
        };
        match self.stopped.take() {
            Some(stopped) => Err(stopped),
            None => ran,
        }
    }

    /// The arguments that were sent, or the result.
    fn unpack<A: Share + Copy>(&mut self, bytes: &[u8]) -> std::result::Result<A, Stopped> {
        let unpacked = match &mut self.source {
            Source::Home { heap, .. } => heap.unpack(bytes),
            Source::Caller(worker) => {
                let mut unpacked = None;
                worker.lend(&mut |w| {
                    let mut node = w.link.node.monitor.lock();
                    unpacked = Some(node.split().0.unpack(bytes));
                });
                unpacked.expect("the worker is lent once")
            }
        };
        unpacked.map_err(|cause| Stopped::Malformed(format!("what was sent: {cause}").into()))
    }

    /// Runs the section of this place in the table, whose arguments were sent.
    pub(crate) fn run_sent<R: Share + Copy>(
        &mut self,
        what: u64,
        arguments: &[u8],
    ) -> std::result::Result<R, Stopped> {
        let mut result = Vec::new();
        Runs::run(what, self, arguments, &mut result)?;
        self.unpack(&result)
    }

    /// The objects that the section has changed, with their bytes.
    pub(super) fn changes(self) -> Vec<(Oid, Vec<u8>)> {
        let written = self.copies.into_iter().filter(|copied| copied.is_written);
        let packed = written.map(|copied| {
            let mut packed = Vec::with_capacity(copied.packed.len());
            copied.value.pack(&mut packed);
            (packed != copied.packed).then_some((copied.oid, packed))
        });
        packed.flatten().collect()
    }

    /// Writes what the section has changed to the objects, by its caller's worker.
    pub(crate) fn write_to_objects(&mut self) -> Result<()> {
        let Source::Caller(worker) = &mut self.source else {
            return Ok(());
        };
        let mut packed = Vec::new();
        for copied in self.copies.iter().filter(|copied| copied.is_written) {
            packed.clear();
            copied.value.pack(&mut packed);
            if packed == copied.packed {
                continue;
            }
            copied.value.write_to_object(*worker)?;
        }
        Ok(())
    }
}

impl Copied {
    fn object<R: Copying>(&self) -> Result<&R::Object> {
        let any: &dyn Any = &*self.value;
        let copy = any.downcast_ref::<CopyOf<R>>();
        copy.map(|copy| R::object(&copy.value))
            .ok_or_else(other_type)
    }
}

#[cold]
fn other_type() -> Error {
    Error::program("a section names one object with two types")
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("node", &self.node)
            .field("objects", &self.copies.len())
            .finish_non_exhaustive()
    }
}

/// A function that takes a [`Section`] and an argument, and that each process of the program knows
/// by its name. Made by [`section!`](macro@crate::section).
pub struct SectionOp<A, R> {
    pub(crate) place: Option<u32>,
    pub(crate) name: &'static str,
    pub(crate) function: Function<A, R>,
}

type Function<A, R> = for<'a, 's> fn(&'a mut Section<'s>, A) -> Result<R>;

impl<A, R> Clone for SectionOp<A, R> {
    fn clone(&self) -> SectionOp<A, R> {
        *self
    }
}

impl<A, R> Copy for SectionOp<A, R> {}

impl<A, R> fmt::Debug for SectionOp<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "section!({})", self.name)
    }
}

/// What the table says of a section.
pub(super) struct Runs {
    run: RunsBytes,
}

/// Runs a section of packed arguments, and appends its packed result.
type RunsBytes =
    fn(Shipped, &mut Section<'_>, &[u8], &mut Vec<u8>) -> std::result::Result<(), Stopped>;

impl Runs {
    /// Runs the section of this place in the table.
    pub(super) fn run(
        what: u64,
        section: &mut Section<'_>,
        arguments: &[u8],
        result: &mut Vec<u8>,
    ) -> std::result::Result<(), Stopped> {
        let malformed = |words: String| Stopped::Malformed(words.into());
        let place = u32::try_from(what).unwrap_or(u32::MAX);
        let shipped = Shipped::at(place).map_err(|none| malformed(none.to_string()))?;
        let runs = shipped.is::<Runs>();
        let runs = runs.ok_or_else(|| malformed(format!("{shipped:?} is not a section")))?;
        (runs.run)(shipped, section, arguments, result)
    }
}

/// A section of this type, from `A` to `R`.
struct Of<F, A, R>(F, std::marker::PhantomData<fn(A) -> R>);

impl<F, A, R> Ship for Of<F, A, R>
where
    F: for<'a, 's> Fn(&'a mut Section<'s>, A) -> Result<R> + Copy + Send + Sync + 'static,
    A: Share + Copy,
    R: Share + Copy,
{
    type Is = Runs;
    const IS: &'static Runs = &Runs {
        run: |shipped, section, arguments, result| {
            let function = shipped.function::<F>();
            let carried = || Stopped::Malformed("it carries no function".into());
            let function = function.ok_or_else(carried)?;
            let arguments = section.unpack::<A>(arguments)?;
            let value = section.run(function, arguments)?;
            pack(&value, result);
            Ok(())
        },
    };
}

impl<A: Share + Copy, R: Share + Copy> SectionOp<A, R> {
    /// What [`section!`](macro@crate::section) makes of a function that captures nothing.
    #[doc(hidden)]
    #[inline]
    pub fn of<F>(stateless: Stateless<F>, function: Function<A, R>) -> SectionOp<A, R>
    where
        F: for<'a, 's> Fn(&'a mut Section<'s>, A) -> Result<R> + Copy + Send + Sync + 'static,
    {
        put_carrying::<Of<F, A, R>, F>(stateless);
        SectionOp {
            place: Shipped::of::<Of<F, A, R>>().map(Shipped::place),
            name: type_name::<F>(),
            function,
        }
    }
}

/// Says what [`section!`](macro@crate::section) takes, so that the compiler knows the signature of
/// a closure.
#[doc(hidden)]
#[inline(always)]
pub fn section_function<F, A, R>(function: F) -> F
where
    F: for<'a, 's> Fn(&'a mut Section<'s>, A) -> Result<R> + Copy + Send + Sync + 'static,
{
    function
}

/// A function, or a closure that captures nothing, as a section: for
/// [`ObjectLock::run`](crate::ObjectLock::run). It takes a [`Section`](crate::Section) and one
/// argument, and returns a [`Result`](crate::Result). Argument and result are [`Share`] and `Copy`:
/// numbers, references, and tuples and structs of these.
///
/// [`Share`]: trait@dhole_heap::Share
///
/// ```
/// # use dhole_node::{Result, Section, section};
/// # use dhole_heap::Ref;
/// fn add(s: &mut Section<'_>, (x, by): (Ref<i64>, i64)) -> Result<i64> {
///     let x = s.get_mut(x)?;
///     *x += by;
///     Ok(*x)
/// }
/// let adds = section!(add);
/// let reads = section!(|s, x: Ref<i64>| s.read(x));
/// ```
///
/// The variables that a closure would capture do not exist where the section runs, so that is an
/// error:
///
/// ```compile_fail,E0308
/// # use dhole_node::section;
/// # use dhole_heap::Ref;
/// let by = 3;
/// let adds = section!(move |s, x: Ref<i64>| { *s.get_mut(x)? += by; Ok(()) });
/// ```
///
/// A section has no worker, so it acquires no other lock and allocates nothing:
///
/// ```compile_fail,E0308
/// # use dhole_node::{Result, Worker, section};
/// fn reads(w: &mut Worker<'_>, n: u64) -> Result<u64> { Ok(n) }
/// let section = section!(reads);
/// ```
///
/// An argument that is not [`Share`] does not travel:
///
/// ```compile_fail,E0277
/// # use dhole_node::section;
/// let section = section!(|_s, all: Vec<u64>| Ok(all.len() as u64));
/// ```
///
/// Nothing that a section borrowed leaves it:
///
/// ```compile_fail
/// # use dhole_node::{Result, Section, section};
/// # use dhole_heap::Ref;
/// fn lends<'a>(s: &'a mut Section<'_>, x: Ref<i64>) -> Result<&'a i64> { s.get(x) }
/// let section = section!(lends);
/// ```
#[macro_export]
macro_rules! section {
    ($function:expr) => {
        match $crate::__private::section_function($function) {
            function => {
                let coerced: for<'a, 's> fn(&'a mut $crate::Section<'s>, _) -> $crate::Result<_> =
                    function;
                // SAFETY: `coerced` is `function`, coerced in the line above. Nothing of the
                // program's is in this block.
                $crate::SectionOp::of(
                    unsafe { $crate::__private::Stateless::new(function, coerced) },
                    coerced,
                )
            }
        }
    };
}
