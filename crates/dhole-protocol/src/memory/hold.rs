//! Minipages that a thread holds: what would take them away waits until it does not any more.

use dhole_model::NodeId;
use dhole_part::PartEffects;

use super::command::Permission;
use super::message::{MemoryKind, MemoryMessage, MemoryOperation};
use super::minipage::Minipage;
use super::{Millipage, RequestState};
use crate::error::ProtocolError;

/// A minipage that threads of this node hold.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Hold {
    pub(super) readers: u32,
    pub(super) writers: u32,
    /// What its manager wants meanwhile, which is one thing at a time.
    pub(super) deferred: Option<(NodeId, MemoryMessage)>,
}

/// Why bytes cannot be held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HoldRefusal {
    /// The node may not read them, or not write them: it has to ask.
    Lacks,
    /// The address is on the page of a minipage, and not in it.
    Beyond,
    /// The node flushes the minipage, and merges what others wrote: it may be held when that is
    /// over.
    Flushes,
}

/// A minipage that a thread wants to hold, and may have to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WantedHold {
    address: u64,
    writes: bool,
    /// It has made a request, or joined one, that it has not acknowledged.
    asked: bool,
    has_asked: bool,
}

impl WantedHold {
    /// The one at an address, to read it or to write.
    pub fn new(address: u64, writes: bool) -> WantedHold {
        WantedHold {
            address,
            writes,
            asked: false,
            has_asked: false,
        }
    }

    /// Whether the node had to ask for it.
    pub fn has_asked(&self) -> bool {
        self.has_asked
    }
}

impl Hold {
    /// Whether what is held forbids that no more is left than this.
    fn forbids(&self, left: Permission) -> bool {
        let writes = self.writers > 0 && left < Permission::Write;
        writes || self.readers > 0 && left < Permission::Read
    }
}

impl Millipage {
    /// A thread holds the minipage at an address, to read it or to write, if the node may. Then no
    /// other node gets it, or gets it to write, before the [release](Millipage::release). A thread
    /// that holds minipages waits only for those that lie behind all of them: so of nodes that want
    /// the same ones one goes on. The minipage, whose bytes alone are held.
    ///
    /// # Errors
    /// [`HoldRefusal`]
    pub fn hold(&mut self, address: u64, writes: bool) -> Result<Minipage, HoldRefusal> {
        let needed = match writes {
            true => Permission::Write,
            false => Permission::Read,
        };
        let held = self.held_at(address);
        let held = held.filter(|held| held.permission >= needed);
        let minipage = held.ok_or(HoldRefusal::Lacks)?.minipage;
        let end = minipage.at + u64::from(minipage.bytes);
        if !(minipage.at..end).contains(&address) {
            return Err(HoldRefusal::Beyond);
        }
        if self.released.flushes(minipage) {
            return Err(HoldRefusal::Flushes);
        }
        let hold = self.holds.get_or_default(minipage.at);
        match writes {
            true => hold.writers += 1,
            false => hold.readers += 1,
        }
        Ok(minipage)
    }

    /// A step of a thread that wants to hold something: it holds it, if the node may, and asks for
    /// it otherwise. `None` says that the thread waits. Then it takes another step when it is woken
    /// for the page, and may take one at any time before. [`HoldRefusal::Lacks`] says that nothing
    /// is allocated there.
    ///
    /// `is_kept` says that another thread has what came for the page, and has not acknowledged it.
    pub fn hold_step(
        &mut self,
        holding: &mut WantedHold,
        is_kept: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Option<Result<Minipage, HoldRefusal>> {
        let WantedHold {
            address, writes, ..
        } = *holding;
        loop {
            let state = holding.asked.then(|| self.state(address));
            // The answer is this thread's to acknowledge, even where the minipage has come
            // meanwhile as the neighbour of another one.
            if state == Some(RequestState::Waits) {
                return None;
            }
            let held = self.hold(address, writes);
            let lacks = matches!(held, Err(HoldRefusal::Lacks | HoldRefusal::Flushes));
            if is_kept {
                return (!lacks).then_some(held);
            }
            // A flush of the minipage may wait for this.
            if holding.asked {
                self.goes_on(address, out);
                holding.asked = false;
            }
            match held {
                // What others wrote is merged first.
                Err(HoldRefusal::Flushes) => return None,
                // Otherwise it came to read, for another thread, or was lost again.
                Err(HoldRefusal::Lacks) if state != Some(RequestState::Gone) => {}
                held => return Some(held),
            }
            (holding.asked, holding.has_asked) = (true, true);
            let operation = match writes {
                true => MemoryOperation::Write,
                false => MemoryOperation::Read,
            };
            self.access(address, operation, true, out);
        }
    }

    /// A thread holds the minipage at an address no more.
    ///
    /// # Errors
    /// What came of a message that has waited, as of [`deliver`](dhole_part::NodePart::deliver).
    ///
    /// # Panics
    /// Unless it did.
    pub fn release(
        &mut self,
        address: u64,
        writes: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), ProtocolError> {
        let held = self.held_at(address);
        let at = held.expect("a minipage that is held stays").minipage.at;
        let deferred = self.holds.get(&at).and_then(|hold| hold.deferred.as_ref());
        let from = deferred.map_or(self.me, |(from, _)| *from);
        self.release_at(at, writes, out)
            .and_then(|()| self.take_own(out))
            .map_err(|what| ProtocolError::BadMessage { from, what })
    }

    /// What is at this address is held once less.
    pub(super) fn release_at(
        &mut self,
        at: u64,
        writes: bool,
        out: &mut impl PartEffects<Self>,
    ) -> Result<(), &'static str> {
        let hold = self.holds.get_mut(&at);
        let hold = hold.expect("a minipage that is held");
        match writes {
            true => hold.writers -= 1,
            false => hold.readers -= 1,
        }
        let deferred = hold.deferred.take();
        if hold.readers + hold.writers == 0 {
            self.holds.remove(&at);
        }
        self.may_flush(at, out);
        let Some((from, message)) = deferred else {
            return Ok(());
        };
        // Where another thread holds it still, it waits again.
        match message.kind {
            MemoryKind::Invalidate => self.take_invalidate(from, message, out)?,
            _ => self.take_forward(from, message, out)?,
        }
        // Other nodes of the domain have waited for that.
        self.serve_all(message.minipage, out);
        Ok(())
    }

    /// Whether a message waits until a thread does not hold a minipage: for models and tests.
    #[doc(hidden)]
    pub fn defers_any(&self) -> bool {
        self.holds.values().any(|hold| hold.deferred.is_some())
    }

    /// Whether a thread may hold a minipage here, or on a node of the domain: one to which it is
    /// lent, and that does not wait for a flush of it.
    pub(super) fn is_held(&self, at: u64) -> bool {
        let Some(hold) = self.holds.get(&at) else {
            return false;
        };
        let lent = self.lent_to(at);
        let waiting = lent.filter(|node| self.released.waits(*node, at));
        (hold.readers + hold.writers) as usize > waiting.count()
    }

    /// Keeps a message that leaves no more than this of a minipage, if a thread holds more; whether
    /// it is kept.
    pub(super) fn defers(
        &mut self,
        from: NodeId,
        message: &MemoryMessage,
        left: Permission,
    ) -> Result<bool, &'static str> {
        let hold = self.holds.get_mut(&message.minipage.at);
        let Some(hold) = hold.filter(|hold| hold.forbids(left)) else {
            return Ok(false);
        };
        if hold.deferred.is_some() {
            return Err("two operations on a minipage at once");
        }
        hold.deferred = Some((from, *message));
        Ok(true)
    }
}
