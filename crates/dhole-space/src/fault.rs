//! What becomes of a touch that faults: the handler of SIGSEGV only moves the instruction pointer
//! to the place beside the touch, and ordinary code goes on there, on the thread's own stack.
//! Every other fault is passed to the handler that was there before.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::OnceLock;

use crate::{exception_table, signal};

/// What the process did with SIGSEGV before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Which addresses touches may fault at.
static GUARDED: OnceLock<fn(usize) -> bool> = OnceLock::new();

/// Has faults of touches handled from now on, for all threads, at the addresses that are `guarded`.
/// That is asked in a signal handler, and may neither allocate nor lock. Once is enough.
pub(crate) fn install(guarded: fn(usize) -> bool) -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        replace(guarded).map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
    });
    installed.map_err(io::Error::from_raw_os_error)
}

fn replace(guarded: fn(usize) -> bool) -> io::Result<()> {
    GUARDED.get_or_init(|| guarded);
    exception_table::read();
    let previous = signal::current(libc::SIGSEGV)?;
    // Known before the handler is, which may run on any thread as soon as it is there.
    let previous = PREVIOUS.get_or_init(|| previous);
    // What the previous handler counts on when it is called. It may need a stack of its own,
    // to tell of an overflow of the thread's.
    let flags = libc::SA_ONSTACK | previous.sa_flags & libc::SA_NODEFER;
    // SAFETY: the handler allocates and locks nothing, and calls what was the handler before: it
    // looks up what is settled (the exception table, `PREVIOUS`, `GUARDED`) and changes a register.
    unsafe { signal::handle(libc::SIGSEGV, on_fault, flags, previous) }
}

/// The handler. It allocates nothing, locks nothing and calls nothing but what [`install`] was
/// given and the handler before.
extern "C" fn on_fault(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let interrupted = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel hands both over, for as long as the handler runs. The address is there
    // for a fault, and then `si_code` is positive.
    let (ip, address) = unsafe {
        let address = ((*info).si_code > 0).then(|| (*info).si_addr().addr());
        let registers = &mut (*interrupted).uc_mcontext.gregs;
        (&mut registers[libc::REG_RIP as usize], address)
    };
    let guarded = GUARDED.get();
    if let (Some(guarded), Some(address)) = (guarded, address)
        && guarded(address)
        && let Some(missed) = exception_table::goes_on_at(*ip as usize)
    {
        *ip = missed as i64;
        return;
    }
    let previous = PREVIOUS.get().expect("it is known before the handler is");
    // SAFETY: as above; `previous` is what was there before this handler (`replace`).
    unsafe { signal::pass_on(previous, number, info, context) };
}
