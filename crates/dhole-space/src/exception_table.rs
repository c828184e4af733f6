//! The exception table: the instructions of the program that may fault, and where to go on if one
//! does. A handler of a signal looks there, and moves the instruction pointer.
//!
//! An instruction enters itself, by two 32-bit offsets in the link section `dhole_exceptions`: to
//! itself and to where to go on, each from the place of the offset.

use std::sync::OnceLock;

/// An instruction that may fault, and where to go on then.
#[derive(Clone, Copy)]
struct Exception {
    at: usize,
    goes_on: usize,
}

/// All such instructions of the program, by address.
static ALL: OnceLock<Box<[Exception]>> = OnceLock::new();

/// Reads the link section. Before that [`goes_on_at`] finds nothing.
pub fn read() {
    ALL.get_or_init(read_section);
}

/// Where to go on after a fault of the instruction at an address, if it may fault. It allocates and
/// locks nothing.
pub fn goes_on_at(instruction: usize) -> Option<usize> {
    let all = ALL.get()?;
    let found = all.binary_search_by_key(&instruction, |exception| exception.at);
    Some(all[found.ok()?].goes_on)
}

fn read_section() -> Box<[Exception]> {
    unsafe extern "C" {
        #[link_name = "__start_dhole_exceptions"]
        static START: [i32; 2];
        #[link_name = "__stop_dhole_exceptions"]
        static STOP: [i32; 2];
    }
    // SAFETY: there is no instruction in it. It only adds an entry of zeros to the section, which
    // so exists in every program.
    unsafe {
        std::arch::asm!(
            ".pushsection dhole_exceptions,\"aR\",@progbits",
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
    let entries = entries.iter().filter(|[at, _]| *at != 0);
    let mut all: Box<[Exception]> = entries
        .map(|[at, goes_on]| Exception {
            at: absolute(at),
            goes_on: absolute(goes_on),
        })
        .collect();
    all.sort_unstable_by_key(|exception| exception.at);
    all
}
