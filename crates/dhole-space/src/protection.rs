//! What threads may do with pages.

/// What threads may do with pages of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// Every access faults.
    Closed,
    /// Writes fault.
    ReadOnly,
    /// None faults.
    Open,
}

impl Protection {
    /// As the system has it.
    pub(crate) fn flags(self) -> libc::c_int {
        match self {
            Protection::Closed => libc::PROT_NONE,
            Protection::ReadOnly => libc::PROT_READ,
            Protection::Open => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}
