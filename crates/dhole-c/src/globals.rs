//! Where the program's globals lie: the linker's script that `dhole cc` passes says so.

use std::ops::Range;

mod script {
    use std::ffi::c_char;

    unsafe extern "C" {
        pub static __dhole_data_start: c_char;
        pub static __dhole_data_end: c_char;
        pub static __dhole_bss_start: c_char;
        pub static __dhole_bss_end: c_char;
    }
}

/// The program's globals: those with values, and those that are zero. Whole pages each.
pub(crate) fn all() -> Vec<Range<usize>> {
    use script::{__dhole_bss_end, __dhole_bss_start, __dhole_data_end, __dhole_data_start};
    let ranges = [
        (&raw const __dhole_data_start).expose_provenance()
            ..(&raw const __dhole_data_end).expose_provenance(),
        (&raw const __dhole_bss_start).expose_provenance()
            ..(&raw const __dhole_bss_end).expose_provenance(),
    ];
    ranges
        .into_iter()
        .filter(|range| !range.is_empty())
        .collect()
}
