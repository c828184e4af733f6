//! The `main` of a program that `dhole cc` has linked: the run, and the program's own `main` within
//! it on node 0.

use std::ffi::{CStr, c_char, c_int};

use dhole::memory::{
    MemorySettings, ProgramMemory, RawMemory, name_faults_by, name_places_by, on_failed_access,
};
use dhole::{Config, RunError, Worker};
use dhole_space::runtime_thread::SignalMask;

use crate::failure::{RUN_HAS_FAILED, cannot_access};
use crate::heap::{BASES, VIEWS};
use crate::{deferred, ending, exit, globals, heap, signals, site, stacks, stray, threads};

/// The arguments of `main`, as the system hands them over.
#[derive(Clone, Copy)]
struct Arguments {
    count: c_int,
    values: *const *const c_char,
}

// SAFETY: the strings stay as they are while the process runs.
unsafe impl Sync for Arguments {}

impl Arguments {
    /// Copies the arguments into shared memory, so that a thread on another node can read them.
    fn share(self) -> Option<*mut *mut c_char> {
        let count = self.count as usize;
        let shared = heap::dh_calloc(count + 1, size_of::<*mut c_char>()).cast::<*mut c_char>();
        if shared.is_null() {
            return None;
        }
        for at in 0..count {
            // SAFETY: the system hands over so many strings; the block has room for as many.
            unsafe {
                let copy = heap::dh_strdup(*self.values.add(at));
                if copy.is_null() {
                    return None;
                }
                shared.add(at).write(copy);
            }
        }
        Some(shared)
    }
}

unsafe extern "C-unwind" {
    /// The program's own, which `dhole cc` has renamed.
    fn dh_main(count: c_int, values: *mut *mut c_char, environment: *mut *mut c_char) -> c_int;
}

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// Begins the run, and returns the exit code.
fn run(arguments: Arguments, main: &(dyn Fn(*mut *mut c_char) -> c_int + Sync)) -> c_int {
    // An address that another node has mapped must not lie in what dhole maps here.
    dhole_space::space::keep_apart();
    let settings = MemorySettings {
        views: VIEWS,
        bytes: MemorySettings::MOST_BYTES,
    };
    // SAFETY: the globals are whole pages of the program's own variables, by the linker's script.
    // Its threads start when the run does.
    let mut memory = unsafe { ProgramMemory::new(settings, BASES.to_vec(), globals::all()) };
    if stacks::is_wanted() {
        memory = memory.with_alternate_stacks();
    }
    on_failed_access(|error| cannot_access(error));
    name_faults_by(|instruction| site::of(instruction + 1));
    name_places_by(site::in_words);
    // What the program blocks when it ends stays blocked: the rest is no code of its own.
    let signals = SignalMask::current();
    threads::without_program().apply();
    let run = Config::nodes(1).memory(memory).run(|w| {
        let raw = RawMemory::of(w)?;
        // SAFETY: threads of the program run within `run_node` alone.
        unsafe { heap::use_memory(raw, w.node().index()) };
        signals::begin();
        deferred::begin();
        run_node(w, (arguments, signals), main)
    });
    heap::over();
    match run {
        Ok(run) => run.value,
        // The others have ended before this one.
        Err(_) if ending::code().is_some() => ending::code().unwrap_or_default(),
        Err(error) => {
            eprintln!("error: {}", site::in_words(&error.to_string()));
            match error {
                RunError::Lost { .. } | RunError::Panicked { .. } | RunError::Failed { .. } => {
                    RUN_HAS_FAILED
                }
                // It has not begun.
                _ => 1,
            }
        }
    }
}

fn run_node(
    w: &mut Worker<'_>,
    (arguments, signals): (Arguments, SignalMask),
    main: &(dyn Fn(*mut *mut c_char) -> c_int + Sync),
) -> Result<c_int, dhole::Error> {
    if w.node().index() != 0 {
        threads::serve(w)?;
        return Ok(0);
    }
    let code = threads::run(w, || {
        let Some(values) = arguments.share() else {
            // SAFETY: the words are a string of this thread.
            let why = unsafe { CStr::from_ptr(crate::failure::dh_error()) };
            eprintln!("error: sharing the arguments: {}", why.to_string_lossy());
            return 1;
        };
        signals.apply();
        let code = exit::run_main(|| stacks::on_shared(|| main(values)));
        SignalMask::of_runtime().apply();
        code
    })?;
    Ok(code)
}

/// The process's own.
#[unsafe(no_mangle)]
pub extern "C" fn main(count: c_int, values: *const *const c_char) -> c_int {
    // SAFETY: nothing else runs yet. As in every Rust program, a node that is gone is an error.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    stray::begin();
    let arguments = Arguments { count, values };
    run(arguments, &|values| {
        // SAFETY: the program's `main`, with as many arguments as there are. It is compiled with
        // tables for unwinding, by which `dh_exit` leaves it.
        unsafe { dh_main(count, values, environ) }
    })
}
