//! How threads are scheduled, and with which attributes they begin. The system of the thread's node
//! says what it may.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::deferred::Inside;
use crate::heap;
use crate::running::{self, Found};
use crate::thread::Entry;

/// What a thread begins with that has attributes: a block of shared memory, which the thread frees.
#[repr(C)]
pub(crate) struct Beginning {
    pub entry: Entry,
    pub argument: *mut c_void,
    pub is_detached: bool,
    /// How it is scheduled, where that is not as its node is.
    pub scheduling: Option<Scheduling>,
}

/// A policy and a priority.
pub(crate) type Scheduling = (c_int, c_int);

/// What attributes say: whether the thread is detached, and how it is scheduled if not as its
/// starter.
pub(crate) type Attributes = (bool, Option<Scheduling>);

unsafe extern "C" {
    fn pthread_attr_getdetachstate(of: *const libc::pthread_attr_t, into: *mut c_int) -> c_int;
}

/// What attributes say of a thread that begins; `None` where they say nothing.
///
/// # Errors
/// The error number of a policy or priority that the system refuses.
///
/// # Safety
/// The pointer is null, or attributes.
pub(crate) unsafe fn read(
    attributes: *const libc::pthread_attr_t,
) -> Result<Option<Attributes>, c_int> {
    if attributes.is_null() {
        return Ok(None);
    }
    let (mut detached, mut inherits, mut policy) = (0, 0, 0);
    let mut priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the caller's; the copy is this function's own, for the system reads it.
    unsafe {
        let own = attributes.read();
        let own = &raw const own;
        pthread_attr_getdetachstate(own, &raw mut detached);
        libc::pthread_attr_getinheritsched(own, &raw mut inherits);
        libc::pthread_attr_getschedpolicy(own, &raw mut policy);
        libc::pthread_attr_getschedparam(own, &raw mut priority);
    }
    let is_detached = detached == libc::PTHREAD_CREATE_DETACHED;
    let is_own = inherits == libc::PTHREAD_EXPLICIT_SCHED;
    let scheduling = (policy, priority.sched_priority);
    if is_own && scheduling != (libc::SCHED_OTHER, 0) {
        let refused = try_out(scheduling);
        if refused != 0 {
            return Err(refused);
        }
    }
    let scheduling = is_own.then_some(scheduling);
    Ok((is_detached || is_own).then_some((is_detached, scheduling)))
}

/// What the system says of a thread that is to begin so.
fn try_out((policy, priority): Scheduling) -> c_int {
    extern "C" fn ends(_: *mut c_void) -> *mut c_void {
        std::ptr::null_mut()
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::zeroed();
    let mut thread = 0;
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: all of it is this function's own.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        libc::pthread_attr_init(attributes);
        libc::pthread_attr_setinheritsched(attributes, libc::PTHREAD_EXPLICIT_SCHED);
        libc::pthread_attr_setschedpolicy(attributes, policy);
        libc::pthread_attr_setschedparam(attributes, &raw const param);
        let none = std::ptr::null_mut();
        let refused = libc::pthread_create(&raw mut thread, attributes, ends, none);
        if refused == 0 {
            libc::pthread_join(thread, none.cast());
        }
        libc::pthread_attr_destroy(attributes);
        refused
    }
}

/// Puts what a thread begins with into shared memory, where its node finds it.
pub(crate) fn share(beginning: Beginning) -> Option<*mut Beginning> {
    let block = heap::dh_malloc_from(size_of::<Beginning>(), 0).cast::<Beginning>();
    if block.is_null() {
        return None;
    }
    // SAFETY: the block has as many bytes, and is nobody else's.
    unsafe { block.write(beginning) };
    Some(block)
}

/// Takes it there.
///
/// # Safety
/// `share` has made the block, and this is the only one that takes it.
pub(crate) unsafe fn take(block: *mut Beginning) -> Beginning {
    // SAFETY: the caller's.
    unsafe {
        let beginning = block.read();
        heap::dh_free_from(block.cast(), 0);
        beginning
    }
}

/// This thread is scheduled so. The node that has started it has asked its own system.
pub(crate) fn set_own((policy, priority): Scheduling) {
    let param = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the structure is this function's own.
    unsafe { libc::pthread_setschedparam(libc::pthread_self(), policy, &raw const param) };
}

/// The error number, policy and priority of a thread of this node, 16 bits each.
pub(crate) fn of(thread: u64) -> u64 {
    let (mut policy, mut param) = (0, libc::sched_param { sched_priority: 0 });
    let code = match running::find(thread) {
        // SAFETY: the thread has not ended; the structures are this function's own.
        Found::Runs(_all, running) => unsafe {
            libc::pthread_getschedparam(running.system, &raw mut policy, &raw mut param)
        },
        Found::Ended => 0,
        Found::None => libc::ESRCH,
    };
    let numbers = [code, policy, param.sched_priority];
    let places = numbers.iter().rev();
    places.fold(0, |all, number| all << 16 | u64::from(*number as u16))
}

/// Schedules a thread of this node.
pub(crate) fn set(thread: u64, policy: u8, priority: u8) -> c_int {
    let param = libc::sched_param {
        sched_priority: priority.into(),
    };
    match running::find(thread) {
        // SAFETY: as above.
        Found::Runs(_all, running) => unsafe {
            libc::pthread_setschedparam(running.system, policy.into(), &raw const param)
        },
        Found::Ended => 0,
        Found::None => libc::ESRCH,
    }
}

/// Gives a thread of this node another priority.
pub(crate) fn set_priority(thread: u64, priority: u8) -> c_int {
    let said = of(thread);
    match said as u16 {
        0 => set(thread, (said >> 16) as u8, priority),
        code => code.into(),
    }
}

/// `pthread_getcpuclockid`, of a thread of this node: another's clock cannot be read here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_pthread_getcpuclockid(
    thread: u64,
    clock: *mut libc::clockid_t,
) -> c_int {
    let _inside = Inside::enter();
    if dhole::memory::threads::node() != Ok(dhole::memory::threads::ThreadId(thread).node()) {
        return libc::ENOENT;
    }
    match running::find(thread) {
        // SAFETY: the thread has not ended; the pointer is the caller's.
        Found::Runs(_all, running) => unsafe { libc::pthread_getcpuclockid(running.system, clock) },
        Found::Ended | Found::None => libc::ESRCH,
    }
}
