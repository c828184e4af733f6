//! Arrays under the [update](crate::coherence::update) protocol: what an interval pushes, and what
//! a miss takes.

use dhole_model::{Coherence, Elements, NodeId, Version};

use crate::array_command::{ArrayCommand, SentElements};
use crate::coherence::arrays::Arrays;
use crate::coherence::region::{Table, push_region};
use crate::command::{Command, Commands};

impl Arrays {
    /// Pushes what an interval of this version wrote to those that read it last.
    pub(crate) fn push_written(
        &mut self,
        written: &[Elements],
        version: Version,
        out: &mut Commands,
    ) {
        let mut pushes: Vec<(NodeId, Elements)> = Vec::new();
        for elements in written {
            if self.table.coherence(elements.array) == Some(Coherence::Update) {
                pushes.extend(self.update.copysets.of(*elements));
            }
        }
        for (_, elements) in &pushes {
            self.table.update(*elements, |_, state| state.serve());
        }
        pushes.sort_unstable();
        out.extend(pushes.chunk_by(|one, next| one.0 == next.0).map(|of_one| {
            let sent = |(_, elements): &(_, Elements)| SentElements {
                elements: *elements,
                version,
            };
            let (to, sent) = (of_one[0].0, of_one.iter().map(sent).collect());
            Command::Array(ArrayCommand::Push { to, sent })
        }));
    }

    /// Makes pushed copies readable where they are new enough; the newest Lamport time of them.
    pub(crate) fn take_pushed(
        &mut self,
        elements: Elements,
        creator: NodeId,
        out: &mut Commands,
    ) -> u64 {
        let inbox = &mut self.update.inbox;
        if inbox.is_empty() {
            return 0;
        }
        let mut taken = Vec::new();
        self.table.each(elements, |part, state| {
            if !state.is_valid() {
                let need = state.known(creator);
                inbox.take(part, need, out, |part, version| taken.push((part, version)));
            }
        });
        let (mut seen, mut joined) = (0, Vec::new());
        for (part, version) in taken {
            self.table.update(part, |_, state| state.hold(version));
            push_region(&mut joined, part);
            seen = seen.max(version.lamport);
        }
        let install = |part| Command::Array(ArrayCommand::InstallKept(part));
        out.extend(joined.into_iter().map(install));
        seen
    }
}
