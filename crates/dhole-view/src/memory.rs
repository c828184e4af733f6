//! A node's part of the memory: the protocol's machine, how its effects are carried out, and the
//! threads that fault.

mod allocate;
mod deliver;
mod effects;
mod fetch;
mod hold;
mod isolate;
mod release;
#[cfg(test)]
mod tests;
mod waits;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dhole_model::{CallSite, NodeId, WaitCause};
use dhole_node::{
    Error, MemoryConsistency, MemoryLayout, NodeParts, PartsLink, PartsMaker, PartsOutbox,
    PartsPlace, PartsStep, PartsWait,
};
use dhole_part::{Live, NodePart as _, PartEffects as _};
use dhole_protocol::memory::sync::{ThreadMessage, ThreadSync};
use dhole_protocol::memory::{
    Accessed, MINIPAGE_PAGE, MemoryMessage, MemoryOperation, Millipage, RequestState,
};
use dhole_protocol::{DeadlockProbe, ProtocolError, Waiter};
use dhole_space::{Catcher, CatcherKind};
use dhole_wire::Wire as _;

use self::effects::{Effects, MemoryHost};
use self::waits::AT_ONCE;
pub(crate) use self::waits::waits_at;
use crate::access_error::{MemoryAccessError, MemoryAccessFailure};
use crate::arena::{Arena, Object, Placed};
use crate::borrowed;
use crate::context::{self, MemoryWaitError, NodeThreads, Runs};
use crate::domain_holds::DomainHolds;
use crate::domain_locks::RunLocks;
use crate::fault::{self, Faults, Registration};
use crate::node_sync::NodeSync;
use crate::places;
use crate::red_zones::RedZones;
use crate::settings::MemorySettings;
use crate::sites::{Sites, shortened};
use crate::sizes::Sizes;
use crate::twins::Twins;
use crate::waiters::{MOST_WAITERS, Waiters, WaitsFor};

/// One instruction accesses no more pages than this.
const MOST_KEPT: usize = 4;

/// A node's memory, as its run has it.
pub(crate) struct NodeMemory {
    // Before the memory, which they name.
    registrations: Vec<Registration>,
    memory: Box<Memory>,
    /// Where the views may begin, and what is in the way there.
    bases: Vec<usize>,
    obstacles: Vec<String>,
}

/// A node's memory.
pub(crate) struct Memory {
    node: NodeId,
    /// Its places are the same on all nodes, and are what programs call addresses.
    is_placed: bool,
    /// How many nodes have this memory.
    pub domain_nodes: usize,
    pub arena: Arena,
    /// How large the numbers are on each page.
    pub sizes: Sizes,
    /// What the nodes of the domain hold, if there are several, or it is the whole run.
    pub domain_holds: Option<DomainHolds>,
    /// The threads that wait beside the worker.
    pub waiters: Waiters,
    /// What threads wait for beside pages.
    pub sync: NodeSync,
    /// Where minipages were allocated and freed.
    sites: Mutex<Sites>,
    /// What is behind allocations, if they are isolated.
    red_zones: Option<Mutex<RedZones>>,
    /// What the node wrote together with others is compared with these.
    twins: Twins,
    inside: Mutex<Inside>,
}

struct Inside {
    machine: Millipage,
    /// By thread: the instruction that faulted last, and the last two pages at which it did.
    last: BTreeMap<usize, (usize, [u64; 2])>,
    /// Pages that a thread has got and not acknowledged: it does when its instruction is over.
    kept: Vec<Kept>,
    /// What threads wait for, for who wonders.
    waits: BTreeMap<usize, (u64, MemoryOperation)>,
}

/// A page that a thread keeps until its instruction is over.
#[derive(Clone, Copy)]
struct Kept {
    thread: usize,
    page: u64,
}

impl Inside {
    /// Whether a thread's instruction has faulted at a page before, and no other one did meanwhile.
    /// One that needs two pages may fault at both in turn.
    fn faults_again(&mut self, thread: usize, instruction: usize, page: u64) -> bool {
        // Threads that have ended are forgotten now and then; one that has not learns it again.
        if self.last.len() >= MOST_WAITERS && !self.last.contains_key(&thread) {
            self.last.clear();
        }
        let last = self.last.entry(thread).or_insert((0, [u64::MAX; 2]));
        let (last, pages) = last;
        if *last != instruction {
            (*last, *pages) = (instruction, [page, u64::MAX]);
            return false;
        }
        let again = pages.contains(&page);
        if pages[0] != page {
            *pages = [page, pages[0]];
        }
        again
    }

    /// A thread acknowledges the pages that it keeps, of these.
    fn gives_up_kept(
        &mut self,
        thread: usize,
        which: impl Fn(u64) -> bool,
        effects: &mut Effects<'_, '_>,
    ) {
        let machine = &mut self.machine;
        self.kept.retain(|kept| {
            let stays = kept.thread != thread || !which(kept.page);
            if !stays {
                machine.goes_on(kept.page, effects);
                // Other threads may wait for that.
                effects.over(kept.page);
            }
            stays
        });
    }

    /// Whether a thread keeps pages.
    fn keeps(&self, thread: usize) -> bool {
        self.kept.iter().any(|kept| kept.thread == thread)
    }
}

fn locked(zones: &Mutex<RedZones>) -> MutexGuard<'_, RedZones> {
    zones.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A node frees a minipage at a place in the program, in words.
fn freed_by(node: NodeId, site: CallSite) -> String {
    shortened(format!("{node} at {site}"))
}

/// What is known of the allocation at an address.
fn known(sites: &Mutex<Sites>, address: u64) -> Option<String> {
    let sites = sites.lock().unwrap_or_else(PoisonError::into_inner);
    sites.words(address)
}

/// A thread waits for the page of an address.
fn waits_for(address: u64) -> WaitsFor {
    WaitsFor::Page(address / MINIPAGE_PAGE * MINIPAGE_PAGE)
}

/// How an access that faulted went.
enum Faulted {
    /// It is made again.
    Again,
    /// Nothing is allocated there.
    Gone,
    /// It would wait within a closure that holds memory.
    Holds,
}

impl NodeMemory {
    pub fn new(
        place: PartsPlace,
        settings: MemorySettings,
        placed: &Placed,
    ) -> io::Result<NodeMemory> {
        let is_whole = place.whole().is_some();
        let PartsPlace {
            node,
            nodes,
            here,
            domain,
            layout,
            managers,
            consistency,
        } = place;
        settings.check(nodes, here)?;
        let isolates = layout == MemoryLayout::Isolate;
        // Of one view each page has one minipage.
        let views = if isolates { 1 } else { settings.views };
        let bytes = settings.bytes_of(here);
        let chosen = managers.chosen();
        placed.check(bytes, managers.parts(nodes))?;
        let mut machine = Millipage::new(node, nodes, bytes, views as u64);
        if !chosen.is_empty() {
            machine = machine.with_managers(chosen);
        }
        machine.allocate_released(consistency == MemoryConsistency::Release);
        let inside = Inside {
            machine,
            last: BTreeMap::new(),
            kept: Vec::with_capacity(MOST_KEPT),
            waits: BTreeMap::new(),
        };
        let (object, domain_holds) = match &domain {
            Some(domain) => {
                let object = Object::Domain(Arc::clone(&domain.file), domain.leader() == node);
                (object, Some(DomainHolds::new(bytes, views, &domain.file)?))
            }
            None => (Object::new(bytes)?, None),
        };
        let catcher = match is_whole {
            // All nodes of the run have this memory, so nothing is ever taken away.
            true => Catcher::NOTHING,
            false => {
                let kind = CatcherKind::choose()?;
                fault::install(kind.signal(), placed.handlers)?;
                Catcher::new(kind)?
            }
        };
        let file = domain.as_ref().map(|domain| &*domain.file);
        let locks = file.filter(|_| is_whole).map(RunLocks::map).transpose()?;
        let extent = Arena::extent(bytes, views, &catcher);
        let obstacles = places::obstacles(&placed.bases, extent);
        let free = obstacles.iter().position(String::is_empty);
        if free.is_none() && !obstacles.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                format!("it has no place on {node}: {}", obstacles.join("; ")),
            ));
        }
        let base = free.map(|place| placed.bases[place]);
        let mut memory = Box::new(Memory {
            node,
            is_placed: base.is_some(),
            domain_nodes: domain.as_ref().map_or(1, |domain| domain.nodes.len()),
            arena: Arena::new(bytes, views, object, catcher, base)?,
            sizes: Sizes::new(bytes, views, file, is_whole)?,
            domain_holds,
            waiters: Waiters::new(),
            sync: NodeSync::new(node, nodes, locks),
            sites: Mutex::new(Sites::default()),
            red_zones: isolates.then(|| Mutex::new(RedZones::new(node, base.is_some()))),
            twins: Twins::default(),
            inside: Mutex::new(inside),
        });
        let globals = &placed.globals;
        let is_first = node.index() == 0;
        let pages = placed.globals_bytes() as u64 / MINIPAGE_PAGE;
        if is_first && pages > 0 {
            let run = memory.allocate_globals(pages);
            let run = run.map_err(io::Error::other)?;
            assert_eq!(run.at, 0, "globals are the first that node 0 allocates");
        }
        // SAFETY: whoever places globals says that they are the program's, and that no thread
        // accesses them now (`ProgramMemory::new`).
        unsafe { memory.arena.show_globals(globals, is_first)? };
        if !memory.arena.catches() || isolates {
            memory.lock().machine.keep_freed();
        }
        let mut node = NodeMemory {
            registrations: Vec::new(),
            memory,
            bases: placed.bases.clone(),
            obstacles,
        };
        node.register()?;
        Ok(node)
    }

    /// Makes the views known to the handlers of faults.
    fn register(&mut self) -> io::Result<()> {
        let of: *const Memory = &raw const *self.memory;
        let catches = self.memory.arena.catches();
        let views = self.memory.arena.program_views().filter(|_| catches);
        // SAFETY: the box keeps the memory where it is, and is dropped after the registrations.
        let registrations = views.map(|views| unsafe { Registration::new(of, views) });
        self.registrations = registrations.collect::<io::Result<_>>()?;
        Ok(())
    }

    /// The memory of a node, if its parts are one.
    pub fn of(parts: &dyn NodeParts) -> Option<&Memory> {
        let node = parts.as_any().downcast_ref::<NodeMemory>()?;
        Some(&node.memory)
    }
}

impl PartsMaker for MemorySettings {
    fn make(&self, place: PartsPlace) -> io::Result<Box<dyn NodeParts>> {
        let memory = NodeMemory::new(place, *self, &Placed::default())?;
        Ok(Box::new(memory))
    }
}

impl NodeParts for NodeMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn places(&self) -> &[String] {
        &self.obstacles
    }

    fn settle(&mut self, leaders: &[NodeId], place: usize) -> io::Result<()> {
        self.memory.lock().machine.set_leaders(leaders);
        // A node that is alone in its run agrees with itself on the first, whatever lies there.
        let is_free = self.obstacles.get(place).is_some_and(String::is_empty);
        let base = self.bases.get(place).copied().filter(|_| is_free);
        if let Some(base) = base.filter(|base| *base != self.memory.arena.base()) {
            self.registrations.clear();
            self.memory.arena.move_to(base)?;
            self.register()?;
        }
        Ok(())
    }

    fn deliver(
        &self,
        from: NodeId,
        part: u8,
        message: &[u8],
        payload: &[u8],
        out: &mut PartsOutbox<'_>,
    ) -> Option<Result<(), ProtocolError>> {
        let refused = |what| ProtocolError::BadMessage { from, what };
        match part {
            Millipage::TAG => {
                let message = MemoryMessage::parse(message).ok()?;
                Some(self.memory.deliver(from, message, payload, out))
            }
            ThreadSync::TAG => {
                let message = ThreadMessage::parse(message).ok()?;
                let Memory { sync, waiters, .. } = &*self.memory;
                let taken = sync.deliver(from, message, waiters, out);
                Some(taken.map_err(refused))
            }
            _ => None,
        }
    }

    fn answers(&self, probe: &mut DeadlockProbe) {
        self.memory.sync.answers(probe);
    }

    fn told(&self, wait: &Waiter, waits: Arc<[Waiter]>, out: &mut PartsOutbox<'_>) {
        let Memory { sync, waiters, .. } = &*self.memory;
        sync.step(waiters, out, |machine, fx| machine.told(wait, waits, fx));
    }

    fn before_release(&self) {
        self.memory.must_flush();
        self.memory.sync.worker_may_wait();
    }

    fn ended(&self) {
        self.memory.waiters.wake_all();
    }

    fn around(&self, link: &dyn PartsLink, body: &mut dyn FnMut()) {
        let runs = Runs {
            memory: self.memory.threads().memory,
            link,
            thread: self.memory.sync.number_body(),
            is_beside: false,
        };
        context::run(runs, body);
    }

    fn program_over(&self) -> Result<(), Error> {
        self.memory.must_flush();
        self.memory.sync.worker_may_wait();
        self.memory.ends_starts();
        let Some(zones) = &self.memory.red_zones else {
            return Ok(());
        };
        let checked = locked(zones).check_all(&self.memory.arena);
        checked.map_err(Error::program)
    }

    fn all_have_ended(&self) {
        self.memory.arena.clears_file();
    }

    fn describe(&self) -> String {
        // Not waited for: whoever asks wonders why nothing happens.
        let Ok(inside) = self.memory.inside.try_lock() else {
            return String::new();
        };
        let mut text = String::new();
        for (address, operation) in inside.waits.values() {
            let does = match operation {
                MemoryOperation::Read => "reads",
                MemoryOperation::Flush => "flushes",
                _ => "writes",
            };
            // As the program knows it.
            let place = self.memory.arena.place_of(*address, 1);
            let place = place.filter(|_| self.memory.is_placed);
            let address = place.map_or(*address, |place| place.addr().get() as u64);
            let _infallible = write!(text, "\n{does} memory at {address:#x}, and waits for it");
        }
        for line in self.memory.sync.describe() {
            let _infallible = write!(text, "\n{line}");
        }
        text
    }
}

impl Memory {
    /// Threads that were started on this node, and did not begin, never will: a thread that waits
    /// for the end of one hears that.
    pub fn ends_starts(&self) {
        if !self.sync.machine().begins_no_more() {
            return;
        }
        // It does not wait.
        let none = WaitsFor::Page(u64::MAX);
        let told = context::wait(self.threads(), none, &mut |out| {
            self.sync
                .step(&self.waiters, out, |machine, fx| machine.end_starts(fx));
            PartsStep::Over
        });
        context::must(self.threads(), told, "ending threads that could not begin");
    }

    /// As threads know it.
    pub fn threads(&self) -> NodeThreads<'_> {
        NodeThreads {
            memory: std::ptr::from_ref(self).cast(),
            waiters: &self.waiters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sites(&self) -> MutexGuard<'_, Sites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the allocation that is at an address, or was.
    pub fn known(&self, address: u64) -> Option<String> {
        known(&self.sites, address)
    }

    /// Most minipages of this node on one page, the bytes that it has allocated by whole pages, and
    /// those of its minipages.
    pub fn allocated(&self) -> [u64; 3] {
        let inside = self.lock();
        let machine = &inside.machine;
        [
            machine.views_used(),
            machine.allocated_bytes(),
            machine.minipage_bytes(),
        ]
    }

    /// As [`acts`](Memory::acts), of what gives nodes copies sooner: nothing where all have the
    /// same memory.
    ///
    /// # Errors
    /// As there.
    pub fn gives(
        &self,
        act: impl FnMut(&mut Millipage, &mut Effects<'_, '_>),
    ) -> Result<(), MemoryWaitError> {
        match self.arena.catches() {
            true => self.acts(act),
            false => Ok(()),
        }
    }

    /// Takes a step of the machine for a thread that does not wait for it.
    ///
    /// # Errors
    /// [`MemoryWaitError`]
    pub fn acts(
        &self,
        mut act: impl FnMut(&mut Millipage, &mut Effects<'_, '_>),
    ) -> Result<(), MemoryWaitError> {
        self.steps(AT_ONCE, &mut |inside, effects| {
            act(&mut inside.machine, effects);
            PartsStep::Over
        })
    }

    /// Takes a step, and another one whenever what it waits for may have come, until it is over.
    /// A report tells of the wait, if it is one. All that threads do with memory goes by here, so
    /// no step goes on after it was refused.
    ///
    /// # Errors
    /// [`MemoryWaitError`]: what the system or a check refuses in a step, say.
    fn steps(
        &self,
        (waits_for, told): (WaitsFor, PartsWait),
        step: &mut dyn FnMut(&mut Inside, &mut Effects<'_, '_>) -> PartsStep,
    ) -> Result<(), MemoryWaitError> {
        let mut refused = None;
        context::wait(self.threads(), waits_for, &mut |out| {
            let mut effects = self.effects(&[], out);
            let inside = &mut *self.lock();
            let next = step(inside, &mut effects);
            if next == PartsStep::Waits {
                effects.out.waits_for = Some(told);
            }
            refused = effects.host.failed.take();
            if refused.is_none() {
                return next;
            }
            inside.waits.remove(&context::own_number());
            PartsStep::Over
        })?;
        let Some(cause) = refused else {
            return Ok(());
        };
        // The same whichever thread finds it, as where a message leads to it.
        if matches!(cause, ProtocolError::MinipageOverflow { .. }) {
            context::fail(self.threads(), &cause.to_string());
        }
        Err(MemoryWaitError::Refused(cause))
    }

    /// Frees the minipage at an address, for all nodes; whether there was one.
    ///
    /// # Errors
    /// As [`acts`](Memory::acts).
    pub fn free(&self, address: u64, site: CallSite) -> Result<bool, MemoryWaitError> {
        let (mut asked, mut is_own, mut freed) = (false, false, true);
        let page = waits_for(address);
        let told = waits_at(WaitCause::Operation, Some(site));
        self.steps((page, told), &mut |inside, effects| {
            let is_kept = inside.kept.iter().any(|kept| waits_for(kept.page) == page);
            let machine = &mut inside.machine;
            effects.host.site = Some(site);
            loop {
                // Another thread has asked for it before, and keeps it until its instruction is
                // over.
                if is_kept {
                    return PartsStep::Waits;
                }
                if asked {
                    let state = machine.state(address);
                    if state == RequestState::Waits {
                        return PartsStep::Waits;
                    }
                    machine.goes_on(address, effects);
                    freed = state != RequestState::Gone;
                    if is_own || !freed || effects.host.failed.is_some() {
                        return PartsStep::Over;
                    }
                }
                // What was asked for before on the same page comes first.
                let accessed = machine.access(address, MemoryOperation::Free, true, effects);
                (asked, is_own) = (true, accessed == Accessed::Asked);
                if is_own && machine.asks_itself(address) {
                    let words = freed_by(self.node, site);
                    self.sites().asked_to_free(address, words.as_bytes());
                }
            }
        })?;
        if freed {
            self.sites().freed(address, freed_by(self.node, site));
        }
        Ok(freed)
    }

    fn effects<'a, 'o>(
        &'a self,
        payload: &'a [u8],
        out: &'a mut PartsOutbox<'o>,
    ) -> Effects<'a, 'o> {
        let host = MemoryHost {
            node: self.node,
            is_placed: self.is_placed,
            sites: &self.sites,
            red_zones: self.red_zones.as_ref(),
            site: None,
            arena: &self.arena,
            twins: &self.twins,
            from: self.node,
            waiters: &self.waiters,
            payload,
            failed: None,
        };
        Live { host, out }
    }

    /// A step of an access.
    fn step(
        &self,
        access: &mut Access,
        inside: &mut Inside,
        effects: &mut Effects<'_, '_>,
    ) -> PartsStep {
        let Access {
            thread,
            address,
            operation,
            ..
        } = *access;
        let page = access.page();
        if !access.begun {
            access.begun = true;
            access.is_stuck = inside.faults_again(thread, access.instruction, page);
            // What lies before may stay while the thread waits, for whoever has what lies behind
            // and needs what lies before gives it up: so one of them goes on.
            inside.gives_up_kept(thread, |kept| kept >= page, effects);
        }
        // Another thread has got the page and keeps it until its instruction is over.
        let is_others = |kept: &Kept| kept.page == page && kept.thread != thread;
        let is_kept = inside.kept.iter().any(is_others);
        if is_kept {
            access.asked = false;
        }
        // In a closure that holds memory nobody waits, so nobody would acknowledge a request for a
        // thread: it is one that is made ahead.
        let mut is_dropped = false;
        if !access.asked {
            let accessed = inside
                .machine
                .access(address, operation, !access.holds, effects);
            is_dropped = accessed == Accessed::Dropped;
            if accessed != Accessed::Permitted {
                access.asked = true;
                let waits = inside.machine.state(address) == RequestState::Waits;
                let counts = !access.counted && (waits || !effects.out.is_silent());
                access.counted |= counts;
                let faulted = u64::from(counts);
                match operation {
                    MemoryOperation::Write => effects.out.write_faults += faulted,
                    _ => effects.out.read_faults += faulted,
                }
                effects.out.work().faults += faulted;
            }
        }
        let state = match access.asked {
            true => inside.machine.state(address),
            false => RequestState::Over,
        };
        let waits = state == RequestState::Waits || is_kept && access.asked;
        if (waits || is_dropped) && access.holds {
            access.faulted = Faulted::Holds;
            return PartsStep::Over;
        }
        if waits {
            inside.waits.insert(thread, (address, operation));
            access.waited = true;
            return PartsStep::Waits;
        }
        inside.waits.remove(&thread);
        effects.out.work().wakes += u64::from(access.waited);
        // A thread that has got a page and lost it before its instruction was made keeps the next
        // one until it is.
        let own = inside.kept.iter().filter(|kept| kept.thread == thread);
        let keeps = access.asked && access.is_stuck && own.count() < MOST_KEPT;
        if keeps && state == RequestState::Over {
            inside.kept.push(Kept { thread, page });
        } else if access.asked {
            inside.machine.goes_on(address, effects);
        }
        access.faulted = match state {
            RequestState::Gone => Faulted::Gone,
            _ => Faulted::Again,
        };
        PartsStep::Over
    }

    /// An access cannot be made. What the thread keeps until its instruction is over it gives up.
    fn fails(&self, address: u64, writes: bool, cause: MemoryAccessFailure) -> MemoryAccessError {
        if self.lock().keeps(context::own_number()) {
            self.stepped();
        }
        // What is known goes by the protocol's addresses.
        let placed = Some(address as usize).filter(|_| self.is_placed);
        let known = placed.and_then(|place| self.arena.address_of(place));
        let known = known.unwrap_or(address);
        MemoryAccessError {
            address,
            writes,
            node: self.node,
            cause,
            allocation: self.known(known),
        }
    }
}

impl Faults for Memory {
    fn fault(
        &self,
        place: usize,
        writes: bool,
        instruction: usize,
    ) -> Result<bool, MemoryAccessError> {
        let Some(address) = self.arena.address_of(place) else {
            return Err(self.refuses(place, writes, MemoryAccessFailure::NoView));
        };
        let operation = match writes {
            true => MemoryOperation::Write,
            false => MemoryOperation::Read,
        };
        let mut access = Access::new(address, operation, instruction);
        let page = waits_for(address);
        let cause = match writes {
            true => WaitCause::ToWrite,
            false => WaitCause::Object,
        };
        let site = fault::site_of(instruction).or_else(|| borrowed::line_of(place));
        let told = waits_at(cause, site);
        let waited = self.steps((page, told), &mut |inside, effects| {
            // The whole fault is a miss.
            effects.out.waits_for = Some(told);
            self.step(&mut access, inside, effects)
        });
        let cause = match waited.map(|()| access.faulted) {
            Ok(Faulted::Again) => return Ok(self.lock().keeps(access.thread)),
            Ok(Faulted::Gone) => MemoryAccessFailure::Gone,
            Ok(Faulted::Holds) => MemoryWaitError::Holds.into(),
            Err(cause) => cause.into(),
        };
        Err(self.refuses(place, writes, cause))
    }

    fn refuses(&self, place: usize, writes: bool, cause: MemoryAccessFailure) -> MemoryAccessError {
        let address = self.arena.address_of(place);
        let address = address.filter(|_| !self.is_placed);
        self.fails(address.unwrap_or(place as u64), writes, cause)
    }

    fn stepped(&self) {
        let waited = self.steps(AT_ONCE, &mut |inside, effects| {
            inside.gives_up_kept(context::own_number(), |_| true, effects);
            PartsStep::Over
        });
        context::must(
            self.threads(),
            waited,
            "giving memory up after an access to it",
        );
    }
}

/// An access that has faulted.
struct Access {
    /// The number of the thread.
    thread: usize,
    address: u64,
    operation: MemoryOperation,
    instruction: usize,
    begun: bool,
    asked: bool,
    /// It is counted as one that waits.
    counted: bool,
    /// The thread runs a closure that holds memory.
    holds: bool,
    waited: bool,
    /// The same instruction faulted there before, and nothing else did meanwhile.
    is_stuck: bool,
    faulted: Faulted,
}

impl Access {
    fn new(address: u64, operation: MemoryOperation, instruction: usize) -> Access {
        Access {
            thread: context::own_number(),
            address,
            operation,
            instruction,
            begun: false,
            asked: false,
            counted: false,
            holds: context::holds(),
            waited: false,
            is_stuck: false,
            faulted: Faulted::Again,
        }
    }

    fn page(&self) -> u64 {
        self.address / MINIPAGE_PAGE * MINIPAGE_PAGE
    }
}
