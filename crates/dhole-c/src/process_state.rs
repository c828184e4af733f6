//! What a program sets in its process, and other nodes take over when they begin a thread: the
//! environment, the locale, the mask of new files, handlers of signals, and what `fork` calls.
//!
//! It lies in shared memory. A thread that starts another one first writes there what its node has
//! set since; a thread that begins takes over what its node lacks. Both do it under a lock of
//! dhole's, and only where something has changed.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole::memory::sync;

use crate::bounce::Text;
use crate::deferred::Inside;
use crate::failure::refused;
use crate::{heap, signals, site};

/// Signals, and a place for none.
const SIGNALS: usize = 65;
/// What the C library calls around `fork`, most.
const FORKS: usize = 64;

/// Signals by which processes are ended from without. What is done with them each node says for
/// itself: the thread that serves a node takes them, which runs none of the program.
const OWN: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// What a process does with a signal.
struct Handled {
    /// Which change has set it, or 0.
    version: AtomicU64,
    handler: AtomicUsize,
    flags: AtomicU32,
    mask: AtomicU64,
}

/// What `fork` calls: before it, and behind it in the parent and in the child.
struct Forks([AtomicUsize; 3]);

/// What programs set, on all nodes. A page of the program's globals.
#[repr(C, align(4096))]
struct Shared {
    /// Counts changes.
    version: AtomicU64,
    environment: AtomicPtr<*mut c_char>,
    environment_version: AtomicU64,
    locale: AtomicPtr<c_char>,
    locale_version: AtomicU64,
    umask: AtomicU32,
    umask_version: AtomicU64,
    handled: [Handled; SIGNALS],
    forks: [Forks; FORKS],
    forks_used: AtomicUsize,
}

// The linker's script gathers sections of this name among the program's globals.
#[unsafe(link_section = ".dhole.data.dhole_process_state")]
static SHARED: Shared = Shared {
    version: AtomicU64::new(0),
    environment: AtomicPtr::new(std::ptr::null_mut()),
    environment_version: AtomicU64::new(0),
    locale: AtomicPtr::new(std::ptr::null_mut()),
    locale_version: AtomicU64::new(0),
    umask: AtomicU32::new(0),
    umask_version: AtomicU64::new(0),
    handled: [const {
        Handled {
            version: AtomicU64::new(0),
            handler: AtomicUsize::new(0),
            flags: AtomicU32::new(0),
            mask: AtomicU64::new(0),
        }
    }; SIGNALS],
    forks: [const { Forks([const { AtomicUsize::new(0) }; 3]) }; FORKS],
    forks_used: AtomicUsize::new(0),
};

/// The variables of the environment that the program has set, or taken away.
static NAMES: Mutex<BTreeSet<CString>> = Mutex::new(BTreeSet::new());

/// What this node has set and not written there.
static SETS_ENVIRONMENT: AtomicBool = AtomicBool::new(false);
static SETS_LOCALE: AtomicBool = AtomicBool::new(false);
/// The mask of new files, above a bit that says that there is one.
static SETS_UMASK: AtomicU32 = AtomicU32::new(0);
/// The change up to which this node has taken over what others have set.
static TAKEN: Mutex<u64> = Mutex::new(0);

const IS_SET: u32 = 1 << 31;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
    fn clearenv() -> c_int;
    fn putenv(text: *mut c_char) -> c_int;
    fn setenv(name: *const c_char, value: *const c_char, replaces: c_int) -> c_int;
    fn unsetenv(name: *const c_char) -> c_int;
    fn tzset();
}

fn names() -> MutexGuard<'static, BTreeSet<CString>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken() -> MutexGuard<'static, u64> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs this where no other thread of any node changes what is shared at an address.
pub(crate) fn exclusively(shared: usize, run: impl FnOnce()) {
    let key = shared as u64;
    let is_locked = sync::lock_from(key, site::UNKNOWN).is_ok();
    run();
    if is_locked {
        // Where it cannot be given up the run has ended.
        let _ended = sync::unlock(key);
    }
}

fn has_news() -> bool {
    SETS_ENVIRONMENT.load(Ordering::SeqCst)
        || SETS_LOCALE.load(Ordering::SeqCst)
        || SETS_UMASK.load(Ordering::SeqCst) != 0
        || signals::has_set()
}

/// A thread of this node is about to start another one.
pub(crate) fn publish() {
    if !heap::is_on() || !has_news() {
        return;
    }
    let mut taken = taken();
    exclusively((&raw const SHARED).addr(), || {
        let version = SHARED.version.load(Ordering::SeqCst) + 1;
        if SETS_ENVIRONMENT.swap(false, Ordering::SeqCst) {
            SHARED.environment.store(environment(), Ordering::SeqCst);
            SHARED.environment_version.store(version, Ordering::SeqCst);
        }
        if SETS_LOCALE.swap(false, Ordering::SeqCst) {
            // SAFETY: it returns a string of the C library's, which is copied at once.
            let locale = unsafe {
                let name = libc::setlocale(libc::LC_ALL, std::ptr::null());
                heap::dh_strdup(name)
            };
            SHARED.locale.store(locale, Ordering::SeqCst);
            SHARED.locale_version.store(version, Ordering::SeqCst);
        }
        let umask = SETS_UMASK.swap(0, Ordering::SeqCst);
        if umask != 0 {
            SHARED.umask.store(umask & !IS_SET, Ordering::SeqCst);
            SHARED.umask_version.store(version, Ordering::SeqCst);
        }
        for signal in signals::take_set().filter(|signal| !OWN.contains(signal)) {
            publish_handler(signal, version);
        }
        SHARED.version.store(version, Ordering::SeqCst);
        // What others have set before is still to be taken over, if they have.
        if *taken + 1 == version {
            *taken = version;
        }
    });
}

/// What the program has set of the environment, in shared memory: `NAME=value`, or `NAME` of what
/// it has taken away; and null behind them.
fn environment() -> *mut *mut c_char {
    let all: Vec<*mut c_char> = names()
        .iter()
        .map(|name| {
            // SAFETY: strings, of which the C library's is copied before the program changes it, as
            // C asks of programs.
            unsafe {
                let value = libc::getenv(name.as_ptr());
                let mut text = name.clone().into_bytes();
                if !value.is_null() {
                    text.push(b'=');
                    text.extend_from_slice(CStr::from_ptr(value).to_bytes());
                }
                let text = CString::new(text).unwrap_or_default();
                heap::dh_strdup(text.as_ptr())
            }
        })
        .collect();
    let shared = heap::dh_calloc(all.len() + 1, size_of::<*mut c_char>());
    let shared = shared.cast::<*mut c_char>();
    if !shared.is_null() {
        // SAFETY: the block has room for so many.
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), shared, all.len()) };
    }
    shared
}

fn publish_handler(signal: c_int, version: u64) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are such a structure, which the call fills in; so is its mask, of whose words
    // the first has all signals.
    let (action, mask) = unsafe {
        signals::set_action(signal, std::ptr::null(), action.as_mut_ptr());
        let action = action.assume_init();
        (action, (&raw const action.sa_mask).cast::<u64>().read())
    };
    let handled = &SHARED.handled[signal as usize];
    handled.handler.store(action.sa_sigaction, Ordering::SeqCst);
    handled
        .flags
        .store(action.sa_flags as u32, Ordering::SeqCst);
    handled.mask.store(mask, Ordering::SeqCst);
    handled.version.store(version, Ordering::SeqCst);
}

/// A thread of this node begins.
pub(crate) fn take_over() {
    let mut taken = taken();
    if !heap::is_on() || SHARED.version.load(Ordering::SeqCst) == *taken {
        return;
    }
    let before = *taken;
    exclusively((&raw const SHARED).addr(), || {
        let is_new = |version: &AtomicU64| version.load(Ordering::SeqCst) > before;
        if is_new(&SHARED.environment_version) {
            take_environment(SHARED.environment.load(Ordering::SeqCst));
        }
        if is_new(&SHARED.locale_version) {
            // SAFETY: a string, which was copied there.
            unsafe {
                let locale = Text::of(SHARED.locale.load(Ordering::SeqCst));
                libc::setlocale(libc::LC_ALL, locale.pointer());
            }
        }
        if is_new(&SHARED.umask_version) {
            // SAFETY: it takes a number.
            unsafe { libc::umask(SHARED.umask.load(Ordering::SeqCst)) };
        }
        for (signal, handled) in SHARED.handled.iter().enumerate() {
            if is_new(&handled.version) {
                take_handler(signal as c_int, handled);
            }
        }
        *taken = SHARED.version.load(Ordering::SeqCst);
    });
}

fn take_environment(shared: *mut *mut c_char) {
    if shared.is_null() {
        return;
    }
    // SAFETY: a list of strings in shared memory, with null behind them (`environment`).
    unsafe {
        let mut next = shared;
        while !(*next).is_null() {
            let own = CStr::from_ptr(*next).to_owned();
            let mut parts = own.to_bytes().splitn(2, |byte| *byte == b'=');
            let mut part = || {
                parts
                    .next()
                    .map(|part| CString::new(part).unwrap_or_default())
            };
            let (name, value) = (part().unwrap_or_default(), part());
            match value {
                Some(value) => setenv(name.as_ptr(), value.as_ptr(), 1),
                None => unsetenv(name.as_ptr()),
            };
            names().insert(name);
            next = next.add(1);
        }
        tzset();
    }
}

fn take_handler(signal: c_int, handled: &Handled) {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are such a structure, of whose mask the first word has all signals. A function
    // of the program lies at the same address in all processes.
    unsafe {
        let to = action.as_mut_ptr();
        (*to).sa_sigaction = handled.handler.load(Ordering::SeqCst);
        (*to).sa_flags = handled.flags.load(Ordering::SeqCst) as c_int;
        let mask = (&raw mut (*to).sa_mask).cast::<u64>();
        mask.write(handled.mask.load(Ordering::SeqCst));
        // Where this node's faults come by the signal it is refused, as it is to the program.
        signals::set_action(signal, to, std::ptr::null_mut());
    }
}

/// The program sets a variable of the environment, or takes it away.
///
/// # Safety
/// A string, or null.
unsafe fn sets_variable(name: *const c_char) {
    if !name.is_null() {
        // SAFETY: the caller's.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        let name = name.split(|byte| *byte == b'=').next().unwrap_or_default();
        names().insert(CString::new(name).unwrap_or_default());
        SETS_ENVIRONMENT.store(true, Ordering::SeqCst);
    }
}

/// `setenv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_setenv(
    name: *const c_char,
    value: *const c_char,
    replaces: c_int,
) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: the caller's, here and below as of the function in the C library.
    unsafe {
        sets_variable(name);
        setenv(
            Text::of(name).pointer(),
            Text::of(value).pointer(),
            replaces,
        )
    }
}

/// `unsetenv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_unsetenv(name: *const c_char) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe {
        sets_variable(name);
        unsetenv(Text::of(name).pointer())
    }
}

/// `putenv`. The string is the environment's from here on, as the program may change it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_putenv(text: *mut c_char) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    unsafe {
        sets_variable(text);
        putenv(text)
    }
}

/// `clearenv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_clearenv() -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above. The list is the C library's, and ends with null.
    unsafe {
        let mut next = environ;
        while !next.is_null() && !(*next).is_null() {
            sets_variable(*next);
            next = next.add(1);
        }
        clearenv()
    }
}

/// `setlocale`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_setlocale(which: c_int, name: *const c_char) -> *mut c_char {
    let _inside = Inside::enter();
    if !name.is_null() {
        SETS_LOCALE.store(true, Ordering::SeqCst);
    }
    // SAFETY: as above.
    unsafe { libc::setlocale(which, Text::of(name).pointer()) }
}

/// `umask`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_umask(mask: libc::mode_t) -> libc::mode_t {
    SETS_UMASK.store(mask & 0o777 | IS_SET, Ordering::SeqCst);
    // SAFETY: it takes a number.
    unsafe { libc::umask(mask) }
}

type OnFork = extern "C" fn();

/// What `fork` calls, in the order in which the program has said it.
pub(crate) struct CalledByFork(Vec<[Option<OnFork>; 3]>);

impl CalledByFork {
    /// As the program has said it until now, on all nodes.
    pub(crate) fn now() -> CalledByFork {
        if !heap::is_on() {
            return CalledByFork(Vec::new());
        }
        let used = SHARED.forks_used.load(Ordering::SeqCst).min(FORKS);
        let function = |place: &AtomicUsize| {
            let place = std::ptr::with_exposed_provenance::<c_void>(place.load(Ordering::SeqCst));
            // SAFETY: null, or a function of the program's, which takes nothing
            // (`dh_pthread_atfork`) and lies at the same address in all processes.
            unsafe { std::mem::transmute::<*const c_void, Option<OnFork>>(place) }
        };
        let all = SHARED.forks[..used].iter();
        CalledByFork(
            all.map(|Forks(three)| three.each_ref().map(function))
                .collect(),
        )
    }

    /// Before `fork`: the last first.
    pub(crate) fn prepare(&self) {
        self.0
            .iter()
            .rev()
            .filter_map(|it| it[0])
            .for_each(|it| it());
    }

    /// Behind it, in the parent.
    pub(crate) fn in_parent(&self) {
        self.0.iter().filter_map(|it| it[1]).for_each(|it| it());
    }

    /// Behind it, in the child.
    pub(crate) fn in_child(&self) {
        self.0.iter().filter_map(|it| it[2]).for_each(|it| it());
    }
}

/// `pthread_atfork`: for `fork` on all nodes.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pthread_atfork(
    prepare: Option<OnFork>,
    parent: Option<OnFork>,
    child: Option<OnFork>,
) -> c_int {
    let _inside = Inside::enter();
    let mut done = libc::ENOMEM;
    exclusively((&raw const SHARED).addr(), || {
        let used = SHARED.forks_used.load(Ordering::SeqCst);
        let Some(Forks(three)) = SHARED.forks.get(used) else {
            refused(&format!("pthread_atfork: more than {FORKS}"), libc::ENOMEM);
            return;
        };
        for (place, function) in three.iter().zip([prepare, parent, child]) {
            let at = function.map_or(0, |it| (it as *const ()).expose_provenance());
            place.store(at, Ordering::SeqCst);
        }
        SHARED.forks_used.store(used + 1, Ordering::SeqCst);
        done = 0;
    });
    done
}
