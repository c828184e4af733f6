use dhole_model::Variants;
use dhole_protocol::{LogLimits, Reach};

/// DOSA's optimisations of the lazy protocol, each of which can be left out by itself to see what
/// it brings (DOSA, section 9). What a program computes does not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Optimisations {
    /// Fetch with a missed object all invalid objects of its page (DOSA, section 3.6).
    pub read_aggregation: bool,
    /// Tell of an interval as the difference against one of the last so many of its node, where
    /// that is shorter; never at 0 (DOSA, section 3.1). A step of a program may have as many
    /// phases.
    pub notice_reduction: u32,
    /// How it is found what a node wrote.
    pub write_detection: WriteDetection,
    /// Learn from what a program did what it will do next. With an object that a node writes again,
    /// those become writable that it wrote with it, without a call for each; so are those that it
    /// has just allocated. What a program follows from missed objects comes along with them.
    /// Elements of an array, and objects with ids in a row, are read ahead around those that are
    /// missed. Calls, messages and time
    /// depend on it, and no result. It has no effect where the detector is `vm`, or where write
    /// detection is not by marks.
    pub learn: bool,
}

/// How it is found what a node wrote of the lazy protocol's objects. Arrays, and objects under
/// another protocol, are not concerned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Variants)]
#[variants(name, setting)]
pub enum WriteDetection {
    /// Each object is marked at its first write in an interval.
    #[default]
    Marks,
    /// A first write makes all clean objects of the page writable, and a comparison with the
    /// page's twin tells which were written (write aggregation; DOSA, section 3.5). An object that
    /// is written with what it holds gives no notice, so not all races are found, and of a race
    /// not always the line: to find [all](dhole_protocol::Races::finds_all) is refused.
    Twins,
    /// The same object by object: a first write makes that object alone writable, and it is
    /// compared with what it was (DOSA without write aggregation, section 9.3).
    Objects,
}

impl Optimisations {
    pub(crate) fn limits(self) -> LogLimits {
        LogLimits {
            reach: Reach::of(self.notice_reduction),
            ..LogLimits::default()
        }
    }
}

impl Default for Optimisations {
    /// All that gain.
    fn default() -> Optimisations {
        Optimisations {
            read_aggregation: true,
            notice_reduction: 16,
            write_detection: WriteDetection::Marks,
            learn: true,
        }
    }
}
