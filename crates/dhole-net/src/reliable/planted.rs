//! Errors that the tests of flows plant, and must find.

#[cfg_attr(not(test), expect(dead_code, reason = "planted by tests alone"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Planted {
    Nothing,
    /// What comes twice is taken twice.
    DuplicatesTaken,
    /// What is lost behind everything else is never sent again.
    NoTimeout,
    /// What came beyond a missing fragment is taken for everything below it.
    BeyondIsBelow,
    /// What went to several at once is taken to have come.
    SharedIsArrived,
}

#[cfg(test)]
std::thread_local! {
    pub(super) static PLANTED: std::cell::Cell<Planted> =
        const { std::cell::Cell::new(Planted::Nothing) };
}

#[cfg(test)]
pub(super) fn planted(error: Planted) -> bool {
    PLANTED.get() == error
}

#[cfg(not(test))]
pub(super) const fn planted(_error: Planted) -> bool {
    false
}
