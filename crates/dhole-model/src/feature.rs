use std::fmt;

/// A program was asked for something that needs a feature of `dhole`, and is built without that
/// feature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MissingFeature {
    /// The feature's name in `Cargo.toml`.
    pub feature: &'static str,
    /// What asked for it, as the first clause of the error.
    pub asked: &'static str,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MissingFeature { feature, asked } = self;
        write!(
            f,
            "{asked}, but this program is built without dhole's feature `{feature}`: add it \
             (`cargo add dhole --features {feature}`) and build the program again"
        )
    }
}

impl std::error::Error for MissingFeature {}

crate::debug_in_words!(MissingFeature);
