//! Running sections at the home of what they touch, under the node lock.

use dhole_heap::Presence;
use dhole_model::{NodeId, ObjectId, Oid, VectorTime};
use dhole_protocol::objects::{Bytes, CallRef, Ran, Refusal};
use dhole_protocol::{Event, MayRun, ProtocolError, RwLockId};

use super::copies::Hosting;
use super::section::{Rest, Runs, Section, Stopped};
use crate::node::State;
use crate::step::{Step, must};

impl Hosting<'_, '_> {
    /// Tries a section on the objects here.
    pub(super) fn section(
        &mut self,
        call: CallRef<'_>,
        time: Option<&VectorTime>,
        result: &mut Vec<u8>,
    ) -> Result<Ran, Refusal> {
        let lock = RwLockId(call.object.0);
        match self.protocol.may_run_section(lock, time) {
            MayRun::Now => {}
            MayRun::Later => return Ok(Ran::Not),
            MayRun::Elsewhere => return Err(Refusal::Elsewhere),
        }
        if self.heap.presence() != Presence::Exclusive {
            self.sections.in_use += 1;
            self.protocol.defer_section();
            return Ok(Ran::Not);
        }
        let Some((_, home)) = call.object.lock() else {
            return Err(Refusal::Unknown);
        };
        let began = result.len();
        let mut section = Section::at_home(self.heap, self.protocol, home);
        let clock = self.copies.stopwatch.map(|now| (now, now()));
        let ran = Runs::run(call.kind, &mut section, call.arguments, result);
        if let Some((now, began)) = clock {
            self.copies.executed_ns += now().saturating_sub(began);
        }
        self.sections.units += section.units();
        let ran = match ran {
            Ok(()) => Ran::Whole,
            Err(stopped) => {
                result.truncate(began);
                match stopped {
                    Stopped::Waits => return Ok(Ran::Not),
                    Stopped::Then(rest) => then(rest)?,
                    Stopped::Elsewhere => return Err(Refusal::Elsewhere),
                    Stopped::Failed(error) => {
                        return Err(Refusal::Failed(error.to_string().into()));
                    }
                    Stopped::Panicked(words) => return Err(Refusal::Panicked(words)),
                    Stopped::Malformed(words) => return Err(Refusal::Malformed(words)),
                }
            }
        };
        let changes = section.changes();
        let objects: Vec<Oid> = changes.iter().map(|(oid, _)| *oid).collect();
        let commands = &mut self.sections.commands;
        if !self.protocol.before_section(&objects, commands) {
            // The nodes that keep copies are told first.
            result.truncate(began);
            return Ok(Ran::Not);
        }
        for (oid, packed) in &changes {
            self.change(home, *oid, packed);
        }
        let by = (call.id.node, time);
        let commands = &mut self.sections.commands;
        self.protocol
            .section_ran(lock, by, !changes.is_empty(), commands);
        self.sections.ran += u64::from(ran == Ran::Whole);
        Ok(ran)
    }

    /// Changes an object that is at home here.
    fn change(&mut self, me: NodeId, oid: Oid, packed: &[u8]) {
        let readers = self.heap.unpublish(oid);
        if !readers.is_nobody() {
            let others = readers.of(self.sections.nodes).filter(|node| *node != me);
            self.protocol.was_read(oid, others);
        }
        let changed = self.heap.change(oid, packed).map(drop);
        must(changed, "a section writes values, in a call of the worker");
        if self.heap.publishes()
            && let Some(version) = self.protocol.published(oid)
        {
            self.heap.publish(oid, version);
        }
    }
}

/// The section that goes on, as its call names it.
fn then(rest: Rest) -> Result<Ran, Refusal> {
    let place = rest.place.ok_or(Refusal::Elsewhere)?;
    Ok(Ran::Then {
        kind: place.into(),
        arguments: Bytes::from(&rest.arguments[..]),
    })
}

impl State {
    /// Does what the sections that were tried lead to.
    #[cold]
    pub(super) fn after_sections(&mut self, step: &mut Step<'_, '_>) -> Result<(), ProtocolError> {
        let sections = &mut self.here.sections;
        let (ran, in_use) = (
            std::mem::take(&mut sections.ran),
            std::mem::take(&mut sections.in_use),
        );
        let mut commands = std::mem::take(&mut sections.commands);
        self.counting.all.sections += ran;
        self.counting.all.sections_in_use += in_use;
        if in_use > 0 {
            self.is_deferred();
        }
        let mut done = Ok(());
        for command in commands.drain(..) {
            done = done.and_then(|()| self.carry_out(command, step));
        }
        if self.here.sections.commands.is_empty() {
            self.here.sections.commands = commands;
        }
        done
    }

    /// Tries the sections that wait for a lock. Then nodes may pass that wait for it.
    pub(crate) fn try_sections(
        &mut self,
        lock: RwLockId,
        step: &mut Step<'_, '_>,
    ) -> Result<(), ProtocolError> {
        let object = ObjectId(lock.0);
        let tried = self.objects_directly(step, |machine, host, fx| {
            machine.retry_sections(object, host, fx);
            Ok(())
        });
        tried.and(self.step(Event::SectionsTried(lock), step))
    }
}
