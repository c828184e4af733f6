//! Single loads and stores that may fail: where a fault cannot be resolved, the handler lets the
//! thread go on behind the instruction.
//!
//! The addresses of these instructions, and of where to go on, stand in the link section
//! `dhole_checked`. An access that does not fault costs the instruction and two moves between
//! registers.

use std::sync::OnceLock;

/// Where an instruction is, and where to go on if its access cannot be made.
#[derive(Clone, Copy)]
struct CheckedAccess {
    at: usize,
    failed: usize,
}

/// All such instructions of the program, by address.
static ALL: OnceLock<Box<[CheckedAccess]>> = OnceLock::new();

/// Reads the link section. The handler of faults looks only at what is read by then.
pub(crate) fn install() {
    ALL.get_or_init(read_section);
}

/// Where to go on after a fault of an instruction, if it may fail.
pub(crate) fn goes_on_at(instruction: usize) -> Option<usize> {
    let all = ALL.get()?;
    let found = all.binary_search_by_key(&instruction, |access| access.at);
    Some(all[found.ok()?].failed)
}

fn read_section() -> Box<[CheckedAccess]> {
    unsafe extern "C" {
        #[link_name = "__start_dhole_checked"]
        static START: [i32; 2];
        #[link_name = "__stop_dhole_checked"]
        static STOP: [i32; 2];
    }
    // SAFETY: there is no instruction in it. It only adds an entry of zeros to the section, which
    // so exists in every program.
    unsafe {
        std::arch::asm!(
            ".pushsection dhole_checked,\"aR\",@progbits",
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
    let mut all: Box<[CheckedAccess]> = entries
        .map(|[at, failed]| CheckedAccess {
            at: absolute(at),
            failed: absolute(failed),
        })
        .collect();
    all.sort_unstable_by_key(|access| access.at);
    all
}

/// An instruction with its entry in the section. `failed` is 1 behind it if its access failed.
macro_rules! checked {
    ($instruction:literal, $($operands:tt)*) => {{
        let failed: u32;
        std::arch::asm!(
            "mov {failed:e}, 1",
            concat!("2: ", $instruction),
            "mov {failed:e}, 0",
            "3:",
            ".pushsection dhole_checked,\"aR\",@progbits",
            ".balign 4",
            ".long 2b - .",
            ".long 3b - .",
            ".popsection",
            failed = out(reg) failed,
            $($operands)*
            options(nostack, preserves_flags)
        );
        failed == 0
    }};
}

macro_rules! accesses {
    ($(
        $load:ident $store:ident $swap:ident $bits:ty:
        $mov:literal $put:literal $xchg:literal,
    )*) => {$(
        /// Loads a number; `None` if the access failed. As strong as any load of this processor.
        ///
        /// # Safety
        /// The place is mapped, or one in views of a node that the thread belongs to, aligned, and
        /// all accesses of other threads to it are atomic and of this size.
        #[inline(always)]
        pub(crate) unsafe fn $load(at: *mut $bits) -> Option<$bits> {
            let value: u64;
            // SAFETY: the caller's. The instruction is one access, as an atomic's is.
            let made = unsafe {
                checked!($mov, at = in(reg) at, value = out(reg) value,)
            };
            made.then_some(value as $bits)
        }

        /// Stores a number, as a release; whether the access was made.
        ///
        /// # Safety
        /// As of the load.
        #[inline(always)]
        pub(crate) unsafe fn $store(at: *mut $bits, value: $bits) -> bool {
            // SAFETY: the caller's. The instruction is one access, as an atomic's is.
            unsafe { checked!($put, at = in(reg) at, value = in(reg) u64::from(value),) }
        }

        /// Stores a number, in the one order of all such stores; whether the access was made.
        ///
        /// # Safety
        /// As of the load.
        #[inline(always)]
        pub(crate) unsafe fn $swap(at: *mut $bits, value: $bits) -> bool {
            let _before: u64;
            // SAFETY: the caller's. The instruction is one access, as an atomic's is.
            unsafe {
                checked!($xchg, at = in(reg) at, value = inout(reg) u64::from(value) => _before,)
            }
        }
    )*};
}
accesses! {
    load_8 store_8 swap_8 u8:
        "movzx {value:e}, byte ptr [{at}]"
        "mov byte ptr [{at}], {value:l}"
        "xchg byte ptr [{at}], {value:l}",
    load_16 store_16 swap_16 u16:
        "movzx {value:e}, word ptr [{at}]"
        "mov word ptr [{at}], {value:x}"
        "xchg word ptr [{at}], {value:x}",
    load_32 store_32 swap_32 u32:
        "mov {value:e}, dword ptr [{at}]"
        "mov dword ptr [{at}], {value:e}"
        "xchg dword ptr [{at}], {value:e}",
    load_64 store_64 swap_64 u64:
        "mov {value}, qword ptr [{at}]"
        "mov qword ptr [{at}], {value}"
        "xchg qword ptr [{at}], {value}",
}
