use std::fmt;
use std::panic::Location;

/// A place in the user's program: where it acquired, waited, allocated or read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallSite {
    /// The source file as the compiler names it.
    pub file: &'static str,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl CallSite {
    /// The caller of the function that calls this, where that function is `#[track_caller]`.
    #[track_caller]
    pub fn caller() -> CallSite {
        Location::caller().into()
    }

    /// A site for events that no line of the user's program stands for.
    pub const fn runtime(what: &'static str) -> CallSite {
        CallSite {
            file: what,
            line: 0,
            column: 0,
        }
    }
}

impl From<&'static Location<'static>> for CallSite {
    fn from(at: &'static Location<'static>) -> CallSite {
        CallSite {
            file: at.file(),
            line: at.line(),
            column: at.column(),
        }
    }
}

impl fmt::Display for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return f.write_str(self.file);
        }
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
