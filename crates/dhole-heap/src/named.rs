//! Values that name objects, to be fetched together.

use std::panic::Location;

use crate::{Array, ArrayMiss, ArrayRange, Miss, Ref, Refs, Row, Rows, Scalar, Share};

/// An object, or elements of an array, as an access to them.
pub enum Name {
    /// An object.
    Object(Miss),
    /// Elements of an array, at least one.
    Elements(ArrayMiss),
}

/// What names objects: references, ranges of them, rows, arrays and their ranges, and options,
/// slices and tuples of these.
/// `w.prefetch(&names)` takes any of them.
pub trait Names {
    /// Calls `f` with an access to each object named.
    #[doc(hidden)]
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name));
}

impl<T: Share> Names for Ref<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        f(Name::Object(Miss::of(*self, site)));
    }
}

impl<T: Share> Names for Refs<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.iter().for_each(|r| f(Name::Object(Miss::of(r, site))));
    }
}

impl<T: Scalar> Names for Row<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        f(Name::Object(Miss::of_row(*self, site)));
    }
}

impl<T: Scalar> Names for Rows<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.iter()
            .for_each(|row| f(Name::Object(Miss::of_row(row, site))));
    }
}

impl<T: Share> Names for Array<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.range(..).each(site, f);
    }
}

impl<T: Share> Names for ArrayRange<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        if !self.is_empty() {
            f(Name::Elements(self.miss(site)));
        }
    }
}

impl<N: Names + ?Sized> Names for &N {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        (**self).each(site, f);
    }
}

impl<N: Names> Names for Option<N> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.iter().for_each(|names| names.each(site, f));
    }
}

impl<N: Names> Names for [N] {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.iter().for_each(|names| names.each(site, f));
    }
}

impl<N: Names, const COUNT: usize> Names for [N; COUNT] {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.as_slice().each(site, f);
    }
}

impl<N: Names> Names for Vec<N> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
        self.as_slice().each(site, f);
    }
}

macro_rules! tuples {
    ($(($($name:ident $i:tt)+))*) => {$(
        impl<$($name: Names),+> Names for ($($name,)+) {
            fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Name)) {
                $(self.$i.each(site, f);)+
            }
        }
    )*};
}
tuples! {
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
}
