//! Stacks of the program in shared memory (`dhole cc --shared-stacks`): a local variable whose
//! address a thread hands to another one is there on all nodes.
//!
//! Only the program's own code runs on such a stack. A call of anything else goes through
//! `dhole_on_private_stack`, which runs it on the stack that the system gave the thread: this
//! library and the C library hold locks that a fault would need. Faults of the stack itself are
//! handled on an alternate stack (`sigaltstack`).

use std::any::Any;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use crate::failure::fatal;
use crate::heap;

/// Bytes of a stack: what a main thread usually has. Only the pages that are used exist.
const BYTES: usize = 8 << 20;
/// Bytes at its end that no access reaches: an overflow ends the process.
const GUARD: usize = 16 * PAGE;
/// Bytes at its beginning that are no frame's: so many are copied as arguments of a call.
const ABOVE: usize = 4096;
const PAGE: usize = 4096;
/// Bytes of an alternate stack on which faults of shared stacks are handled, and which waits.
const ALTERNATE: usize = 1 << 20;
/// Bytes of one on which the words about a stack are written that is used up.
const FOR_WORDS: usize = 64 << 10;

std::arch::global_asm!(
    // Where the private stack of a thread is free, while it runs on a shared one; and where the
    // frame of the shared stack is that has left it.
    ".pushsection .tbss, \"awT\", @nobits",
    ".balign 8",
    ".type dhole_private_stack, @object",
    "dhole_private_stack: .zero 8",
    ".type dhole_shared_frame, @object",
    "dhole_shared_frame: .zero 8",
    ".popsection",
    // Calls what r11 names, with all arguments as they are. Shared stacks lie from 1 << 44 on and
    // below 3 << 44, where no others do: from another stack the call goes on directly.
    ".pushsection .text.dhole_stacks, \"ax\", @progbits",
    ".globl dhole_on_private_stack",
    ".type dhole_on_private_stack, @function",
    "dhole_on_private_stack:",
    ".cfi_startproc",
    "mov r10, rsp",
    "shr r10, 44",
    "dec r10",
    "cmp r10, 1",
    "ja dhole_directly",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov fs:[dhole_shared_frame@tpoff], rbp",
    "mov rsp, fs:[dhole_private_stack@tpoff]",
    // Arguments behind the sixth lie on the stack. Their number is unknown: 1 KiB is copied.
    "sub rsp, 1040",
    "mov [rsp + 1024], rax",
    "mov rax, 128",
    "1: mov r10, [rbp + rax * 8 + 8]",
    "mov [rsp + rax * 8 - 8], r10",
    "dec rax",
    "jnz 1b",
    "mov rax, [rsp + 1024]",
    "call r11",
    ".globl dhole_switched",
    "dhole_switched:",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size dhole_on_private_stack, . - dhole_on_private_stack",
    "dhole_directly:",
    ".cfi_startproc",
    "jmp r11",
    ".cfi_endproc",
    // Calls the function rsi with rdx on the shared stack that ends at rdi.
    ".globl dhole_on_shared_stack",
    ".type dhole_on_shared_stack, @function",
    "dhole_on_shared_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push fs:[dhole_private_stack@tpoff]",
    "push fs:[dhole_shared_frame@tpoff]",
    "mov fs:[dhole_private_stack@tpoff], rsp",
    "mov rsp, rdi",
    "mov rdi, rdx",
    "call rsi",
    "mov r10, [rbp - 8]",
    "mov fs:[dhole_private_stack@tpoff], r10",
    "mov r10, [rbp - 16]",
    "mov fs:[dhole_shared_frame@tpoff], r10",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    // Where the frame of the shared stack is that this call has left.
    "dhole_frame:",
    "mov rax, fs:[dhole_shared_frame@tpoff]",
    "ret",
    ".size dhole_on_shared_stack, . - dhole_on_shared_stack",
    ".popsection",
);

unsafe extern "C" {
    fn dhole_on_shared_stack(top: usize, run: extern "C" fn(*mut c_void), with: *mut c_void);
    safe fn dhole_frame() -> usize;
    /// Its address is 1 where the program was linked so.
    static __dhole_shared_stacks: u8;
}

/// Whether the program's threads have their stacks in shared memory.
pub(crate) fn is_wanted() -> bool {
    (&raw const __dhole_shared_stacks).addr() == 1
}

/// Stacks of threads that have ended.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

thread_local! {
    /// The lowest address of the shared stack that this thread uses; 0 is none.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// A stack in shared memory, until this is dropped.
struct Stack(usize);

impl Stack {
    fn new() -> Option<Stack> {
        let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.or_else(|| {
            let start = heap::pages(BYTES)?;
            let guard = std::ptr::with_exposed_provenance_mut(start);
            // SAFETY: the first pages of what was just allocated, which only this process closes.
            unsafe { libc::mprotect(guard, GUARD, libc::PROT_NONE) };
            Some(start)
        })
        .map(Stack)
    }

    fn top(&self) -> usize {
        self.0 + BYTES - ABOVE
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        FREE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.0);
    }
}

/// An alternate stack of this thread, until this is dropped.
struct Alternate(*mut c_void, usize);

impl Alternate {
    fn new(bytes: usize) -> Option<Alternate> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: at an address of the system's choice; the stack is given to this thread alone.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
            let stack = libc::stack_t {
                ss_sp: at,
                ss_flags: 0,
                ss_size: bytes,
            };
            let is_set = at != libc::MAP_FAILED
                && libc::sigaltstack(&raw const stack, std::ptr::null_mut()) == 0;
            is_set.then(|| {
                GIVEN.set(at);
                Alternate(at, bytes)
            })
        }
    }
}

impl Drop for Alternate {
    fn drop(&mut self) {
        let none = libc::stack_t {
            ss_sp: std::ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: no handler runs on it: this thread is here.
        unsafe {
            libc::sigaltstack(&raw const none, std::ptr::null_mut());
            libc::munmap(self.0, self.1);
        }
    }
}

/// What a thread runs on a shared stack, and what came of it.
struct Call<F, R> {
    run: Option<F>,
    came: Option<Result<R, Box<dyn Any + Send>>>,
}

extern "C" fn called<F: FnOnce() -> R, R>(call: *mut c_void) {
    // SAFETY: `on_shared` waits for this, and lends it nobody else.
    let call = unsafe { &mut *call.cast::<Call<F, R>>() };
    if let Some(run) = call.run.take() {
        call.came = Some(catch_unwind(AssertUnwindSafe(run)));
    }
}

/// Runs the program's code on the shared stack that ends there.
///
/// # Safety
/// The stack is this thread's, nothing that is used lies below its end, and that is a multiple of
/// 16.
unsafe fn call_on<F: FnOnce() -> R, R>(top: usize, run: F) -> R {
    let mut call = Call {
        run: Some(run),
        came: None,
    };
    // SAFETY: the caller's. The call is lent to `called`, of the same types.
    unsafe { dhole_on_shared_stack(top, called::<F, R>, (&raw mut call).cast()) };
    match call.came {
        Some(Ok(value)) => value,
        Some(Err(unwound)) => resume_unwind(unwound),
        None => unreachable!("it was called"),
    }
}

/// The end of what is free of this thread's shared stack, from which it has called this library.
fn free_end() -> Option<usize> {
    let stack = OWN.get()..OWN.get() + BYTES;
    let frame = Some(dhole_frame()).filter(|frame| stack.contains(frame));
    frame.map(|frame| frame & !15)
}

thread_local! {
    /// The alternate stack that this module has given this thread.
    static GIVEN: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
    /// The addresses of this thread's private stack, while it runs code of the program.
    static PRIVATE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// An alternate stack as the program knows it: none, where this module has given it.
pub(crate) fn without_ours(mut stack: libc::stack_t) -> libc::stack_t {
    if stack.ss_sp == GIVEN.get() && !stack.ss_sp.is_null() {
        stack.ss_sp = std::ptr::null_mut();
        stack.ss_flags = libc::SS_DISABLE;
        stack.ss_size = 0;
    }
    stack
}

/// The private stack of this thread.
fn private_stack() -> (usize, usize) {
    let mut bounds = (std::ptr::null_mut(), 0);
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: the attributes are this function's own, and are given back where they were made.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes) != 0 {
            return (0, 0);
        }
        libc::pthread_attr_getstack(attributes, &raw mut bounds.0, &raw mut bounds.1);
        libc::pthread_attr_destroy(attributes);
    }
    (bounds.0.addr(), bounds.0.addr() + bounds.1)
}

/// Runs the program's code on this thread's own stack. Where that is used up, words about it are
/// written on another one.
fn on_private<F: FnOnce() -> R, R>(run: F) -> R {
    if PRIVATE.get() != (0, 0) {
        return run();
    }
    PRIVATE.set(private_stack());
    // Without one there are no words.
    let _alternate = Alternate::new(FOR_WORDS);
    let _none = Gone;
    run()
}

/// Bytes of this thread's stack, if an access to this place means that it is used up.
pub(crate) fn used_up(place: usize) -> Option<usize> {
    /// A frame is hardly larger than this.
    const BELOW: usize = 1 << 20;
    if OWN.get() != 0 {
        return (OWN.get()..OWN.get() + GUARD)
            .contains(&place)
            .then_some(BYTES);
    }
    let (start, end) = PRIVATE.get();
    // The last page may be the system's guard.
    let is_below = (start.saturating_sub(BELOW)..start + PAGE).contains(&place);
    (start != 0 && is_below).then_some(end - start)
}

/// Runs the program's code, on a stack in shared memory where the program was linked so.
pub(crate) fn on_shared<F: FnOnce() -> R, R>(run: F) -> R {
    if !is_wanted() {
        return on_private(run);
    }
    if OWN.get() != 0 {
        return match free_end() {
            // SAFETY: this thread's own. It has left the frame there, and uses nothing below it.
            Some(top) => unsafe { call_on(top, run) },
            None => run(),
        };
    }
    let (Some(stack), Some(_alternate)) = (Stack::new(), Alternate::new(ALTERNATE)) else {
        fatal(&"a stack of 8 MiB in shared memory cannot be had");
    };
    OWN.set(stack.0);
    let _none = Gone;
    // SAFETY: the stack is this thread's until it is dropped, and its end is aligned by 16.
    unsafe { call_on(stack.top(), run) }
}

/// This thread has no shared stack any more, when this is dropped.
struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        OWN.set(0);
        PRIVATE.set((0, 0));
    }
}

/// The part of this thread's shared stack that is used, as bytes; and where it begins.
fn used() -> Option<(usize, Vec<u8>)> {
    let stack = match OWN.get() {
        0 => return None,
        start => start..start + BYTES,
    };
    let from = dhole_frame();
    if !stack.contains(&from) {
        return None;
    }
    let mut bytes = vec![0; stack.end - from];
    let place = std::ptr::with_exposed_provenance::<u8>(from);
    // SAFETY: this thread's own stack, from the frame on that has called this library.
    unsafe { std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len()) };
    Some((from, bytes))
}

/// `fork`, of which the child gets a private copy of this thread's shared stack.
pub(crate) fn fork() -> libc::pid_t {
    let used = used();
    // SAFETY: it takes nothing. The child uses of this process what follows, and what its caller
    // says.
    let child = unsafe { libc::fork() };
    if let (0, Some((from, bytes))) = (child, used) {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let at = std::ptr::with_exposed_provenance_mut(OWN.get());
        // SAFETY: the child has nothing there, for views are not inherited; it is as large.
        unsafe {
            libc::mmap(at, BYTES, protection, flags, -1, 0);
            let place = std::ptr::with_exposed_provenance_mut::<u8>(from);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
    }
    child
}
