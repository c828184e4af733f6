//! Single loads and stores that may fail: where a fault cannot be resolved, the handler lets the
//! thread go on behind the instruction.
//!
//! These instructions stand in the exception table (`dhole_space::exception_table`). An access that
//! does not fault costs the instruction and two moves between registers.

/// An instruction with its entry in the exception table. `failed` is 1 behind it if its access
/// failed.
macro_rules! checked {
    ($instruction:literal, $($operands:tt)*) => {{
        let failed: u32;
        std::arch::asm!(
            "mov {failed:e}, 1",
            concat!("2: ", $instruction),
            "mov {failed:e}, 0",
            "3:",
            ".pushsection dhole_exceptions,\"aR\",@progbits",
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
