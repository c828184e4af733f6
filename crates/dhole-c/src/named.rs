//! Semaphores by names (`sem_open`). Names are those of the run: all nodes know them, and no other
//! program does. The list of them is in shared memory, as the program's globals are.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use dhole::memory::sync;

use crate::deferred::Inside;
use crate::failure::set_errno;
use crate::heap::{dh_free_from, dh_malloc_from};
use crate::semaphore::dh_sem_init;
use crate::site;
use crate::sync::must;

/// Most bytes of a name: as the C library, which puts four before it.
const MOST: usize = 255 - 4;

/// The first of all, in the order in which they were made. It lies where the linker's script finds
/// the program's own globals, so that it is shared.
#[unsafe(link_section = ".dhole.data.semaphores")]
static mut FIRST: *mut Named = std::ptr::null_mut();

/// A semaphore with a name.
#[repr(C)]
struct Named {
    /// Two numbers, as of one without a name, within as many bytes as C has for it.
    semaphore: [u64; 4],
    next: *mut Named,
    /// How often it is open.
    opens: u64,
    /// Whether its name is another's to use.
    is_unlinked: bool,
    name: [u8; MOST + 1],
}

/// What was refused, by its error number.
type Refused = c_int;

/// The list is locked until this is dropped.
struct Locked;

impl Locked {
    fn new() -> Locked {
        let at = (&raw const FIRST).cast();
        must(
            sync::lock(crate::sync::key(at), site::UNKNOWN),
            &"using names of semaphores",
            at,
        );
        Locked
    }

    /// The place in the list that has the first of which this is true, or its end.
    fn find(&self, is: impl Fn(&Named) -> bool) -> *mut *mut Named {
        let mut at = &raw mut FIRST;
        // SAFETY: the list is locked, and has only what `open` has put there.
        unsafe {
            while !(*at).is_null() && !is(&**at) {
                at = &raw mut (**at).next;
            }
        }
        at
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let at = (&raw const FIRST).cast();
        must(
            sync::unlock(crate::sync::key(at)),
            &"using names of semaphores",
            at,
        );
    }
}

/// A name without its slashes.
///
/// # Safety
/// The pointer is a string.
unsafe fn read<'a>(name: *const c_char) -> Result<&'a [u8], Refused> {
    // SAFETY: the caller's.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let start = name.iter().position(|it| *it != b'/');
    let name = &name[start.ok_or(libc::EINVAL)?..];
    match name.len() {
        _ if name.contains(&b'/') => Err(libc::EINVAL),
        0..=MOST => Ok(name),
        _ => Err(libc::ENAMETOOLONG),
    }
}

impl Named {
    fn is_called(&self, name: &[u8]) -> bool {
        !self.is_unlinked && self.name.starts_with(name) && self.name[name.len()] == 0
    }

    fn is_at(&self, semaphore: *const c_void) -> bool {
        self.semaphore.as_ptr().addr() == semaphore.addr()
    }
}

fn open(name: &[u8], flags: c_int, count: c_uint) -> Result<*mut c_void, Refused> {
    let list = Locked::new();
    let at = list.find(|it| it.is_called(name));
    // SAFETY: the list is locked; what is in it was made here.
    unsafe {
        if let Some(known) = (*at).as_mut() {
            if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 {
                return Err(libc::EEXIST);
            }
            known.opens += 1;
            return Ok(known.semaphore.as_mut_ptr().cast());
        }
        if flags & libc::O_CREAT == 0 {
            return Err(libc::ENOENT);
        }
        if i32::try_from(count).is_err() {
            return Err(libc::EINVAL);
        }
        let made = dh_malloc_from(size_of::<Named>(), 0).cast::<Named>();
        if made.is_null() {
            return Err(libc::ENOMEM);
        }
        made.write(Named {
            semaphore: [0; 4],
            next: std::ptr::null_mut(),
            opens: 1,
            is_unlinked: false,
            name: [0; MOST + 1],
        });
        (&raw mut (*made).name)
            .cast::<u8>()
            .copy_from_nonoverlapping(name.as_ptr(), name.len());
        let semaphore = (&raw mut (*made).semaphore).cast();
        dh_sem_init(semaphore, 1, count);
        at.write(made);
        Ok(semaphore)
    }
}

/// Takes one out of the list that has no name and is open nowhere.
///
/// # Safety
/// The place has one, and the list is locked.
unsafe fn forget(at: *mut *mut Named) {
    // SAFETY: the caller's.
    unsafe {
        let gone = *at;
        if (*gone).is_unlinked && (*gone).opens == 0 {
            at.write((*gone).next);
            dh_free_from(gone.cast(), 0);
        }
    }
}

/// Finds one, changes it, and forgets it if that was the last of it.
fn change(is: impl Fn(&Named) -> bool, change: impl Fn(&mut Named)) -> Option<()> {
    let list = Locked::new();
    let at = list.find(is);
    // SAFETY: the list is locked; what is in it was made by `open`.
    unsafe {
        change((*at).as_mut()?);
        forget(at);
    }
    Some(())
}

/// `sem_open`. Mode and value are there where the flags have `O_CREAT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_open(
    name: *const c_char,
    flags: c_int,
    _mode: libc::mode_t,
    count: c_uint,
) -> *mut c_void {
    let _inside = Inside::enter();
    // SAFETY: the caller's, here and below as of the function in the C library.
    let opened = unsafe { read(name) }.and_then(|name| open(name, flags, count));
    opened.unwrap_or_else(|errno| {
        set_errno(errno);
        std::ptr::null_mut()
    })
}

/// 0, or -1 with an error number where there is none.
fn code(done: Option<()>, errno: c_int) -> c_int {
    match done {
        Some(()) => 0,
        None => {
            set_errno(errno);
            -1
        }
    }
}

/// `sem_close`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_sem_close(semaphore: *mut c_void) -> c_int {
    let _inside = Inside::enter();
    let closed = change(|it| it.is_at(semaphore) && it.opens > 0, |it| it.opens -= 1);
    code(closed, libc::EINVAL)
}

/// `sem_unlink`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_sem_unlink(name: *const c_char) -> c_int {
    let _inside = Inside::enter();
    // SAFETY: as above.
    match unsafe { read(name) } {
        Ok(name) => code(
            change(|it| it.is_called(name), |it| it.is_unlinked = true),
            libc::ENOENT,
        ),
        // No name is so long, or has a slash.
        Err(libc::ENAMETOOLONG) => code(None, libc::ENAMETOOLONG),
        Err(_) => code(None, libc::ENOENT),
    }
}
