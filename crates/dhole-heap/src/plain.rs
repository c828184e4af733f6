//! What references have in common: they are copied, compared and hashed by their fields, whatever
//! they refer to. A derive would ask as much of the type.

/// Implements `Copy`, `Eq` and `Hash` for types of one parameter, given their fields.
macro_rules! plain {
    ($($name:ident: $($field:ident)*;)*) => {$(
        impl<T> Clone for $name<T> {
            #[inline(always)]
            fn clone(&self) -> $name<T> {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> PartialEq for $name<T> {
            #[inline(always)]
            fn eq(&self, other: &$name<T>) -> bool {
                ($(self.$field,)*) == ($(other.$field,)*)
            }
        }

        impl<T> Eq for $name<T> {}

        impl<T> std::hash::Hash for $name<T> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                std::hash::Hash::hash(&($(self.$field,)*), state);
            }
        }
    )*};
}
pub(crate) use plain;
