use std::io;

use rustix::io::Errno;
use thiserror::Error;

/// Why two processes share no memory.
#[derive(Debug, Error)]
pub enum ShmError {
    /// The kernel refused.
    #[error("{doing}: {error}")]
    Os {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        error: io::Error,
    },
    /// The peer offered what no sound one does.
    #[error("the peer offered {0}")]
    Unsound(String),
}

impl ShmError {
    /// Says what the kernel refused.
    pub(super) fn os(doing: &'static str) -> impl Fn(Errno) -> ShmError + Copy {
        move |error| ShmError::Os {
            doing,
            error: error.into(),
        }
    }

    /// Whether the system has no room for this process: no peer can bring that about.
    pub fn is_own(&self) -> bool {
        let no_room =
            [Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::FBIG].map(Errno::raw_os_error);
        match self {
            ShmError::Os { error, .. } => {
                error.raw_os_error().is_some_and(|e| no_room.contains(&e))
            }
            ShmError::Unsound(_) => false,
        }
    }
}
