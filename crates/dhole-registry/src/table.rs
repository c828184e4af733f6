//! The table that the linker made, and the names in it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use crate::Ship;
use crate::hash::fnv1a;
use crate::stateless::Stateless;

/// What an entry's function returns.
#[derive(Clone, Copy)]
struct Described {
    /// Of the type that ships.
    id: TypeId,
    name: &'static str,
    is: &'static (dyn Any + Sync),
    /// The type of the function that it carries.
    carries: Option<TypeId>,
}

/// What an entry leads to.
type Describe = fn() -> Described;

fn describe<S: Ship>() -> Described {
    Described {
        id: TypeId::of::<S>(),
        name: std::any::type_name::<S>(),
        is: S::IS,
        carries: None,
    }
}

fn describe_carrying<S: Ship, F: 'static>() -> Described {
    Described {
        carries: Some(TypeId::of::<F>()),
        ..describe::<S>()
    }
}

/// A place in the table at which something stands.
#[derive(Clone, Copy)]
pub struct Shipped {
    place: u32,
    described: Described,
}

/// A number that names nothing in this program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoEntry {
    /// The number.
    pub place: u32,
    /// Entries that there are.
    pub entries: usize,
}

impl fmt::Display for NoEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoEntry { place, entries } = self;
        write!(
            f,
            "the name {place} of a type or an operation: this program has {entries}"
        )
    }
}

impl std::error::Error for NoEntry {}

impl Shipped {
    /// What stands at a place that another process told.
    ///
    /// # Errors
    /// [`NoEntry`] where the table has no such place.
    pub fn at(place: u32) -> Result<Shipped, NoEntry> {
        let all = &table().described;
        let found = all.get(place as usize);
        found.map_or(
            Err(NoEntry {
                place,
                entries: all.len(),
            }),
            |described| {
                Ok(Shipped {
                    place,
                    described: *described,
                })
            },
        )
    }

    /// The first place at which `S` stands; `None` unless [`put`] was compiled for it, and where
    /// there is no table.
    pub fn of<S: Ship>() -> Option<Shipped> {
        let place = *table().places.get(&TypeId::of::<S>())?;
        Shipped::at(place).ok()
    }

    /// The name on a wire.
    pub fn place(self) -> u32 {
        self.place
    }

    /// The name in a report.
    pub fn name(self) -> &'static str {
        self.described.name
    }

    /// The type of the function that it carries, if it does.
    pub(crate) fn carries(self) -> Option<TypeId> {
        self.described.carries
    }

    /// The descriptor, if it is of this kind.
    pub fn is<D: 'static>(self) -> Option<&'static D> {
        (self.described.is as &dyn Any).downcast_ref()
    }
}

impl fmt::Debug for Shipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name(), self.place)
    }
}

/// The entries as the process uses them, made once.
struct Table {
    described: Vec<Described>,
    /// The first place of each.
    places: BTreeMap<TypeId, u32>,
    fingerprint: u64,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let described: Vec<Described> = section::entries().map(|describe| describe()).collect();
        let mut places = BTreeMap::new();
        for (place, entry) in described.iter().enumerate() {
            let place = u32::try_from(place).expect("an entry takes bytes of an executable");
            places.entry(entry.id).or_insert(place);
        }
        // Over the names, each with an end.
        let names = described.iter().map(|entry| entry.name);
        let bytes = names.flat_map(|name| name.bytes().chain([0]));
        let fingerprint = fnv1a(bytes);
        Table {
            described,
            places,
            fingerprint,
        }
    })
}

/// Everything that can be named, in the order of the table; some of it more than once.
pub fn all() -> impl Iterator<Item = Shipped> {
    let all = table().described.iter().enumerate();
    all.map(|(place, described)| Shipped {
        place: place as u32,
        described: *described,
    })
}

/// A number that two processes have alike if their tables hold the same names in the same order.
pub fn fingerprint() -> u64 {
    table().fingerprint
}

/// Puts `S` into the table, when this is compiled; it does nothing when it is called. The call must
/// be where nobody can have an `S` without having compiled it: in what makes one.
#[inline(always)]
pub fn put<S: Ship>() {
    section::put::<S>();
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
))]
pub(crate) mod section {
    use super::{Describe, Ship, Stateless, describe, describe_carrying};

    /// The distance from an entry to its function.
    type Entry = i32;

    unsafe extern "Rust" {
        // The linker makes these for a section whose name is a C identifier.
        static __start_dhole_registry: Entry;
        static __stop_dhole_registry: Entry;
    }

    /// Nothing runs here: the entry stands beside the code.
    #[inline(always)]
    pub(super) fn put<S: Ship>() {
        // SAFETY: there is no instruction in it. The entry is the distance to a function of the
        // type `Describe`, and nothing else is ever put into this section.
        unsafe {
            std::arch::asm!(
                ".pushsection dhole_registry,\"aR\",%progbits",
                ".balign 4",
                ".long {describe} - .",
                ".popsection",
                describe = sym describe::<S>,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    /// As `put`, of what carries a function.
    #[inline(always)]
    pub(crate) fn put_carrying<S: Ship, F: 'static>(_function: Stateless<F>) {
        // SAFETY: as in `put`.
        unsafe {
            std::arch::asm!(
                ".pushsection dhole_registry,\"aR\",%progbits",
                ".balign 4",
                ".long {describe} - .",
                ".popsection",
                describe = sym describe_carrying::<S, F>,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    /// So that there is an entry in every program.
    struct First;

    impl Ship for First {
        type Is = ();
        const IS: &'static () = &();
    }

    pub(super) fn entries() -> impl Iterator<Item = Describe> {
        put::<First>();
        let start = &raw const __start_dhole_registry;
        let stop = &raw const __stop_dhole_registry;
        let count = (stop.addr() - start.addr()) / size_of::<Entry>();
        (0..count).map(move |place| {
            // SAFETY: the section lies between the two symbols, it is made of entries alone, and
            // it is read-only once the program is loaded.
            let entry = unsafe { start.add(place) };
            // SAFETY: as above.
            let distance = unsafe { entry.read() } as isize;
            let function = entry.cast::<()>().wrapping_byte_offset(distance);
            // SAFETY: `put` made the entry the distance to a function of this type.
            unsafe { std::mem::transmute::<*const (), Describe>(function) }
        })
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(miri)
)))]
pub(crate) mod section {
    use super::{Describe, Ship, Stateless};

    pub(super) fn put<S: Ship>() {}

    pub(crate) fn put_carrying<S: Ship, F: 'static>(_function: Stateless<F>) {}

    pub(super) fn entries() -> impl Iterator<Item = Describe> {
        std::iter::empty()
    }
}
