//! The effects of pushes, flushes and merges on a node, as in the engine.

use dhole_model::{CallSite, NodeId, Oid, VectorTime};
use dhole_protocol::{Changed, Command, Commands, Flushed, FlushedAt, Message, Pushed, Sent};

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
        let (presence, program) = (self.presence(), around.program);
        match command {
            Command::Push { to, objects } => {
                let leaves = objects.iter().flat_map(|sent| program.leaves(sent.oid));
                let values = leaves.map(|leaf| self.heap.gather(leaf, presence));
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
                leaves.try_for_each(|leaf| self.heap.install_kept(leaf, presence))?;
            }
            Command::Flush {
                to,
                number,
                objects,
                at,
            } => {
                let leaves = objects.iter().flat_map(|oid| program.leaves(*oid));
                let values = leaves.map(|leaf| match around.bug {
                    Some(Bug::SkipTwin) => self.heap.gather(leaf, presence),
                    _ => self.heap.diff(leaf, presence),
                });
                let values = values.collect::<Result<_, _>>()?;
                let bytes = u64::from(program.leaves);
                let flushed = objects.into_iter().map(|oid| Flushed { oid, bytes });
                let flushed = flushed.collect();
                let message = Message::Flush {
                    number,
                    flushed,
                    at,
                };
                self.send(to, message, values, false, around);
            }
            Command::Compare { oid, site } => self.compare(oid, site, around)?,
            Command::Hold { from } => self.held.push((from, payload.collect())),
            Command::Merge {
                from,
                flushed,
                at,
                held: true,
            } => {
                let place = self.held.iter().position(|(node, _)| *node == from);
                let (_, values) = self.held.remove(place.ok_or(Fault::Heap)?);
                let mut values = values.into_iter();
                self.merge(from, &flushed, at.as_deref(), &mut values, around)?;
            }
            Command::Merge {
                from, flushed, at, ..
            } => self.merge(from, &flushed, at.as_deref(), payload, around)?,
            _ => unreachable!("no command of the family"),
        }
        Ok(())
    }

    fn merge(
        &mut self,
        from: NodeId,
        flushed: &[Flushed],
        at: Option<&FlushedAt>,
        values: &mut impl Iterator<Item = WriteId>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (presence, program) = (self.presence(), around.program);
        for (place, Flushed { oid, .. }) in flushed.iter().enumerate() {
            let mut changed = Vec::new();
            self.ends_version(*oid);
            for (leaf, number) in program.leaves(*oid).zip(0_u64..) {
                let value = values.next().ok_or(Fault::Heap)?;
                self.heap.merge(leaf, value, presence)?;
                if value != WriteId::UNCHANGED {
                    changed.push(number);
                }
            }
            let freed = program.leaves(*oid).all(|leaf| self.heap.is_freed(leaf));
            if let Some(at) = at.filter(|_| !freed) {
                let (oid, by, site) = (*oid, from, at.sites[place]);
                let time = Some(&at.time);
                self.changed(Changed { oid, by, site }, changed, time, around)?;
            }
            self.publish(*oid, program);
        }
        Ok(())
    }

    fn compare(
        &mut self,
        oid: Oid,
        site: Option<CallSite>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (at, by) = (self.presence(), NodeId::at(self.me));
        let mut changed = Vec::new();
        for (leaf, number) in around.program.leaves(oid).zip(0_u64..) {
            if self.heap.diff(leaf, at)? != WriteId::UNCHANGED {
                changed.push(number);
            }
        }
        self.changed(Changed { oid, by, site }, changed, None, around)
    }

    /// Tells the protocol which leaves were changed, by their numbers in the object.
    fn changed(
        &mut self,
        changed: Changed,
        leaves: Vec<u64>,
        time: Option<&VectorTime>,
        around: &mut Around<'_>,
    ) -> Result<(), Fault> {
        let (mut found, leaves) = (Commands::new(), leaves.into_iter().map(|n| n..n + 1));
        self.protocol
            .changed_at_home(changed, leaves, time, &mut found);
        for command in found {
            if let Some(command) = around.after_bug(command) {
                self.carry_out(command, &mut std::iter::empty(), around)?;
            }
        }
        Ok(())
    }
}
