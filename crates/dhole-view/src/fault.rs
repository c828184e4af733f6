//! The signal handlers. A fault in the views of a program's memory is handled where it happens, on
//! the thread's own stack: the handler asks for the minipage, waits, and returns, and the access is
//! made again.
//!
//! Only the program's own code touches its views. So a fault never interrupts the runtime, the
//! allocator or the standard library within a lock of their own, and the handler may use them all.
//! Every other fault goes to the handler that was there before.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use dhole_model::CallSite;
use dhole_space::exception_table;
use dhole_space::runtime_thread::SignalMask;
use dhole_space::signal::{self, SignalHandler};

use crate::access_error::{self, MemoryAccessError, MemoryAccessFailure};

/// What has views in which threads fault.
pub(crate) trait Faults: Sync {
    /// A thread has accessed a place in the views and must not. Returns when it may try again:
    /// whether its next instruction is to be a single step.
    ///
    /// # Errors
    /// [`MemoryAccessError`]: the access cannot be made.
    fn fault(
        &self,
        place: usize,
        writes: bool,
        instruction: usize,
    ) -> Result<bool, MemoryAccessError>;

    /// An access is refused before anything is done for it.
    fn refuses(&self, place: usize, writes: bool, cause: MemoryAccessFailure) -> MemoryAccessError;

    /// The instruction of this thread is over that was to be a single step.
    fn stepped(&self);
}

/// Whose views some are.
struct Target(*const dyn Faults);

thread_local! {
    /// Whose views this thread accesses in a single step.
    static STEPPING: Cell<*const Target> = const { Cell::new(std::ptr::null()) };
    /// What the thread blocks when that is over. Meanwhile no handler of the program's runs: faults
    /// of its own would end the step.
    static BLOCKED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Most nodes with memory in this process, of all runs that are on.
const MOST: usize = 4096;

/// A node's views, for the handlers.
struct Entry {
    /// Odd while the entry changes.
    version: AtomicU32,
    start: AtomicUsize,
    end: AtomicUsize,
    target: AtomicPtr<Target>,
}

static ENTRIES: [Entry; MOST] = [const {
    Entry {
        version: AtomicU32::new(0),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        target: AtomicPtr::new(std::ptr::null_mut()),
    }
}; MOST];

/// So many entries were ever used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The process whose memory it is.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Whoever changes entries.
static CHANGING: Mutex<()> = Mutex::new(());

impl Entry {
    fn set(&self, views: Range<usize>, target: *mut Target) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.start.store(views.start, Ordering::SeqCst);
        self.end.store(views.end, Ordering::SeqCst);
        self.target.store(target, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Whose views have an address. An entry that changes meanwhile is none: the views in which a
    /// thread faults are not being given up.
    fn find(&self, place: usize) -> Option<*const Target> {
        let version = self.version.load(Ordering::SeqCst);
        let views = self.start.load(Ordering::SeqCst)..self.end.load(Ordering::SeqCst);
        let target = self.target.load(Ordering::SeqCst);
        let same = version.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == version;
        (same && views.contains(&place)).then_some(target.cast_const())
    }
}

/// The views of a memory are known to the handlers until this is dropped.
pub(crate) struct Registration {
    place: usize,
    /// As it was boxed.
    target: *mut Target,
}

// SAFETY: an address, which `Drop` alone follows.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

impl Registration {
    /// # Errors
    /// Where there are too many.
    ///
    /// # Safety
    /// What has the views stays where it is until the registration is dropped.
    pub unsafe fn new(of: *const dyn Faults, views: Range<usize>) -> io::Result<Registration> {
        let _one = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: it takes nothing.
        OWNER.store(unsafe { libc::getpid() }, Ordering::SeqCst);
        let free = |entry: &Entry| entry.target.load(Ordering::SeqCst).is_null();
        let Some(place) = ENTRIES.iter().position(free) else {
            let why = format!("{MOST} nodes of this process have memory already");
            return Err(io::Error::other(why));
        };
        let target = Box::into_raw(Box::new(Target(of)));
        ENTRIES[place].set(views, target);
        USED.fetch_max(place + 1, Ordering::SeqCst);
        Ok(Registration { place, target })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _one = CHANGING.lock().unwrap_or_else(PoisonError::into_inner);
        ENTRIES[self.place].set(0..0, std::ptr::null_mut());
        // SAFETY: `new` made a box of it, which nobody else has given back. A handler follows it
        // only for a thread that is within an access to the views, which are not given up then.
        drop(unsafe { Box::from_raw(self.target) });
    }
}

/// What the process did with a signal before.
struct Handled {
    signal: c_int,
    previous: OnceLock<libc::sigaction>,
    installed: OnceLock<Result<(), i32>>,
}

static HANDLED: [Handled; 3] = [
    Handled::new(libc::SIGBUS),
    Handled::new(libc::SIGSEGV),
    Handled::new(libc::SIGTRAP),
];

impl Handled {
    const fn new(signal: c_int) -> Handled {
        Handled {
            signal,
            previous: OnceLock::new(),
            installed: OnceLock::new(),
        }
    }

    fn of(signal: c_int) -> Option<&'static Handled> {
        HANDLED.iter().find(|handled| handled.signal == signal)
    }
}

/// Has faults that raise `signal` handled from now on, and single steps. Once is enough.
///
/// # Errors
/// The system's own; and where another part of the program has taken the signal since: its handler
/// might call this one on a stack on which it cannot wait.
pub(crate) fn install(signal: c_int, stack: HandlerStack) -> io::Result<()> {
    exception_table::read();
    for (raised, handler) in [
        (signal, on_fault as SignalHandler),
        (libc::SIGTRAP, on_step),
    ] {
        let handled = Handled::of(raised).expect("a signal that is handled");
        let installed = handled.installed.get_or_init(|| {
            let replaced = replace(handled, handler, stack);
            replaced.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
        });
        installed.map_err(io::Error::from_raw_os_error)?;
        if signal::current(raised)?.sa_sigaction != handler as usize {
            let why = format!("another part of the program handles signal {raised} meanwhile");
            return Err(io::Error::other(why));
        }
    }
    Ok(())
}

/// On which stack a fault is handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum HandlerStack {
    /// On the thread's own: it may wait there as long as it must, and meanwhile other threads of
    /// its stack's kind (coroutines) fault too.
    #[default]
    Own,
    /// On its alternate one (`sigaltstack`), for its own is in the memory.
    Alternate,
}

/// Faults are handled on alternate stacks.
static ON_ALTERNATE: AtomicBool = AtomicBool::new(false);

/// Bytes that a handler needs of such a stack.
const LEAST_ALTERNATE: usize = 256 << 10;

/// Why the stack on which this handler runs is too small for it, if it is.
fn small_stack() -> Option<MemoryAccessFailure> {
    if !ON_ALTERNATE.load(Ordering::Relaxed) {
        return None;
    }
    let mut current = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the call fills in the structure, of which zeros are one, and changes nothing.
    let current = unsafe {
        libc::sigaltstack(std::ptr::null(), current.as_mut_ptr());
        current.assume_init()
    };
    let (bytes, needed) = (current.ss_size, LEAST_ALTERNATE);
    let is_on = current.ss_flags & libc::SS_ONSTACK != 0;
    (is_on && bytes < needed).then_some(MemoryAccessFailure::SmallStack { bytes, needed })
}

fn replace(handled: &Handled, handler: SignalHandler, stack: HandlerStack) -> io::Result<()> {
    let previous = signal::current(handled.signal)?;
    // Known before the handler is, which may run on any thread as soon as it is there.
    let previous = handled.previous.get_or_init(|| previous);
    ON_ALTERNATE.fetch_or(stack == HandlerStack::Alternate, Ordering::Relaxed);
    let flags = match stack {
        HandlerStack::Own => libc::SA_NODEFER,
        HandlerStack::Alternate => libc::SA_NODEFER | libc::SA_ONSTACK,
    };
    // A handler of the program's does not interrupt this one, which has locks: an access of that
    // handler to its views would wait for them for ever.
    let before = libc::sigaction {
        sa_mask: SignalMask::of_runtime().set(),
        ..*previous
    };
    // SAFETY: the handler interrupts no code but the program's own accesses to its views (see the
    // module), or passes the signal on.
    unsafe { signal::handle(handled.signal, handler, flags, &before) }
}

/// The flag of the processor that raises SIGTRAP behind the next instruction.
const TRAP_FLAG: libc::greg_t = 1 << 8;
/// The bit of a fault's error code that says that it was a write.
const WRITE: libc::greg_t = 1 << 1;

/// What the interrupted thread blocks. The system hands over one word of signals, where a set of
/// the C library has more.
///
/// # Safety
/// The kernel has handed it over.
unsafe fn mask_of(interrupted: *mut libc::ucontext_t) -> *mut u64 {
    // SAFETY: the caller's.
    unsafe { (&raw mut (*interrupted).uc_sigmask).cast() }
}

/// The first word of a set, which has all signals.
///
/// # Safety
/// The pointer is a set.
unsafe fn word_of(set: *const libc::sigset_t) -> u64 {
    // SAFETY: the caller's.
    unsafe { set.cast::<u64>().read() }
}

extern "C" fn on_fault(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let interrupted = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel hands both over, for as long as the handler runs. The address is there
    // for a fault, and then `si_code` is positive. `errno` is the thread's own.
    let (place, registers, errno) = unsafe {
        let place = ((*info).si_code > 0).then(|| (*info).si_addr().addr());
        let registers = &mut (*interrupted).uc_mcontext.gregs;
        (place, registers, libc::__errno_location())
    };
    // A child of `fork` has none of the views, and its parent's locks as they were then.
    // SAFETY: it takes nothing.
    let is_child = unsafe { libc::getpid() } != OWNER.load(Ordering::SeqCst);
    let used = if is_child {
        0
    } else {
        USED.load(Ordering::SeqCst)
    };
    let found = place.and_then(|place| {
        let entries = ENTRIES.iter().take(used);
        let target = entries.filter_map(|entry| entry.find(place)).next()?;
        Some((place, target))
    });
    let Some((place, target)) = found else {
        // SAFETY: this is such a handler.
        return unsafe { pass_on(number, info, context) };
    };
    let writes = registers[libc::REG_ERR as usize] & WRITE != 0;
    let instruction = registers[libc::REG_RIP as usize] as usize;
    // SAFETY: whoever accesses the views borrows what has them (`SharedRow::try_cells`). So the
    // registration is not dropped meanwhile, and what it names stays where it is.
    let views = unsafe { &*(*target).0 };
    // SAFETY: the thread's own.
    let before = unsafe { *errno };
    let faulted = match small_stack() {
        None => views.fault(place, writes, instruction),
        Some(cause) => Err(views.refuses(place, writes, cause)),
    };
    match faulted {
        Ok(false) => {}
        Ok(true) => {
            STEPPING.set(target);
            let all = SignalMask::of_runtime().set();
            // SAFETY: the kernel hands the mask over, as above.
            let before = unsafe { mask_of(interrupted).replace(word_of(&raw const all)) };
            // An instruction that faults again is in its step already.
            BLOCKED.set(BLOCKED.get().or(Some(before)));
            registers[libc::REG_EFL as usize] |= TRAP_FLAG;
        }
        Err(error) => match exception_table::goes_on_at(instruction) {
            Some(behind) => {
                access_error::keep(error);
                registers[libc::REG_RIP as usize] = behind as libc::greg_t;
            }
            None => end_process(&error),
        },
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// The exit code of a process whose access to memory cannot be made.
pub const CANNOT_ACCESS: c_int = 70;

/// What is told of an access that cannot be made, before the process ends.
static TOLD: OnceLock<fn(&MemoryAccessError)> = OnceLock::new();

/// Has a function told of an access that cannot be made, on the thread that makes it, before the
/// process ends with exit code 70. The function runs in a handler of a signal, which interrupts the
/// program's own access alone. Whether it is the first one that asks for this.
pub fn on_failed_access(told: fn(&MemoryAccessError)) -> bool {
    TOLD.set(told).is_ok()
}

/// What names an instruction that faults.
static NAMED: OnceLock<fn(usize) -> CallSite> = OnceLock::new();

/// Has reports name the instructions of the program that wait for pages, by a place for each. The
/// function runs in a handler of a signal, as that of [`on_failed_access`]. Whether it is the first
/// one that asks for this.
pub fn name_faults_by(names: fn(usize) -> CallSite) -> bool {
    NAMED.set(names).is_ok()
}

/// The place of an instruction that faults, for a report.
pub(crate) fn site_of(instruction: usize) -> Option<CallSite> {
    NAMED.get().map(|names| names(instruction))
}

/// There is no way back into the program from within a load.
fn end_process(error: &MemoryAccessError) -> ! {
    if let Some(told) = TOLD.get() {
        told(error);
    }
    let words = format!("error: {error}\n");
    // SAFETY: the bytes are the string's; both calls are allowed in a handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
        libc::_exit(CANNOT_ACCESS)
    }
}

/// The instruction is over behind which something is to be said.
extern "C" fn on_step(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let target = STEPPING.replace(std::ptr::null());
    if target.is_null() {
        // SAFETY: this is such a handler.
        return unsafe { pass_on(number, info, context) };
    }
    let interrupted = context.cast::<libc::ucontext_t>();
    // SAFETY: as in `on_fault`.
    let (registers, errno) = unsafe {
        let registers = &mut (*interrupted).uc_mcontext.gregs;
        (registers, libc::__errno_location())
    };
    registers[libc::REG_EFL as usize] &= !TRAP_FLAG;
    if let Some(blocked) = BLOCKED.take() {
        // SAFETY: as above.
        unsafe { mask_of(interrupted).write(blocked) };
    }
    // SAFETY: the thread's own.
    let before = unsafe { *errno };
    // SAFETY: the thread has just accessed the views, see `on_fault`.
    unsafe { &*(*target).0 }.stepped();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Does what the process would have done without us.
///
/// # Safety
/// As of [`signal::pass_on`], by a handler of this module.
unsafe fn pass_on(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = Handled::of(number).and_then(|handled| handled.previous.get());
    let previous = previous.expect("it is known before the handler is");
    // SAFETY: the caller's; `previous` is what was there before the handler (`replace`).
    unsafe { signal::pass_on(previous, number, info, context) };
}
