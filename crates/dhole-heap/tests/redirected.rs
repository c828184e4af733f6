//! A program that redirects the paths of the code which the derive writes: `::core` is this crate,
//! and the private names that the derive finds are its own. The layouts are true all the same.
#![forbid(unsafe_code)]

extern crate self as core;

use dhole_heap::{Cluster, DataRange, InstallError, LeafTest, Monitor, Share, TypeInfo};
use dhole_model::NodeId;

/// What a malicious `core` may have.
pub mod mem {
    /// Every field lies at the start.
    #[macro_export]
    macro_rules! at_the_start {
        ($($any:tt)*) => {
            0
        };
    }
    pub use at_the_start as offset_of;

    /// Every type has one byte.
    pub const fn size_of<T>() -> usize {
        1
    }

    /// No type has anything to drop.
    pub const fn needs_drop<T>() -> bool {
        false
    }

    /// No type is aligned.
    pub const fn align_of<T>() -> usize {
        1
    }
}

/// Numbers that lose their upper bytes.
pub mod primitive {
    /// Not enough of them.
    #[expect(non_camel_case_types, reason = "it stands for the number")]
    pub type i128 = u8;
}

/// Asserts nothing.
#[macro_export]
macro_rules! nothing {
    ($($any:tt)*) => {};
}
pub use nothing as assert;

/// Names that are not those of the heap, beside the trait that is.
pub mod __private {
    pub use dhole_heap::__private::{Share, TypeMap};

    /// Anything goes.
    pub const MAX_ALIGN: usize = usize::MAX;

    /// A trait that says nothing.
    pub trait Nullable {}
}

#[derive(Share, Clone, Copy)]
#[share(crate = "crate")]
#[repr(C)]
struct Fields {
    number: u64,
    flag: bool,
}

#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[share(crate = "crate")]
#[repr(u16)]
enum Wide {
    Low = 1,
    High = 0x1234,
}

/// The compiler alone decides how these lie in memory.
#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[share(crate = "crate")]
enum Plain {
    First = -7,
    Second = 300,
}

#[test]
fn fields_lie_where_the_compiler_puts_them() {
    let info = TypeInfo::of::<Fields>();
    let data = [DataRange {
        offset: 0,
        bytes: 9,
    }];
    assert_eq!(info.data[..], data);
    let flags: Vec<_> = info.leaves.iter().map(|it| it.packed_offset).collect();
    assert_eq!(flags, [8]);
}

#[test]
fn an_enum_has_the_values_of_its_variants() {
    let values: Box<[u128]> = [1, 0x1234].into();
    let test = LeafTest::OneOf { bytes: 2, values };
    assert_eq!(TypeInfo::of::<Wide>().leaves[0].test, test);
}

#[test]
fn bytes_that_are_no_variant_are_refused() {
    let cluster = Cluster::new(1).expect("room for a node");
    let node = Monitor::new(&cluster, NodeId(0), ());
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    for (value, other) in [(Plain::First, Plain::Second), (Plain::Second, Plain::First)] {
        let r = heap.alloc(value).expect("room for an object");
        let mut bytes = Vec::new();
        heap.gather(r.oid(), &mut bytes).expect("it is here");
        let mut theirs = Vec::new();
        let o = heap.alloc(other).expect("room for an object");
        heap.gather(o.oid(), &mut theirs).expect("it is here");
        assert_ne!(bytes, theirs);
        assert_eq!(heap.install(r.oid(), &theirs), Ok(()));
        theirs[0] ^= 0x40;
        let refused = heap.install(r.oid(), &theirs);
        std::assert!(matches!(refused, Err(InstallError::Invalid { .. })));
    }
}
