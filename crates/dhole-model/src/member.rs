//! Protocols that a program brings, by the place that each has among them.
//!
//! Each leaves an entry in the table that the linker makes ([`dhole_registry`]), so that it has the
//! same number in every process of the program.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::OnceLock;

use dhole_registry::Ship;
use dhole_wire::{Tail, Wire, WireError};
use serde::{Deserialize, Serialize};

/// The most protocols that a program may bring.
pub const MAX_MEMBERS: usize = 16;

/// A place, of which an option takes no more than a byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[rustfmt::skip]
enum Place { P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15 }

const PLACES: [Place; MAX_MEMBERS] = {
    use Place::*;
    [
        P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15,
    ]
};

/// A protocol that the program brings: its place among them, which is the same in all processes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct MemberId(Place);

/// What the program says of a protocol that it brings.
#[derive(Debug)]
pub struct MemberEntry {
    /// Its name in options and reports.
    pub name: &'static str,
    /// The type that implements it.
    pub type_id: TypeId,
    /// What makes a node's part of it.
    pub make: &'static (dyn Any + Send + Sync),
}

/// The entries, of each name the first.
fn entries() -> &'static [&'static MemberEntry] {
    static ENTRIES: OnceLock<Vec<&'static MemberEntry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let mut found: Vec<&'static MemberEntry> = Vec::new();
        for entry in dhole_registry::all().filter_map(|entry| entry.is::<MemberEntry>()) {
            let is_new = found.iter().all(|other| other.name != entry.name);
            if is_new && found.len() < MAX_MEMBERS {
                found.push(entry);
            }
        }
        found
    })
}

impl MemberId {
    /// The protocols that the program brings.
    pub fn all() -> impl Iterator<Item = MemberId> + Clone {
        PLACES.into_iter().take(entries().len()).map(MemberId)
    }

    /// The number of the protocol that this entry describes. The call leaves the entry in the
    /// program ([`dhole_registry::put`]).
    ///
    /// # Panics
    /// When another protocol of the program has its name, when the program brings more than
    /// [`MAX_MEMBERS`], and on a system where there is no table of what a program brings.
    pub fn of<S: Ship<Is = MemberEntry>>() -> MemberId {
        dhole_registry::put::<S>();
        let MemberEntry { name, type_id, .. } = S::IS;
        let found = MemberId::all().find(|member| member.entry().name == *name);
        let member = found.unwrap_or_else(|| {
            panic!(
                "a protocol '{name}': a program may bring {MAX_MEMBERS}, on Linux on x86-64 and \
                 AArch64"
            )
        });
        assert!(
            member.entry().type_id == *type_id,
            "two protocols of the program have the name '{name}'"
        );
        member
    }

    /// What the program says of it.
    pub fn entry(self) -> &'static MemberEntry {
        entries()[self.0 as usize]
    }

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        self.entry().name
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number that names no protocol of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMember {
    /// The number.
    pub number: u8,
}

impl fmt::Display for NoMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, known) = (self.number, entries().len());
        write!(
            f,
            "the protocol {number} of the program's own: it brings {known}"
        )
    }
}

impl std::error::Error for NoMember {}

impl TryFrom<u8> for MemberId {
    type Error = NoMember;

    fn try_from(number: u8) -> Result<MemberId, NoMember> {
        let found = MemberId::all().nth(usize::from(number));
        found.ok_or(NoMember { number })
    }
}

impl From<MemberId> for u8 {
    fn from(member: MemberId) -> u8 {
        member.0 as u8
    }
}

impl Wire for MemberId {
    type Head = u8;

    #[inline]
    fn head(&self) -> u8 {
        u8::from(*self)
    }

    #[inline]
    fn tail_len(&self) -> usize {
        0
    }

    #[inline]
    fn write_tail(&self, _: &mut Vec<u8>) {}

    fn read(head: &u8, _: &mut Tail<'_>) -> Result<MemberId, WireError> {
        let unknown = WireError::Value("a protocol that the program does not bring");
        MemberId::try_from(*head).map_err(|_| unknown)
    }
}
