//! What pushes, flushes and merges do to a node, as the engine does it.

use dhole_protocol::{Command, Flushed, Message, Pushed, Sent};

use crate::Bug;
use crate::model::node::Around;
use crate::model::{Fault, Node, WriteId};

impl Node {
    pub(crate) fn carry_out_family(
        &mut self,
        command: Command,
        payload: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, program) = (self.presence(), around.program);
        match command {
            Command::Push { to, objects } => {
                let leaves = objects.iter().flat_map(|sent| program.leaves(sent.oid));
                let values = leaves.map(|leaf| self.heap.gather(leaf, at));
                let values = values.collect::<Result<_, _>>()?;
                let bytes = u64::from(program.leaves);
                let pushed = objects.into_iter().map(|sent| Pushed { sent, bytes });
                let pushed = pushed.collect();
                self.send(to, Message::Update { pushed }, values, false, around);
            }
            Command::Keep { oid, .. } => {
                for leaf in program.leaves(oid) {
                    self.heap
                        .keep(leaf, Some(payload.next().ok_or(Fault::Heap)?));
                }
            }
            Command::PassOver { bytes } => {
                for _leaf in 0..bytes {
                    payload.next().ok_or(Fault::Heap)?;
                }
            }
            Command::Discard(oid) => {
                program
                    .leaves(oid)
                    .for_each(|leaf| self.heap.keep(leaf, None));
            }
            Command::InstallKept(Sent { oid, .. }) => {
                let mut leaves = program.leaves(oid);
                leaves.try_for_each(|leaf| self.heap.install_kept(leaf, at))?;
            }
            Command::Flush {
                to,
                number,
                objects,
            } => {
                let leaves = objects.iter().flat_map(|oid| program.leaves(*oid));
                let values = leaves.map(|leaf| match around.bug {
                    Some(Bug::SkipTwin) => self.heap.gather(leaf, at),
                    _ => self.heap.diff(leaf, at),
                });
                let values = values.collect::<Result<_, _>>()?;
                let bytes = u64::from(program.leaves);
                let flushed = objects.into_iter().map(|oid| Flushed { oid, bytes });
                let flushed = flushed.collect();
                let message = Message::Flush { number, flushed };
                self.send(to, message, values, false, around);
            }
            Command::Hold { from } => self.held.push((from, payload.collect())),
            Command::Merge {
                from,
                flushed,
                held: true,
            } => {
                let place = self.held.iter().position(|(node, _)| *node == from);
                let (_, values) = self.held.remove(place.ok_or(Fault::Heap)?);
                self.merge(&flushed, &mut values.into_iter(), around)?;
            }
            Command::Merge { flushed, .. } => self.merge(&flushed, payload, around)?,
            _ => unreachable!("no command of the family"),
        }
        Ok(())
    }

    fn merge(
        &mut self,
        flushed: &[Flushed],
        values: &mut impl Iterator<Item = WriteId>,
        around: &Around<'_>,
    ) -> Result<(), Fault> {
        let at = self.presence();
        let oids = flushed.iter().map(|flushed| flushed.oid);
        for leaf in oids.flat_map(|oid| around.program.leaves(oid)) {
            let value = values.next().ok_or(Fault::Heap)?;
            self.heap.merge(leaf, value, at)?;
        }
        Ok(())
    }
}
