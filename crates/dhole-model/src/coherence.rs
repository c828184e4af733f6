use std::fmt;
use std::str::FromStr;

use dhole_wire::Wire;
use serde::{Deserialize, Serialize};

use crate::member::MemberId;
use crate::{UnknownValue, Value};

/// The protocol that keeps the copies of an object consistent. All protocols give release
/// consistency. They differ in which messages travel, and when.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize, Wire,
)]
#[serde(rename_all = "lowercase")]
pub enum Coherence {
    /// One writer at a time. A release announces what was written, and the next reader fetches it
    /// from the last writer (DOSA, section 3.1).
    #[default]
    Lazy,
    /// As lazy, and at a release the writer sends the new bytes to the nodes that read the last
    /// ones, so that they need not fetch.
    Update,
    /// Several writers at a time, of different parts. A release sends the changed bytes to the
    /// object's home, and an acquire drops copies elsewhere (Jackal, section 3.1).
    Home,
    /// Keeps the pages consistent that objects lie in, with several writers each, and not the
    /// objects. For a whole run only: the baseline (TreadMarks: Keleher et al. 1994).
    TreadMarks,
    /// A protocol that the program brings: a type that implements `dhole::protocol`'s
    /// `CoherenceProtocol`.
    Member(MemberId),
}

impl Coherence {
    /// Every protocol that dhole brings.
    pub const ALL: [Coherence; 4] = [
        Coherence::Lazy,
        Coherence::Update,
        Coherence::Home,
        Coherence::TreadMarks,
    ];

    /// The protocols that an allocation can choose for its objects.
    pub const BY_OBJECT: [Coherence; 3] = [Coherence::Lazy, Coherence::Update, Coherence::Home];

    /// The name of this protocol in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Coherence::Lazy => "lazy",
            Coherence::Update => "update",
            Coherence::Home => "home",
            Coherence::TreadMarks => "treadmarks",
            Coherence::Member(member) => member.name(),
        }
    }

    /// Every protocol that a run of this program can have: those that dhole brings, then those
    /// that the program brings.
    pub fn all() -> impl Iterator<Item = Coherence> + Clone {
        let brought = MemberId::all().map(Coherence::Member);
        Coherence::ALL.into_iter().chain(brought)
    }

    /// What holds of this protocol. The parts of the runtime ask for this, and not which it is.
    #[inline]
    pub const fn properties(self) -> Properties {
        use Granularity::{Block, Element, Page};
        let (granularity, announces, aggregates, has_home) = match self {
            Coherence::Lazy => (Element, true, true, false),
            Coherence::Update => (Element, true, false, false),
            Coherence::Home => (Element, false, false, true),
            Coherence::TreadMarks => (Page, false, false, false),
            Coherence::Member(_) => (Block, false, false, true),
        };
        Properties {
            granularity,
            announces,
            pushes: matches!(self, Coherence::Update),
            aggregates,
            has_home,
        }
    }

    /// The protocol of the program's own, if it is one.
    pub const fn member(self) -> Option<MemberId> {
        match self {
            Coherence::Member(member) => Some(member),
            _ => None,
        }
    }
}

/// What a protocol keeps consistent as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Granularity {
    /// An object, or an element of an array.
    Element,
    /// An object, or a block of an array: as many elements as fit 4 KiB.
    Block,
    /// A page, with the objects that lie in it.
    Page,
}

/// What holds of a protocol: [`Coherence::properties`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Properties {
    granularity: Granularity,
    /// Write notices name what was written, and the next reader fetches it from the last writer.
    pub announces: bool,
    /// A writer remembers which nodes have read what it wrote, and sends them the next version.
    pub pushes: bool,
    /// The objects of a page can be fetched together, and made writable together (DOSA, sections
    /// 3.5 and 3.6).
    pub aggregates: bool,
    /// One node has a copy from the allocation on: at first the node that allocated it, and after a
    /// switch to the protocol the last writer.
    pub has_home: bool,
}

impl Properties {
    /// Whether each copy of an object or an element has a version, and nodes fetch copies by the
    /// runtime's messages. Other protocols have messages of their own.
    pub const fn has_versions(self) -> bool {
        matches!(self.granularity, Granularity::Element)
    }

    /// Whether it keeps blocks of arrays consistent, and not elements.
    pub const fn keeps_blocks(self) -> bool {
        matches!(self.granularity, Granularity::Block)
    }

    /// Whether it keeps pages consistent, and not objects.
    pub const fn keeps_pages(self) -> bool {
        matches!(self.granularity, Granularity::Page)
    }
}

impl fmt::Display for Coherence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Value for Coherence {
    fn find(name: &str) -> Option<Coherence> {
        Coherence::all().find(|one| one.name() == name)
    }

    fn allowed() -> Vec<&'static str> {
        Coherence::all().map(Coherence::name).collect()
    }
}

impl FromStr for Coherence {
    type Err = UnknownValue;

    fn from_str(name: &str) -> Result<Coherence, UnknownValue> {
        Coherence::accept(name)
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use dhole_registry::Ship;

    use super::*;
    use crate::member::MemberEntry;

    #[test]
    fn names_lead_back_and_others_are_refused_by_name() {
        for one in Coherence::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        let error = "Lazy".parse::<Coherence>().unwrap_err();
        assert!(error.to_string().contains("`Lazy`"));
    }

    struct Brought;

    impl Ship for Brought {
        type Is = MemberEntry;
        const IS: &'static MemberEntry = &MemberEntry {
            name: "brought",
            type_id: TypeId::of::<Brought>(),
            make: &(),
        };
    }

    #[test]
    fn what_a_program_brings_has_a_name_and_a_number_and_takes_a_byte() {
        let member = MemberId::of::<Brought>();
        let coherence = Coherence::Member(member);
        assert_eq!("brought".parse(), Ok(coherence));
        assert_eq!(coherence.to_string(), "brought");
        assert_eq!(size_of::<Option<Coherence>>(), 1);
        let bytes = coherence.to_bytes();
        assert_eq!(Coherence::parse(&bytes), Ok(coherence));
        assert_eq!(Coherence::Home.to_bytes().len(), 1);
        let unknown = [bytes[0], bytes[1] + 1];
        assert!(Coherence::parse(&unknown).is_err());
        assert!(MemberId::try_from(u8::MAX).is_err());
        let error = "brougth".parse::<Coherence>().unwrap_err().to_string();
        assert!(error.starts_with("one of lazy, update, home, treadmarks, brought is"));
    }
}
