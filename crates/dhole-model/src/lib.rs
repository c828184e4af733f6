//! The plain data that every other crate of dhole uses: nodes ([`NodeId`]), objects ([`Oid`]),
//! times ([`VectorTime`], [`Version`]), lines of the program ([`CallSite`]) and [`Counters`].
//!
//! Of dhole's crates it needs the wire format and the table of names alone. Three items do more
//! than hold data: [`SplitMix64`] draws random numbers, [`write_error`] writes errors for people,
//! and [`unpoisoned`] takes locks.
//!
//! ```
//! use dhole_model::{NodeId, Version};
//! let older = Version { lamport: 4, node: NodeId(1) };
//! let newer = Version { lamport: 4, node: NodeId(2) };
//! assert!(newer > older, "two racing writers are ordered by their node");
//! ```
#![forbid(unsafe_code)]

extern crate self as dhole_model;

mod barriers;
mod coherence;
mod counters;
mod detector;
mod elements;
mod error_text;
mod feature;
mod grouped;
mod id_set;
mod line_costs;
mod member;
mod node;
mod notify;
mod object_id;
mod oid;
mod page;
mod phases;
mod placement;
mod segments;
mod site;
mod sorted_map;
mod split_mix;
mod time;
mod timeline;
mod unknown_variable;
pub mod unpoisoned;
mod value;
mod work;

pub use barriers::Barriers;
pub use coherence::{Coherence, Properties};
pub use counters::{Counters, KindCounters, MessageKind, ObjectCounters, TypeCounters};
pub use detector::Detector;
pub use dhole_macros::{Counts, Variants};
pub use elements::Elements;
pub use error_text::{with_causes, write_error, write_wrapped};
pub use feature::MissingFeature;
pub use grouped::{Counted, Grouped};
pub use id_set::IdSet;
pub use line_costs::{LineCost, LineCosts, Uneven, WaitCause, WaitCost};
pub use member::{MAX_MEMBERS, MemberEntry, MemberId, NoMember};
pub use node::{MAX_NODES, NodeId};
pub use notify::Notify;
pub use object_id::ObjectId;
pub use oid::{CHUNK, Oid, OidRange};
pub use page::{PageId, PageRange};
pub use phases::{Phase, PhaseTimes};
pub use placement::Placement;
pub use segments::{RangeSet, Segments};
pub use site::{CallSite, kept_words};
pub use sorted_map::{NodeMap, SortedMap};
pub use split_mix::SplitMix64;
pub use time::{IntervalIndex, VectorTime, Version};
pub use timeline::{Timeline, TimelinePlace, TimelineSpan, Track};
pub use unknown_variable::UnknownVariable;
pub use value::{Bounded, Named, UnknownValue, Value};
pub use work::Work;
