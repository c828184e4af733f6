//! What becomes of a touch that faults: the handler of SIGSEGV only moves the instruction pointer
//! to the place beside the touch, and ordinary code goes on there, on the thread's own stack.
//! Every other fault is passed to the handler that was there before.

use std::ffi::{c_int, c_void};
use std::io;
use std::sync::OnceLock;

use crate::signal;

/// The address of a touch, and of where to go on when it faults.
#[derive(Clone, Copy)]
struct Touch {
    at: usize,
    missed: usize,
}

/// All touches of the program, by address.
static TOUCHES: OnceLock<Box<[Touch]>> = OnceLock::new();

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
    TOUCHES.get_or_init(touches);
    let previous = signal::current(libc::SIGSEGV)?;
    // Known before the handler is, which may run on any thread as soon as it is there.
    let previous = PREVIOUS.get_or_init(|| previous);
    // What the previous handler counts on when it is called. It may need a stack of its own,
    // to tell of an overflow of the thread's.
    let flags = libc::SA_ONSTACK | previous.sa_flags & libc::SA_NODEFER;
    // SAFETY: the handler allocates and locks nothing, and calls what was the handler before: it
    // looks up what is settled (`TOUCHES`, `PREVIOUS`, `GUARDED`) and changes a register.
    unsafe { signal::handle(libc::SIGSEGV, on_fault, flags, previous) }
}

/// The entries of the link section, sorted.
fn touches() -> Box<[Touch]> {
    unsafe extern "C" {
        #[link_name = "__start_dhole_touch"]
        static START: [i32; 2];
        #[link_name = "__stop_dhole_touch"]
        static STOP: [i32; 2];
    }
    // SAFETY: there is no instruction in it. It only adds an entry of zeros to the section, which
    // so exists in every program.
    unsafe {
        std::arch::asm!(
            ".pushsection dhole_touch,\"aR\",@progbits",
            ".balign 4",
            ".long 0",
            ".long 0",
            ".popsection",
            options(nomem, nostack, preserves_flags)
        );
    }
    let (start, stop) = (&raw const START, &raw const STOP);
    let count = (stop.addr() - start.addr()) / size_of::<[i32; 2]>();
    // SAFETY: the linker puts the symbols at both ends of the section, which has such entries
    // alone and is never written.
    let entries = unsafe { std::slice::from_raw_parts(start, count) };
    let absolute = |offset: &i32| {
        let place = std::ptr::from_ref(offset).addr();
        place.wrapping_add_signed(*offset as isize)
    };
    let mut touches: Box<[Touch]> = entries
        .iter()
        .filter(|[at, _]| *at != 0)
        .map(|[at, missed]| Touch {
            at: absolute(at),
            missed: absolute(missed),
        })
        .collect();
    touches.sort_unstable_by_key(|touch| touch.at);
    touches
}

/// Where to go on after a fault of the instruction at `at`, if that is a touch.
fn missed(at: usize) -> Option<usize> {
    let touches = TOUCHES.get()?;
    let found = touches.binary_search_by_key(&at, |touch| touch.at).ok()?;
    Some(touches[found].missed)
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
        && let Some(missed) = missed(*ip as usize)
    {
        *ip = missed as i64;
        return;
    }
    let previous = PREVIOUS.get().expect("it is known before the handler is");
    // SAFETY: as above; `previous` is what was there before this handler (`replace`).
    unsafe { signal::pass_on(previous, number, info, context) };
}
