//! Values that name objects, to be fetched together.

use std::panic::Location;

use crate::{Miss, Ref, Refs, Row, Rows, Scalar, Share};

/// What names objects: references, ranges of them, rows, and options, slices and tuples of these.
/// `w.prefetch(&names)` takes any of them.
pub trait Names {
    /// Calls `f` with an access to each object named.
    #[doc(hidden)]
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss));
}

impl<T: Share> Names for Ref<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        f(Miss::of(*self, site));
    }
}

impl<T: Share> Names for Refs<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        self.iter().for_each(|r| f(Miss::of(r, site)));
    }
}

impl<T: Scalar> Names for Row<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        f(Miss::of_row(*self, site));
    }
}

impl<T: Scalar> Names for Rows<T> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        self.iter().for_each(|row| f(Miss::of_row(row, site)));
    }
}

impl<N: Names + ?Sized> Names for &N {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        (**self).each(site, f);
    }
}

impl<N: Names> Names for Option<N> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        self.iter().for_each(|names| names.each(site, f));
    }
}

impl<N: Names> Names for [N] {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        self.iter().for_each(|names| names.each(site, f));
    }
}

impl<N: Names, const COUNT: usize> Names for [N; COUNT] {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        self.as_slice().each(site, f);
    }
}

impl<N: Names> Names for Vec<N> {
    fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
        self.as_slice().each(site, f);
    }
}

macro_rules! tuples {
    ($(($($name:ident $i:tt)+))*) => {$(
        impl<$($name: Names),+> Names for ($($name,)+) {
            fn each(&self, site: &'static Location<'static>, f: &mut dyn FnMut(Miss)) {
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
