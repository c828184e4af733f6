//! Calls of the system that read or write shared memory. A system call does not fault: it returns
//! `EFAULT` where it would access memory that the node has not. So what they take or give goes
//! through a private buffer where it is shared.

use std::ffi::{c_char, c_int, c_long, c_void};

use libc::FILE;

use crate::deferred::Inside;
use crate::failure::set_errno;
use crate::heap::is_shared;

/// A private copy of bytes, or room for as many.
struct Bounced(Vec<u8>);

impl Bounced {
    /// Room for so many bytes; `None`, with `errno`, where there is none.
    fn room(bytes: usize) -> Option<Bounced> {
        let _inside = Inside::enter();
        let mut room = Vec::new();
        if room.try_reserve_exact(bytes).is_err() {
            set_errno(libc::ENOMEM);
            return None;
        }
        room.resize(bytes, 0);
        Some(Bounced(room))
    }

    /// # Safety
    /// So many bytes may be read there.
    unsafe fn copy(from: *const c_void, bytes: usize) -> Option<Bounced> {
        let mut room = Bounced::room(bytes)?;
        // SAFETY: the caller's; the room is this function's own.
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), room.0.as_mut_ptr(), bytes) };
        Some(room)
    }

    fn pointer(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// # Safety
    /// So many bytes may be written there.
    unsafe fn give(&self, to: *mut c_void, bytes: usize) {
        let bytes = bytes.min(self.0.len());
        // SAFETY: the caller's; there are so many here.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), to.cast(), bytes) };
    }
}

impl Drop for Bounced {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        drop(std::mem::take(&mut self.0));
    }
}

/// Calls that write so many bytes to a buffer as they return.
macro_rules! gives {
    ($($name:ident = $real:path, ($($before:ident: $b:ty),*), ($($after:ident: $a:ty),*);)*) => {$(
        #[doc = concat!("`", stringify!($real), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $b,)* at: *mut c_void, bytes: usize, $($after: $a),*
        ) -> isize {
            if !is_shared(at, bytes) {
                // SAFETY: the caller's, as of the function in the C library.
                return unsafe { $real($($before,)* at, bytes, $($after),*) };
            }
            let Some(mut room) = Bounced::room(bytes) else { return -1 };
            // SAFETY: the room has so many bytes; the rest is the caller's.
            let given = unsafe { $real($($before,)* room.pointer(), bytes, $($after),*) };
            if given > 0 {
                // SAFETY: the caller's: `bytes` bytes may be written there.
                unsafe { room.give(at, given as usize) };
            }
            given
        }
    )*};
}

/// Calls that read so many bytes of a buffer.
macro_rules! takes {
    ($($name:ident = $real:path, ($($before:ident: $b:ty),*), ($($after:ident: $a:ty),*);)*) => {$(
        #[doc = concat!("`", stringify!($real), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $b,)* at: *const c_void, bytes: usize, $($after: $a),*
        ) -> isize {
            if !is_shared(at, bytes) {
                // SAFETY: the caller's, as of the function in the C library.
                return unsafe { $real($($before,)* at, bytes, $($after),*) };
            }
            // SAFETY: the caller's: `bytes` bytes may be read there.
            let Some(mut copy) = (unsafe { Bounced::copy(at, bytes) }) else { return -1 };
            // SAFETY: the copy has so many bytes; the rest is the caller's.
            unsafe { $real($($before,)* copy.pointer(), bytes, $($after),*) }
        }
    )*};
}

gives! {
    dh_read = libc::read, (file: c_int), ();
    dh_pread = libc::pread, (file: c_int), (from: libc::off_t);
    dh_pread64 = libc::pread64, (file: c_int), (from: libc::off64_t);
    dh_recv = libc::recv, (file: c_int), (flags: c_int);
    dh_recvfrom = libc::recvfrom, (file: c_int),
        (flags: c_int, address: *mut libc::sockaddr, length: *mut libc::socklen_t);
}

takes! {
    dh_write = libc::write, (file: c_int), ();
    dh_pwrite = libc::pwrite, (file: c_int), (from: libc::off_t);
    dh_pwrite64 = libc::pwrite64, (file: c_int), (from: libc::off64_t);
    dh_send = libc::send, (file: c_int), (flags: c_int);
    dh_sendto = libc::sendto, (file: c_int),
        (flags: c_int, address: *const libc::sockaddr, length: libc::socklen_t);
}

/// The parts of a list, where all of it is private: null otherwise.
///
/// # Safety
/// So many parts may be read there.
unsafe fn parts(list: *const libc::iovec, count: c_int) -> Option<Vec<libc::iovec>> {
    if !(0..=1024).contains(&count) {
        set_errno(libc::EINVAL);
        return None;
    }
    // SAFETY: the caller's.
    Some(
        (0..count as usize)
            .map(|at| unsafe { list.add(at).read() })
            .collect(),
    )
}

/// `readv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_readv(file: c_int, list: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: the caller's, as of `readv`.
    let Some(parts) = (unsafe { parts(list, count) }) else {
        return -1;
    };
    let all = parts.iter().map(|part| part.iov_len).sum();
    let Some(mut room) = Bounced::room(all) else {
        return -1;
    };
    // SAFETY: the room has so many bytes.
    let given = unsafe { libc::read(file, room.pointer(), all) };
    let (mut left, mut from) = (given.max(0) as usize, 0);
    for part in parts {
        let bytes = part.iov_len.min(left);
        // SAFETY: the caller's; the room has so many bytes from there on.
        unsafe {
            std::ptr::copy_nonoverlapping(room.0.as_ptr().add(from), part.iov_base.cast(), bytes);
        }
        (left, from) = (left - bytes, from + bytes);
    }
    given
}

/// `writev`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_writev(file: c_int, list: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: the caller's, as of `writev`.
    let Some(parts) = (unsafe { parts(list, count) }) else {
        return -1;
    };
    let mut all = Vec::new();
    for part in parts {
        let from = all.len();
        if all.try_reserve(part.iov_len).is_err() {
            set_errno(libc::ENOMEM);
            return -1;
        }
        all.resize(from + part.iov_len, 0);
        // SAFETY: the caller's; there is room for so many bytes.
        unsafe {
            let to = all.as_mut_ptr().add(from);
            std::ptr::copy_nonoverlapping(part.iov_base.cast::<u8>(), to, part.iov_len);
        }
    }
    // SAFETY: the bytes are this function's own.
    unsafe { libc::write(file, all.as_ptr().cast(), all.len()) }
}

/// `fread`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_fread(
    at: *mut c_void,
    size: usize,
    count: usize,
    file: *mut FILE,
) -> usize {
    let all = size.saturating_mul(count);
    if !is_shared(at, all) {
        // SAFETY: the caller's, as of `fread`.
        return unsafe { libc::fread(at, size, count, file) };
    }
    let Some(mut room) = Bounced::room(all) else {
        return 0;
    };
    // SAFETY: the room has so many bytes, of which `read` are given.
    unsafe {
        let read = libc::fread(room.pointer(), 1, all, file);
        room.give(at, read);
        read / size.max(1)
    }
}

/// `fwrite`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_fwrite(
    at: *const c_void,
    size: usize,
    count: usize,
    file: *mut FILE,
) -> usize {
    let all = size.saturating_mul(count);
    if !is_shared(at, all) {
        // SAFETY: the caller's, as of `fwrite`.
        return unsafe { libc::fwrite(at, size, count, file) };
    }
    // SAFETY: the caller's: so many bytes may be read there.
    match unsafe { Bounced::copy(at, all) } {
        // SAFETY: the copy has so many bytes.
        Some(mut copy) => unsafe { libc::fwrite(copy.pointer(), size, count, file) },
        None => 0,
    }
}

/// A private copy of a string, where it is shared.
pub(crate) struct Text(Option<Bounced>, *const c_char);

impl Text {
    /// # Safety
    /// Null, or a string.
    pub unsafe fn of(text: *const c_char) -> Text {
        if text.is_null() || !is_shared(text.cast(), 1) {
            return Text(None, text);
        }
        // SAFETY: the caller's: a string ends by a zero.
        let copy = unsafe { Bounced::copy(text.cast(), libc::strlen(text) + 1) };
        Text(copy, text)
    }

    pub fn pointer(&self) -> *const c_char {
        self.0
            .as_ref()
            .map_or(self.1, |copy| copy.0.as_ptr().cast())
    }
}

/// `fputs`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_fputs(text: *const c_char, file: *mut FILE) -> c_int {
    // SAFETY: the caller's, as of `fputs`.
    unsafe { libc::fputs(Text::of(text).pointer(), file) }
}

/// `puts`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_puts(text: *const c_char) -> c_int {
    // SAFETY: the caller's, as of `puts`.
    unsafe { libc::puts(Text::of(text).pointer()) }
}

/// `setvbuf`: a file has no shared buffer, but one of its own as large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_setvbuf(
    file: *mut FILE,
    buffer: *mut c_char,
    mode: c_int,
    bytes: usize,
) -> c_int {
    let private = match is_shared(buffer.cast(), bytes) {
        true => std::ptr::null_mut(),
        false => buffer,
    };
    // SAFETY: the caller's, as of `setvbuf`.
    unsafe { libc::setvbuf(file, private, mode, bytes) }
}

/// `setbuf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_setbuf(file: *mut FILE, buffer: *mut c_char) {
    let mode = match buffer.is_null() {
        true => libc::_IONBF,
        false => libc::_IOFBF,
    };
    // SAFETY: the caller's, as of `setbuf`.
    unsafe { dh_setvbuf(file, buffer, mode, libc::BUFSIZ as usize) };
}

/// Calls that write one value of a type as their last argument.
macro_rules! values {
    ($($name:ident = $real:path, ($($before:ident: $b:ty),*), $type:ty, $result:ty;)*) => {$(
        #[doc = concat!("`", stringify!($real), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($before: $b,)* into: *mut $type) -> $result {
            if into.is_null() || !is_shared(into.cast(), size_of::<$type>()) {
                // SAFETY: the caller's, as of the function in the C library.
                return unsafe { $real($($before,)* into) };
            }
            let mut own = std::mem::MaybeUninit::<$type>::zeroed();
            // SAFETY: the value is this function's own, where every pattern of bytes is one; the
            // caller has room for one.
            unsafe {
                let done = $real($($before,)* own.as_mut_ptr());
                into.write(own.assume_init());
                done
            }
        }
    )*};
}

values! {
    dh_clock_gettime = libc::clock_gettime, (clock: libc::clockid_t), libc::timespec, c_int;
    dh_getrusage = libc::getrusage, (whose: c_int), libc::rusage, c_int;
    dh_getrlimit = getrlimit, (which: c_int), libc::rlimit, c_int;
    dh_times = libc::times, (), libc::tms, c_long;
    dh_uname = libc::uname, (), libc::utsname, c_int;
    dh_fstat = libc::fstat, (file: c_int), libc::stat, c_int;
    dh_fstat64 = libc::fstat64, (file: c_int), libc::stat64, c_int;
    dh_getrlimit64 = getrlimit64, (which: c_int), libc::rlimit64, c_int;
    dh_pipe = pipe, (), [c_int; 2], c_int;
    dh_wait = libc::wait, (), c_int, libc::pid_t;
}

unsafe extern "C" {
    fn getrlimit(which: c_int, into: *mut libc::rlimit) -> c_int;
    fn getrlimit64(which: c_int, into: *mut libc::rlimit64) -> c_int;
    fn pipe(into: *mut [c_int; 2]) -> c_int;
}

/// `waitpid`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_waitpid(
    child: libc::pid_t,
    into: *mut c_int,
    how: c_int,
) -> libc::pid_t {
    let mut status = 0;
    // SAFETY: the number is this function's own; the caller has room for one, or none is wanted.
    unsafe {
        let ended = libc::waitpid(child, &raw mut status, how);
        if !into.is_null() && ended > 0 {
            into.write(status);
        }
        ended
    }
}

/// `poll`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_poll(
    files: *mut libc::pollfd,
    count: libc::nfds_t,
    ms: c_int,
) -> c_int {
    let bytes = (count as usize).saturating_mul(size_of::<libc::pollfd>());
    if files.is_null() || !is_shared(files.cast(), bytes) {
        // SAFETY: the caller's, as of `poll`.
        return unsafe { libc::poll(files, count, ms) };
    }
    // SAFETY: the caller's; the copy has as many bytes, aligned for `u64`.
    unsafe {
        let mut copy: Vec<libc::pollfd> = Vec::with_capacity(count as usize);
        std::ptr::copy_nonoverlapping(files, copy.as_mut_ptr(), count as usize);
        let ready = libc::poll(copy.as_mut_ptr(), count, ms);
        std::ptr::copy_nonoverlapping(copy.as_ptr(), files, count as usize);
        ready
    }
}
