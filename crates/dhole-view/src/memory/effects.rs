//! Carries the effects of the machine out.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::{CallSite, NodeId};
use dhole_node::AnnexOutbox;
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::{
    MemoryCommand, MemoryEffects, MemoryEvent, MemoryKind, MemoryMessage, Minipage, Permission,
};
use dhole_space::{Protection, ProtectionError};

use super::{freed_by, known, locked, waits_for};
use crate::arena::Arena;
use crate::minipage_diff;
use crate::red_zones::RedZones;
use crate::sites::{AllocationSite, Sites, shortened};
use crate::twins::Twins;
use crate::waiters::Waiters;

/// Carries the effects of the machine out.
pub(crate) struct Effects<'a, 'o> {
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
    pub out: &'a mut AnnexOutbox<'o>,
    /// What the system refused; after that nothing is carried out.
    pub(super) failed: Option<ProtocolError>,
}

impl MemoryEffects for Effects<'_, '_> {
    fn does(&mut self, command: MemoryCommand) {
        if self.failed.is_some() {
            return;
        }
        match command {
            MemoryCommand::Send { to, mut message } if message.has_words() => {
                let words = match message.kind {
                    MemoryKind::Gone => self.knows(to, message.address),
                    _ if message.operation.allocates() => self.allocates(),
                    _ => self.frees(&message),
                };
                let words = words.unwrap_or_default();
                message.minipage.bytes = words.len() as u32;
                let gather = |into: &mut Vec<u8>| into.extend_from_slice(words.as_bytes());
                self.out.send_bytes(to, message, gather);
            }
            MemoryCommand::Send { to, message } => self.out.send(to, message),
            MemoryCommand::SendBytes { to, message } => {
                self.guard(message.minipage, true);
                if self.failed.is_some() {
                    return;
                }
                let gather = |into: &mut Vec<u8>| self.arena.gather(message.minipage, into);
                self.out.send_bytes(to, message, gather);
            }
            MemoryCommand::Install(minipage) => {
                self.arena.scatter(minipage, self.payload);
                self.guard(minipage, false);
            }
            MemoryCommand::Owes => self.twins.owes_one(),
            MemoryCommand::Twin(minipage) => {
                self.twins.make(minipage, self.arena);
                self.out.work.twin_bytes += u64::from(minipage.bytes);
            }
            MemoryCommand::SendDiff { to, message } => self.send_diff(to, message),
            MemoryCommand::MergeDiff(minipage) => self.merge_diff(minipage),
            MemoryCommand::DropTwin(minipage) => self.twins.forget(minipage),
            MemoryCommand::Clear(minipage) if self.arena.catches() => {
                self.arena.clear(minipage);
                if let Some(zones) = self.red_zones {
                    locked(zones).forget(minipage);
                }
            }
            // Another node may access it still, for none faults.
            MemoryCommand::Clear(_) => {}
            MemoryCommand::Allocated(run) => {
                let words = String::from_utf8_lossy(self.payload);
                let site = AllocationSite::Others(words.into());
                self.sites().allocated(&run, run.bytes.into(), &site);
            }
            MemoryCommand::Permit {
                minipage,
                permission,
            } => {
                if permission > Permission::Nothing {
                    self.guard(minipage, false);
                }
                let pages = minipage.first_page()..minipage.end_of_pages();
                self.protect(pages, permission);
                if permission < Permission::Write {
                    self.guard(minipage, true);
                }
            }
            MemoryCommand::Wake { address } => {
                self.out.wakes_worker = true;
                self.waiters.wake(waits_for(address));
            }
        }
    }

    fn happens(&mut self, event: MemoryEvent) {
        match event {
            MemoryEvent::Translated => self.out.work.translations += 1,
            MemoryEvent::Competes => self.out.competing_requests += 1,
            MemoryEvent::Dropped => self.out.dropped_prefetches += 1,
            MemoryEvent::Flushes => self.out.flushes += 1,
        }
    }
}

impl Effects<'_, '_> {
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

    /// Sends what this node wrote into a minipage that its threads write no more.
    fn send_diff(&mut self, to: NodeId, mut message: MemoryMessage) {
        let minipage = message.minipage;
        let diff = self.twins.diff(minipage, self.arena);
        self.out.work.compared_bytes += u64::from(minipage.bytes);
        self.out.work.made_bytes += diff.len() as u64;
        message.minipage.bytes = diff.len() as u32;
        self.out
            .send_bytes(to, message, |into| into.extend_from_slice(&diff));
    }

    /// Writes what another node wrote into a minipage; nothing if that is no diff of such bytes.
    fn merge_diff(&mut self, minipage: Minipage) {
        self.out.work.applied_bytes += self.payload.len() as u64;
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
    pub(super) fn protect(&mut self, pages: Range<u64>, permission: Permission) {
        let protection = match permission {
            Permission::Nothing => Protection::Closed,
            Permission::Read => Protection::ReadOnly,
            Permission::Write => Protection::Open,
        };
        self.out.work.protections += 1;
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
