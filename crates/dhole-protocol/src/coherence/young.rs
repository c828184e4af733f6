//! Young objects: until the end of the interval in which its worker allocates an object, nobody
//! else knows of it. So the worker may write it meanwhile, and nobody is told.
//!
//! A young object is [exclusive](super::exclusive), so whoever asks for it gets it as any exclusive
//! object. That can happen before the end of its interval if another object names it of which a
//! request is answered while the worker is in a call. At the end of the interval those that are
//! young still become clean, all together, in the version in which the node allocated them.

use dhole_model::{Coherence, OidRange};

use super::Protocols;
use crate::coherence::arrays::initial;
use crate::command::{Command, Commands};

impl Protocols {
    /// Whether new objects under a protocol are young: write notices name what is written of them,
    /// none is needed to find races, and this node writes what it is expected to write without a
    /// call for each.
    pub fn keeps_young(&self, coherence: Coherence) -> bool {
        let properties = coherence.properties();
        let is_told = properties.announces && properties.has_versions() && !properties.has_home;
        is_told && self.expects_writes() && self.races.allows_exclusive()
    }

    /// The worker has allocated young objects.
    pub fn born(&mut self, range: OidRange, coherence: Coherence) {
        let version = initial(self.me);
        self.objects.allocate(range, |_, object| {
            object.coherence = Some(coherence);
            object.hold(version);
            object.exclusive = true;
        });
        self.lazy.young.push(range);
    }

    /// The interval ends in which these objects were allocated.
    pub(super) fn end_young(&mut self, out: &mut Commands) {
        if self.lazy.young.is_empty() {
            return;
        }
        let version = initial(self.me);
        let (mut young, mut clean) = (std::mem::take(&mut self.lazy.young), Vec::new());
        self.objects.for_each(&young, |oid, object| {
            // One that was asked for is clean, or was written since.
            if std::mem::take(&mut object.exclusive) {
                OidRange::push(&mut clean, oid);
            }
        });
        out.extend(
            clean
                .into_iter()
                .map(|range| Command::EndYoung { range, version }),
        );
        young.clear();
        self.lazy.young = young;
    }
}
