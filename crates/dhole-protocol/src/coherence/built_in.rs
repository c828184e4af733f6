//! Members that dhole brings: each is a module and a line in the list at the end of this file.
//!
//! Every program that makes a node's protocol has their entries in its table of members. So
//! options and [`Coherence::all`](dhole_model::Coherence::all) know their names, as they know those
//! of protocols that the program brings.

/// Declares the modules of members, publishes their types, and leaves their entries in the program.
macro_rules! built_in {
    ($($module:ident::$protocol:ident),* $(,)?) => {
        $(
            mod $module;
            pub use $module::$protocol;
        )*

        /// Whether dhole brings the member of this name, and not the program.
        pub fn is_built_in(member: &str) -> bool {
            [$(<$protocol as super::member::CoherenceProtocol>::NAME),*].contains(&member)
        }

        /// Leaves the entries in the program.
        #[inline]
        pub(crate) fn put() {
            $(super::member::put::<$protocol>();)*
        }
    };
}

built_in![directory::Directory];
