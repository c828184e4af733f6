//! Words for an access of the program to an address at which nothing is, before SIGSEGV ends the
//! process as ever. The handler interrupts the program anywhere, so it allocates nothing.

use std::ffi::{c_int, c_void};
use std::fmt::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use dhole::memory::threads;

use crate::stacks;

/// Stacks and what the system maps for a process lie from here on, on x86-64.
const MAPPED: usize = 0x7000_0000_0000;

/// The process of the run; its children have none of its memory.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// What the process did with the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Words of a length that is known, in the order in which they were written. Others are cut off.
struct Words {
    bytes: [u8; 512],
    length: usize,
}

impl Write for Words {
    fn write_str(&mut self, words: &str) -> fmt::Result {
        let left = &mut self.bytes[self.length..];
        let taken = words.len().min(left.len());
        left[..taken].copy_from_slice(&words.as_bytes()[..taken]);
        self.length += taken;
        Ok(())
    }
}

/// Has accesses to wrong addresses told from here on, unless something else handles them.
pub(crate) fn begin() {
    // SAFETY: zeros are such a structure, which the first call fills in. The handler does what it
    // may anywhere: it writes, and has the signal do what it did before.
    unsafe {
        PROCESS.store(libc::getpid(), Ordering::SeqCst);
        let mut current: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut current);
        if current.sa_sigaction == libc::SIG_DFL && BEFORE.set(current).is_ok() {
            let mut own = current;
            own.sa_sigaction = on_stray as *const () as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGSEGV, &raw const own, std::ptr::null_mut());
        }
    }
}

/// The action as the program knows it: as before, where it is this handler.
pub(crate) fn without_ours(action: libc::sigaction) -> libc::sigaction {
    let is_ours = action.sa_sigaction == on_stray as *const () as usize;
    let before = BEFORE.get().copied();
    before.filter(|_| is_ours).unwrap_or(action)
}

extern "C" fn on_stray(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands it over. The address is there for a fault of a page.
    let (code, place) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    if code > 0 {
        let mut words = Words {
            bytes: [0; 512],
            length: 0,
        };
        // SAFETY: it takes nothing.
        let is_child = unsafe { libc::getpid() } != PROCESS.load(Ordering::SeqCst);
        let has_place = code != libc::SI_KERNEL;
        let said = tell(&mut words, is_child, has_place.then_some(place));
        said.expect("words that have no room are cut off");
        // SAFETY: the bytes are the words'.
        unsafe {
            libc::write(
                libc::STDERR_FILENO,
                words.bytes.as_ptr().cast(),
                words.length,
            )
        };
    }
    let before = BEFORE.get().expect("it is known before the handler is");
    // SAFETY: both calls are allowed in a handler. The access is made again, and ends the process;
    // what was sent is sent again.
    unsafe {
        libc::sigaction(signal, before, std::ptr::null_mut());
        if code <= 0 {
            libc::raise(signal);
        }
    }
}

fn tell(words: &mut Words, is_child: bool, place: Option<usize>) -> fmt::Result {
    write!(words, "error: ")?;
    if let Ok(node) = threads::node() {
        write!(words, "node {}: ", node.index())?;
    }
    let Some(place) = place else {
        return writeln!(words, "an access to what can be no address");
    };
    if let Some(bytes) = stacks::used_up(place) {
        return writeln!(
            words,
            "an access to {place:#x}, below the end of this thread's stack: its {} KiB are used \
             up, by a recursion without an end, or by large local variables",
            bytes >> 10
        );
    }
    write!(
        words,
        "an access to {place:#x}, where this process has nothing"
    )?;
    match (is_child, place >= MAPPED && !stacks::is_wanted()) {
        (true, _) => writeln!(words, ": a child of fork has none of the shared memory"),
        (false, true) => writeln!(
            words,
            ": if it is a local variable of a thread on another node, link the program with \
             `dhole cc --shared-stacks`"
        ),
        (false, false) => writeln!(words),
    }
}
