//! What the host of the minipages does: it opens and closes pages, and copies bytes.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::{CallSite, NodeId};
use dhole_node::PartsOutbox;
use dhole_part::{Live, PartHost};
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::{
    MemoryAct, MemoryEvent, MemoryKind, MemoryMessage, Millipage, Minipage, Permission,
};
use dhole_space::{Protection, ProtectionError};

use super::{freed_by, known, locked, waits_for};
use crate::arena::Arena;
use crate::minipage_diff;
use crate::red_zones::RedZones;
use crate::sites::{AllocationSite, Sites, shortened};
use crate::twins::Twins;
use crate::waiters::Waiters;

/// The effects of a step, carried out.
pub(crate) type Effects<'a, 'o> = Live<'a, MemoryHost<'a>, PartsOutbox<'o>>;

/// What carries out what only a node's memory can.
pub(crate) struct MemoryHost<'a> {
    pub(super) node: NodeId,
    /// The program knows places by their addresses in the process.
    pub(super) is_placed: bool,
    pub(super) sites: &'a Mutex<Sites>,
    pub(super) red_zones: Option<&'a Mutex<RedZones>>,
    /// Where the thread frees a minipage, or asks for new ones, if it does.
    pub(super) site: Option<CallSite>,
    pub(super) arena: &'a Arena,
    pub(super) twins: &'a Twins,
    /// Whose message led to the step: this node where none did.
    pub(super) from: NodeId,
    pub(super) waiters: &'a Waiters,
    pub(super) payload: &'a [u8],
    /// What the system refused; after that nothing is carried out.
    pub(super) failed: Option<ProtocolError>,
}

impl PartHost<Millipage, PartsOutbox<'_>> for MemoryHost<'_> {
    fn act(&mut self, act: MemoryAct, out: &mut PartsOutbox<'_>) {
        match act {
            MemoryAct::Install(minipage) => {
                self.arena.scatter(minipage, self.payload);
                self.guard(minipage, false);
            }
            MemoryAct::Owes => self.twins.owes_one(),
            MemoryAct::Twin(minipage) => {
                self.twins.make(minipage, self.arena);
                out.work().twin_bytes += u64::from(minipage.bytes);
            }
            MemoryAct::MergeDiff(minipage) => {
                out.work().applied_bytes += self.payload.len() as u64;
                self.merge_diff(minipage);
            }
            MemoryAct::DropTwin(minipage) => self.twins.forget(minipage),
            MemoryAct::Clear(minipage) if self.arena.catches() => {
                self.arena.clear(minipage);
                if let Some(zones) = self.red_zones {
                    locked(zones).forget(minipage);
                }
            }
            // Another node may access it still, for none faults.
            MemoryAct::Clear(_) => {}
            MemoryAct::Allocated(run) => {
                let words = String::from_utf8_lossy(self.payload);
                let site = AllocationSite::Others(words.into());
                self.sites().allocated(&run, run.bytes.into(), &site);
            }
            MemoryAct::Permit {
                minipage,
                permission,
            } => {
                if permission > Permission::Nothing {
                    self.guard(minipage, false);
                }
                let pages = minipage.first_page()..minipage.end_of_pages();
                self.protect(pages, permission, out);
                if permission < Permission::Write {
                    self.guard(minipage, true);
                }
            }
        }
    }

    fn over(&mut self, address: u64, out: &mut PartsOutbox<'_>) {
        out.wakes_worker = true;
        self.waiters.wake(waits_for(address));
    }

    fn happens(&mut self, event: MemoryEvent, out: &mut PartsOutbox<'_>) {
        match event {
            MemoryEvent::Translated => out.work().translations += 1,
            MemoryEvent::Competes => out.competing_requests += 1,
            MemoryEvent::Dropped => out.dropped_prefetches += 1,
            MemoryEvent::Flushes => out.flushes += 1,
        }
    }

    fn gather(
        &mut self,
        to: NodeId,
        message: &mut MemoryMessage,
        into: &mut Vec<u8>,
        out: &mut PartsOutbox<'_>,
    ) {
        let words = match message.kind {
            MemoryKind::Data => {
                self.guard(message.minipage, true);
                if self.failed.is_none() {
                    self.arena.gather(message.minipage, into);
                }
                return;
            }
            MemoryKind::Diff => return self.gather_diff(message, into, out),
            MemoryKind::Gone => self.knows(to, message.address),
            _ if message.operation.allocates() => self.allocates(),
            _ => self.frees(message),
        };
        into.extend_from_slice(words.unwrap_or_default().as_bytes());
        message.minipage.bytes = into.len() as u32;
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}

impl MemoryHost<'_> {
    /// Makes the red zone of a minipage known, if it is not; and checks it, if it is to.
    fn guard(&mut self, minipage: Minipage, checks: bool) {
        let Some(zones) = self.red_zones else { return };
        let mut zones = locked(zones);
        match checks {
            true => {
                zones.learn(minipage, self.arena);
                let checked = zones.check(minipage, self.arena);
                self.failed = self.failed.take().or(checked.err());
            }
            false => zones.learn(minipage, self.arena),
        }
    }

    /// Gathers what this node wrote into a minipage that its threads write no more.
    fn gather_diff(
        &self,
        message: &mut MemoryMessage,
        into: &mut Vec<u8>,
        out: &mut PartsOutbox<'_>,
    ) {
        let minipage = message.minipage;
        let diff = self.twins.diff(minipage, self.arena);
        out.work().compared_bytes += u64::from(minipage.bytes);
        out.work().made_bytes += diff.len() as u64;
        message.minipage.bytes = diff.len() as u32;
        into.extend_from_slice(&diff);
    }

    /// Writes what another node wrote into a minipage; nothing if that is no diff of such bytes.
    fn merge_diff(&mut self, minipage: Minipage) {
        let bytes = minipage.bytes as usize;
        let merge = |at: usize, run: &[u8]| self.arena.merge(minipage, at, run);
        let checked = minipage_diff::runs(self.payload, bytes, |_, _| ());
        let merged = checked.and_then(|()| minipage_diff::runs(self.payload, bytes, merge));
        if merged.is_err() {
            let what = "what it wrote into a minipage, which is no difference of such bytes";
            let from = self.from;
            self.failed = Some(ProtocolError::BadMessage { from, what });
        }
    }

    /// Where the thread asks for new minipages, in words.
    fn allocates(&self) -> Option<String> {
        let site = self.site?;
        Some(shortened(site.to_string()))
    }

    fn sites(&self) -> MutexGuard<'_, Sites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which node frees the minipage that a request is about, and where: this one, or one of its
    /// domain.
    fn frees(&self, request: &MemoryMessage) -> Option<String> {
        match request.asks_for() {
            Some(member) => self.sites().take_members(member, request.address),
            None => Some(freed_by(self.node, self.site?)),
        }
    }

    /// What is known of the allocation that was at an address, for a node that hears that nothing
    /// is there.
    fn knows(&self, to: NodeId, address: u64) -> Option<String> {
        let _not_sent = self.sites().take_members(to, address);
        known(self.sites, address)
    }

    /// From here on all threads may do this with pages of a view.
    pub(super) fn protect(
        &mut self,
        pages: Range<u64>,
        permission: Permission,
        out: &mut PartsOutbox<'_>,
    ) {
        let protection = match permission {
            Permission::Nothing => Protection::Closed,
            Permission::Read => Protection::ReadOnly,
            Permission::Write => Protection::Open,
        };
        out.work().protections += 1;
        let at = pages.start;
        if let Err(cause) = self.arena.protect(pages, protection) {
            self.failed = Some(self.refused(at, cause));
        }
    }

    /// The page at an address cannot be opened, or closed.
    fn refused(&self, address: u64, cause: ProtectionError) -> ProtocolError {
        let place = self.arena.place_of(address, 1).filter(|_| self.is_placed);
        let at = place.map_or(address, |place| place.addr().get() as u64);
        match cause {
            ProtectionError::System(cause) => {
                let cause = cause.to_string();
                ProtocolError::MinipageProtection { at, cause }
            }
            ProtectionError::Mappings {
                mappings,
                most,
                allowed,
            } => ProtocolError::MinipageMappings {
                at,
                allocation: known(self.sites, address).unwrap_or_default(),
                mappings,
                most,
                allowed,
            },
        }
    }
}
