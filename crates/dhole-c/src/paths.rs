//! Calls of the system that take strings, as paths. Those in shared memory are copied first.

use std::ffi::{c_char, c_int};

use libc::{DIR, FILE};

use crate::bounce::Text;
use crate::heap::is_shared;

/// Calls whose first argument is a string.
macro_rules! of_path {
    ($($name:ident = $real:path, ($($after:ident: $a:ty),*), $result:ty;)*) => {$(
        #[doc = concat!("`", stringify!($real), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, $($after: $a),*) -> $result {
            // SAFETY: the caller's, as of the function in the C library.
            unsafe { $real(Text::of(path).pointer(), $($after),*) }
        }
    )*};
}

/// Calls whose first two arguments are strings.
macro_rules! of_two_strings {
    ($($name:ident = $real:path, ($($after:ident: $a:ty),*), $result:ty;)*) => {$(
        #[doc = concat!("`", stringify!($real), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            one: *const c_char, two: *const c_char, $($after: $a),*
        ) -> $result {
            // SAFETY: the caller's, as of the function in the C library.
            unsafe { $real(Text::of(one).pointer(), Text::of(two).pointer(), $($after),*) }
        }
    )*};
}

of_path! {
    // `mode` counts where the flags create a file; it is passed as any argument is on x86-64.
    dh_open = libc::open, (flags: c_int, mode: libc::mode_t), c_int;
    dh_open64 = libc::open64, (flags: c_int, mode: libc::mode_t), c_int;
    dh_creat = libc::creat, (mode: libc::mode_t), c_int;
    dh_creat64 = libc::creat64, (mode: libc::mode_t), c_int;
    dh_access = libc::access, (mode: c_int), c_int;
    dh_unlink = libc::unlink, (), c_int;
    dh_remove = libc::remove, (), c_int;
    dh_rmdir = libc::rmdir, (), c_int;
    dh_mkdir = libc::mkdir, (mode: libc::mode_t), c_int;
    dh_chdir = libc::chdir, (), c_int;
    dh_truncate = libc::truncate, (length: libc::off_t), c_int;
    dh_truncate64 = libc::truncate64, (length: libc::off64_t), c_int;
    dh_opendir = libc::opendir, (), *mut DIR;
    dh_system = libc::system, (), c_int;
}

of_two_strings! {
    dh_fopen = libc::fopen, (), *mut FILE;
    dh_fopen64 = libc::fopen64, (), *mut FILE;
    dh_freopen = libc::freopen, (file: *mut FILE), *mut FILE;
    dh_freopen64 = libc::freopen64, (file: *mut FILE), *mut FILE;
    dh_popen = libc::popen, (), *mut FILE;
    dh_rename = libc::rename, (), c_int;
}

type Stat = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;

/// # Safety
/// As of `stat`.
unsafe fn stat(real: Stat, path: *const c_char, into: *mut libc::stat) -> c_int {
    let mut own = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the caller's; the value is this function's own, where zeros are one.
    unsafe {
        let done = real(Text::of(path).pointer(), own.as_mut_ptr());
        if done == 0 {
            into.write(own.assume_init());
        }
        done
    }
}

/// `stat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_stat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's.
    unsafe { stat(libc::stat, path, into) }
}

/// `lstat`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_lstat(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's.
    unsafe { stat(libc::lstat, path, into) }
}

/// `stat64`, which is `stat` on x86-64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_stat64(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's.
    unsafe { stat(libc::stat, path, into) }
}

/// `lstat64`, which is `lstat` on x86-64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_lstat64(path: *const c_char, into: *mut libc::stat) -> c_int {
    // SAFETY: the caller's.
    unsafe { stat(libc::lstat, path, into) }
}

/// `getcwd`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_getcwd(into: *mut c_char, bytes: usize) -> *mut c_char {
    if into.is_null() || !is_shared(into.cast(), bytes) {
        // SAFETY: the caller's, as of `getcwd`.
        return unsafe { libc::getcwd(into, bytes) };
    }
    let mut own = vec![0_u8; bytes];
    // SAFETY: the bytes are this function's own; the caller has as many.
    unsafe {
        if libc::getcwd(own.as_mut_ptr().cast(), bytes).is_null() {
            return std::ptr::null_mut();
        }
        std::ptr::copy_nonoverlapping(own.as_ptr(), into.cast(), bytes);
    }
    into
}

/// `gethostname`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_gethostname(into: *mut c_char, bytes: usize) -> c_int {
    let mut own = vec![0_u8; bytes];
    // SAFETY: the bytes are this function's own; the caller has as many.
    unsafe {
        let done = libc::gethostname(own.as_mut_ptr().cast(), bytes);
        std::ptr::copy_nonoverlapping(own.as_ptr(), into.cast::<u8>(), bytes);
        done
    }
}
