//! A node's part of the memory: the protocol's machine, how its effects are carried out, and the
//! threads that fault.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::NodeId;
use dhole_node::{Annex, AnnexLink, AnnexMaker, AnnexOutbox, AnnexStep, AnnexWaitError};
use dhole_protocol::ProtocolError;
use dhole_protocol::memory::{
    Accessed, MINIPAGE_PAGE, MemoryCommand, MemoryEffects, MemoryMessage, MemoryOperation,
    Millipage, MinipageRefusal, MinipageRun, Permission, RequestState,
};

use crate::arena::Arena;
use crate::catcher::{CatcherKind, Protection};
use crate::fault::{self, Faults, Registration};
use crate::settings::MemorySettings;

/// The exit code of a process whose access to memory cannot be made.
const CANNOT_ACCESS: i32 = 70;

/// One instruction accesses no more pages than this.
const MOST_KEPT: usize = 4;

/// A node's memory, as its run has it.
pub(crate) struct NodeMemory {
    // Before the memory, which it names.
    _registration: Registration,
    memory: Box<Memory>,
}

/// A node's memory.
pub(crate) struct Memory {
    node: NodeId,
    pub arena: Arena,
    inside: Mutex<Inside>,
}

struct Inside {
    machine: Millipage,
    /// The instruction that faulted last, and the last two pages at which it did.
    last: (usize, [u64; 2]),
    /// Pages that the thread has got and not acknowledged: it does when its instruction is over.
    kept: Vec<u64>,
    /// What a thread waits for, for who wonders.
    waits: Option<(u64, MemoryOperation)>,
}

impl Inside {
    /// Whether an instruction has faulted at a page before, and no other one did meanwhile. One
    /// that needs two pages may fault at both in turn.
    fn faults_again(&mut self, instruction: usize, page: u64) -> bool {
        let (last, pages) = &mut self.last;
        if *last != instruction {
            self.last = (instruction, [page, u64::MAX]);
            return false;
        }
        let again = pages.contains(&page);
        if pages[0] != page {
            *pages = [page, pages[0]];
        }
        again
    }
}

thread_local! {
    /// The bodies of nodes that this thread runs: a memory, and how to wait there.
    static BODIES: RefCell<Vec<Body>> = const { RefCell::new(Vec::new()) };
}

/// A body of a node that this thread runs.
#[derive(Clone, Copy)]
struct Body {
    memory: *const Memory,
    link: *const dyn AnnexLink,
}

/// Takes a body out of the list of its thread, by unwinding too.
struct Leaves(Body);

impl Drop for Leaves {
    fn drop(&mut self) {
        BODIES.with_borrow_mut(|bodies| {
            let is_it = |body: &Body| std::ptr::addr_eq(body.link, self.0.link);
            if let Some(place) = bodies.iter().rposition(is_it) {
                bodies.remove(place);
            }
        });
    }
}

/// Carries the effects of the machine out.
struct Effects<'a, 'o> {
    arena: &'a Arena,
    payload: &'a [u8],
    out: &'a mut AnnexOutbox<'o>,
    wakes: bool,
    /// What the system refused; after that nothing is carried out.
    failed: Option<ProtocolError>,
}

impl MemoryEffects for Effects<'_, '_> {
    fn does(&mut self, command: MemoryCommand) {
        if self.failed.is_some() {
            return;
        }
        match command {
            MemoryCommand::Send { to, message } => self.out.send(to, message),
            MemoryCommand::SendBytes { to, message } => {
                let gather = |into: &mut Vec<u8>| self.arena.gather(message.minipage, into);
                self.out.send_bytes(to, message, gather);
            }
            MemoryCommand::Install(minipage) => self.arena.scatter(minipage, self.payload),
            MemoryCommand::Permit {
                minipage,
                permission,
            } => {
                let protection = match permission {
                    Permission::Nothing => Protection::Closed,
                    Permission::Read => Protection::ReadOnly,
                    Permission::Write => Protection::Open,
                };
                self.out.work.protections += 1;
                if let Err(cause) = self.arena.protect(minipage, protection) {
                    let (at, cause) = (minipage.at, cause.to_string());
                    self.failed = Some(ProtocolError::MinipageProtection { at, cause });
                }
            }
            MemoryCommand::Wake { .. } => self.wakes = true,
        }
    }
}

/// How an access that faulted went.
enum Faulted {
    /// It is made again.
    Again,
    /// Nothing is allocated there.
    Gone,
    /// The system refuses what is needed.
    Refused(ProtocolError),
}

impl NodeMemory {
    pub fn new(
        node: NodeId,
        nodes: usize,
        here: usize,
        settings: MemorySettings,
    ) -> io::Result<NodeMemory> {
        let kind = CatcherKind::choose()?;
        fault::install(kind.signal())?;
        let bytes = settings.bytes_of(here);
        let inside = Inside {
            machine: Millipage::new(node, nodes, bytes, settings.views as u64),
            last: (0, [u64::MAX; 2]),
            kept: Vec::with_capacity(MOST_KEPT),
            waits: None,
        };
        let memory = Box::new(Memory {
            node,
            arena: Arena::new(bytes, settings.views, kind)?,
            inside: Mutex::new(inside),
        });
        let views = memory.arena.program_views();
        // SAFETY: the box keeps the memory where it is, and is dropped after the registration.
        let registration = unsafe { Registration::new(&raw const *memory, views)? };
        Ok(NodeMemory {
            _registration: registration,
            memory,
        })
    }

    /// The memory of an annex, if it is one.
    pub fn of(annex: &dyn Annex) -> Option<&Memory> {
        let annex: &dyn Any = annex;
        let node = annex.downcast_ref::<NodeMemory>()?;
        Some(&node.memory)
    }
}

impl AnnexMaker for MemorySettings {
    fn make(&self, node: NodeId, nodes: usize, here: usize) -> io::Result<Box<dyn Annex>> {
        let MemorySettings { views, bytes } = *self;
        let has_views = (1..=MemorySettings::MOST_VIEWS).contains(&views);
        let has_page_each = has_views && self.bytes_of(here) / MINIPAGE_PAGE >= nodes as u64;
        if !has_page_each || bytes > MemorySettings::MOST_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{bytes} bytes in {views} views for {nodes} nodes, where there may be 1 to {} \
                     views, and a page for each node to {} bytes",
                    MemorySettings::MOST_VIEWS,
                    MemorySettings::MOST_BYTES
                ),
            ));
        }
        let memory = NodeMemory::new(node, nodes, here, *self)?;
        Ok(Box::new(memory))
    }
}

impl Annex for NodeMemory {
    fn deliver(
        &self,
        from: NodeId,
        message: MemoryMessage,
        payload: &[u8],
        out: &mut AnnexOutbox<'_>,
    ) -> Result<bool, ProtocolError> {
        let memory = &self.memory;
        let mut inside = memory.lock();
        let mut effects = Effects {
            arena: &memory.arena,
            payload,
            out,
            wakes: false,
            failed: None,
        };
        let machine = &mut inside.machine;
        machine.deliver(from, message, payload.len(), &mut effects)?;
        effects.failed.map_or(Ok(effects.wakes), Err)
    }

    fn around(&self, link: &dyn AnnexLink, body: &mut dyn FnMut()) {
        // SAFETY: only the lifetime changes. The pointer is in the list until `_leaves` is dropped,
        // and so no longer than `link` is borrowed.
        let link: &'static dyn AnnexLink = unsafe { std::mem::transmute(link) };
        let memory: *const Memory = &*self.memory;
        let of = Body { memory, link };
        BODIES.with_borrow_mut(|bodies| bodies.push(of));
        let _leaves = Leaves(of);
        body();
    }

    fn describe(&self) -> String {
        // Not waited for: whoever asks wonders why nothing happens.
        let Ok(inside) = self.memory.inside.try_lock() else {
            return String::new();
        };
        let mut text = String::new();
        if let Some((address, operation)) = inside.waits {
            let does = match operation {
                MemoryOperation::Read => "reads",
                _ => "writes",
            };
            let _infallible = write!(text, "\n{does} memory at {address:#x}, and waits for it");
        }
        text
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allocates minipages that this node manages.
    pub fn allocate(
        &self,
        count: u64,
        bytes: u64,
        align: u64,
    ) -> Result<MinipageRun, MinipageRefusal> {
        self.lock().machine.allocate(count, bytes, align)
    }

    /// Most minipages of this node on one page, and the bytes that it has allocated.
    pub fn allocated(&self) -> (u64, u64) {
        let inside = self.lock();
        let machine = &inside.machine;
        (machine.views_used(), machine.allocated_bytes())
    }

    /// Takes a step of the machine for a thread that does not wait for it.
    ///
    /// # Errors
    /// [`AnnexWaitError`]; and what the system refuses.
    pub fn acts(
        &self,
        mut act: impl FnMut(&mut Millipage, &mut dyn FnMut(MemoryCommand)),
    ) -> Result<(), MemoryWaitError> {
        let mut failed = None;
        let waited = self.waits(&mut |out| {
            let mut effects = self.effects(out);
            act(&mut self.lock().machine, &mut |command| {
                effects.does(command)
            });
            failed = effects.failed.take();
            AnnexStep::Over
        });
        waited?;
        failed.map_or(Ok(()), |cause| Err(MemoryWaitError::Refused(cause)))
    }

    /// Frees the minipage at an address, for all nodes; whether there was one.
    ///
    /// # Errors
    /// As [`acts`](Memory::acts).
    pub fn free(&self, address: u64) -> Result<bool, MemoryWaitError> {
        let (mut asked, mut is_own, mut freed, mut failed) = (false, false, true, None);
        let waited = self.waits(&mut |out| {
            let mut inside = self.lock();
            let machine = &mut inside.machine;
            let mut effects = self.effects(out);
            loop {
                if asked {
                    let state = machine.state(address);
                    if state == RequestState::Waits {
                        return AnnexStep::Waits;
                    }
                    machine.goes_on(address, &mut effects);
                    freed = state != RequestState::Gone;
                    if is_own || !freed || effects.failed.is_some() {
                        failed = effects.failed.take();
                        return AnnexStep::Over;
                    }
                }
                // What was asked for before on the same page comes first.
                let accessed = machine.access(address, MemoryOperation::Free, true, &mut effects);
                (asked, is_own) = (true, accessed == Accessed::Asked);
            }
        });
        waited?;
        failed.map_or(Ok(freed), |cause| Err(MemoryWaitError::Refused(cause)))
    }

    fn effects<'a, 'o>(&'a self, out: &'a mut AnnexOutbox<'o>) -> Effects<'a, 'o> {
        Effects {
            arena: &self.arena,
            payload: &[],
            out,
            wakes: false,
            failed: None,
        }
    }

    /// Waits by the link of the body that this thread runs.
    fn waits(
        &self,
        step: &mut dyn FnMut(&mut AnnexOutbox<'_>) -> AnnexStep,
    ) -> Result<(), MemoryWaitError> {
        let bodies = BODIES.try_with(|bodies| {
            let bodies = bodies.try_borrow().ok()?;
            let mut own = bodies.iter().rev();
            own.find(|body| std::ptr::eq(body.memory, self)).copied()
        });
        let Some(body) = bodies.ok().flatten() else {
            return Err(MemoryWaitError::NoBody);
        };
        // SAFETY: a body of the node that this thread runs is in the list while it runs, and `link`
        // is borrowed that long (`around`). Where one thread runs several bodies (coroutines), one
        // goes on at a time: no other one ends while this waits.
        let link = unsafe { &*body.link };
        link.wait(step).map_err(MemoryWaitError::Wait)
    }

    /// A step of an access.
    fn step(&self, access: &mut Access, out: &mut AnnexOutbox<'_>) -> AnnexStep {
        let mut inside = self.lock();
        let inside = &mut *inside;
        let mut effects = self.effects(out);
        if !access.begun {
            access.begun = true;
            access.is_stuck = inside.faults_again(access.instruction, access.page());
            // What lies before may stay while the thread waits, for whoever has what lies behind
            // and needs what lies before gives it up: so one of them goes on.
            let page = access.page();
            let machine = &mut inside.machine;
            inside.kept.retain(|kept| {
                let stays = *kept < page;
                if !stays {
                    machine.goes_on(*kept, &mut effects);
                }
                stays
            });
        }
        if !access.asked {
            let Access {
                address, operation, ..
            } = *access;
            let accessed = inside
                .machine
                .access(address, operation, true, &mut effects);
            if accessed != Accessed::Permitted {
                access.asked = true;
                let waits = inside.machine.state(address) == RequestState::Waits;
                let faulted = u64::from(waits || !effects.out.is_silent());
                match operation {
                    MemoryOperation::Write => effects.out.write_faults += faulted,
                    _ => effects.out.read_faults += faulted,
                }
                effects.out.work.faults += faulted;
            }
        }
        let state = match access.asked {
            true => inside.machine.state(access.address),
            false => RequestState::Over,
        };
        if state == RequestState::Waits && effects.failed.is_none() {
            inside.waits = Some((access.address, access.operation));
            return AnnexStep::Waits;
        }
        inside.waits = None;
        // A thread that has got a page and lost it before its instruction was made keeps the next
        // one until it is.
        let keeps = access.asked && access.is_stuck && inside.kept.len() < MOST_KEPT;
        if keeps && state == RequestState::Over {
            inside.kept.push(access.page());
        } else if access.asked {
            inside.machine.goes_on(access.address, &mut effects);
        }
        access.faulted = match (effects.failed.take(), state) {
            (Some(cause), _) => Faulted::Refused(cause),
            (None, RequestState::Gone) => Faulted::Gone,
            (None, _) => Faulted::Again,
        };
        AnnexStep::Over
    }

    /// An access cannot be made, and there is no way back into the program.
    fn gives_up(&self, place: usize, writes: bool, why: &dyn std::fmt::Display) -> ! {
        let doing = if writes { "writing" } else { "reading" };
        let address = self.arena.address_of(place).unwrap_or_default();
        let words = format!(
            "error: {doing} memory at {address:#x} on {}: {why}\n",
            self.node
        );
        // SAFETY: the bytes are the string's; both calls are allowed in a handler.
        unsafe {
            libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
            libc::_exit(CANNOT_ACCESS)
        }
    }
}

impl Faults for Memory {
    fn fault(&self, place: usize, writes: bool, instruction: usize) -> bool {
        let Some(address) = self.arena.address_of(place) else {
            self.gives_up(place, writes, &"the address is in no view");
        };
        let operation = match writes {
            true => MemoryOperation::Write,
            false => MemoryOperation::Read,
        };
        let mut access = Access::new(address, operation, instruction);
        let waited = self.waits(&mut |out| self.step(&mut access, out));
        let faulted = waited.map(|()| access.faulted);
        match faulted {
            Ok(Faulted::Again) => {}
            Ok(Faulted::Gone) => self.gives_up(place, writes, &"nothing is allocated there"),
            Ok(Faulted::Refused(cause)) => self.gives_up(place, writes, &cause),
            Err(cause) => self.gives_up(place, writes, &cause),
        }
        !self.lock().kept.is_empty()
    }

    fn stepped(&self) {
        let waited = self.waits(&mut |out| {
            let inside = &mut *self.lock();
            let mut effects = self.effects(out);
            for page in inside.kept.drain(..) {
                inside.machine.goes_on(page, &mut effects);
            }
            AnnexStep::Over
        });
        // Where the run has ended nobody waits for it.
        drop(waited);
    }
}

/// An access that has faulted.
struct Access {
    address: u64,
    operation: MemoryOperation,
    instruction: usize,
    begun: bool,
    asked: bool,
    /// The same instruction faulted there before, and nothing else did meanwhile.
    is_stuck: bool,
    faulted: Faulted,
}

impl Access {
    fn new(address: u64, operation: MemoryOperation, instruction: usize) -> Access {
        Access {
            address,
            operation,
            instruction,
            begun: false,
            asked: false,
            is_stuck: false,
            faulted: Faulted::Again,
        }
    }

    fn page(&self) -> u64 {
        self.address / MINIPAGE_PAGE * MINIPAGE_PAGE
    }
}

/// Why a thread cannot wait for memory.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MemoryWaitError {
    /// As the engine says.
    #[error(transparent)]
    Wait(#[from] AnnexWaitError),
    /// The thread is none of the node's.
    #[error("only the thread that runs the program of a node may touch its memory")]
    NoBody,
    /// The system refuses what is needed.
    #[error(transparent)]
    Refused(ProtocolError),
}
