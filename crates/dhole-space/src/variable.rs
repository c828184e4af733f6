//! Variables of the environment.

/// What a variable says; one that is empty is as one that is not set.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|said| !said.is_empty())
}
