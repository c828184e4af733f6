//! What this node has counted, for programs that print it.

use std::ffi::{CString, c_int};

use dhole::memory::threads;

use crate::deferred::Inside;
use crate::failure::refused;

/// Prints what this node has counted so far: accesses that waited, and messages. 0, or -1 with
/// words in `dh_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_stats(file: *mut libc::FILE) -> c_int {
    let _inside = Inside::enter();
    let (node, counters) = match (threads::node(), threads::counters()) {
        (Ok(node), Ok(counters)) => (node, counters),
        (Err(why), _) | (_, Err(why)) => {
            refused(&why, libc::EINVAL);
            return -1;
        }
    };
    let mut text = format!(
        "{node}: {} read faults in {} us, {} write faults in {} us, {} competing requests, \
         {} flushes\n",
        counters.raw_read_faults,
        counters.raw_read_ns / 1000,
        counters.raw_write_faults,
        counters.raw_write_ns / 1000,
        counters.competing_requests,
        counters.raw_flushes
    );
    for (kind, sent) in &counters.by_kind {
        text += &format!(
            "{node}: sent {} {} of {} bytes\n",
            sent.messages,
            kind.name(),
            sent.bytes
        );
    }
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the caller's: a file; the text is this function's own.
    unsafe { libc::fputs(text.as_ptr(), file) };
    0
}
