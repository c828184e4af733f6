//! Propagation: the last writer of regions sends them to nodes that have not asked for them (VOTE,
//! section 4).
//!
//! It is a push as one of [update](super::update). The receivers keep it in their inboxes until
//! they read, and versions and notices decide what is valid, as for each push. So a push that is
//! late or lost costs a fetch. What was written in the open interval has no version yet: it is
//! pushed when the interval ends.

use dhole_model::{Elements, NodeId, Oid};

use super::Protocols;
use crate::Sent;
use crate::coherence::parts::{HasParts, Parts};
use crate::coherence::pushes::push;
use crate::coherence::region::Table;
use crate::command::Commands;
use crate::error::ProtocolError;

impl Protocols {
    /// The worker sends objects and elements, which this node wrote last, to other nodes.
    ///
    /// # Errors
    /// [`ProtocolError::Freed`], [`ProtocolError::NotPropagated`] and
    /// [`ProtocolError::NotLastWriter`]; then nothing was done.
    pub fn propagate(
        &mut self,
        objects: &[Oid],
        elements: &[Elements],
        to: &[NodeId],
        out: &mut Commands,
    ) -> Result<(), ProtocolError> {
        objects
            .iter()
            .try_for_each(|oid| self.check_not_freed(*oid))?;
        let mut arrays = elements.iter().map(|it| it.array);
        arrays.try_for_each(|array| self.arrays.check_not_freed(array))?;
        self.check_written_here(objects)?;
        self.check_written_here(elements)?;
        self.propagate_regions(objects, to, out);
        self.propagate_regions(elements, to, out);
        Ok(())
    }

    /// Whether this node wrote regions last, and write notices name them.
    fn check_written_here<R: HasParts>(&mut self, regions: &[R]) -> Result<(), ProtocolError> {
        let me = self.me;
        let table = R::parts(self).table;
        for region in regions {
            let oid = region.id();
            let coherence = table.whole(*region).coherence.unwrap_or_default();
            if !coherence.properties().announces {
                return Err(ProtocolError::NotPropagated { oid, coherence });
            }
            let mut other = None;
            table.each(*region, |_, state| {
                if !state.dirty && !state.is_held_by(me) {
                    other = Some(state.last());
                }
            });
            if let Some(writer) = other {
                return Err(ProtocolError::NotLastWriter { oid, writer });
            }
        }
        Ok(())
    }

    fn propagate_regions<R: HasParts>(&mut self, regions: &[R], to: &[NodeId], out: &mut Commands) {
        let (mut pushed, mut exclusive) = (Vec::new(), Vec::new());
        for region in regions {
            let Parts {
                table, remembered, ..
            } = R::parts(self);
            table.update(*region, |part, state| {
                // Its next version is announced.
                state.serve();
                if state.dirty {
                    let join = |node: &NodeId| remembered.next.join(part, *node);
                    return to.iter().for_each(join);
                }
                if std::mem::take(&mut state.exclusive) {
                    part.make_clean(out);
                    exclusive.push(part);
                }
                pushed.extend(state.held().map(|version| Sent {
                    region: part,
                    version,
                }));
            });
        }
        if self.lazy.publishes {
            let each = exclusive.into_iter();
            each.for_each(|part| part.was_exclusive(self, out));
        }
        if pushed.is_empty() || to.is_empty() {
            return;
        }
        push(to.into(), pushed.into_iter(), out);
    }
}
