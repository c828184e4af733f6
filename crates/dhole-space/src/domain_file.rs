//! The raw memory that the processes of a domain have in common: a file without a name.

use std::io;
use std::os::fd::OwnedFd;

use crate::shared_file::SharedFile;

/// A file that all processes of a domain map as their raw memory. Its length never changes, and it
/// takes no memory before it is used.
#[derive(Debug)]
pub struct DomainFile(SharedFile);

impl DomainFile {
    /// Bytes of the file.
    pub const BYTES: u64 = 1 << 40;

    /// A new file of zeros.
    ///
    /// # Errors
    /// The system's own, where it gives no file so long (`ulimit -f`), or none at all.
    pub fn make() -> io::Result<DomainFile> {
        SharedFile::make(c"dhole-memory", DomainFile::BYTES).map(DomainFile)
    }

    /// The file that another process has made.
    ///
    /// # Errors
    /// The system's own; [`io::ErrorKind::InvalidData`] where it is another file than
    /// [`make`](DomainFile::make) makes.
    pub fn open(file: OwnedFd) -> io::Result<DomainFile> {
        SharedFile::check(file, DomainFile::BYTES).map(DomainFile)
    }

    /// A descriptor of the file, for another process.
    ///
    /// # Errors
    /// The system's own.
    pub fn to_show(&self) -> io::Result<OwnedFd> {
        self.0.to_write()
    }

    /// The file, to be mapped.
    pub fn file(&self) -> &SharedFile {
        &self.0
    }

    /// Gives all of its memory back to the system: it holds zeros.
    pub fn clear(&self) {
        self.0.clear();
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_length_or_one_that_may_shrink_is_refused() {
        let file = DomainFile::make().unwrap();
        let again = DomainFile::open(file.to_show().unwrap());
        assert!(again.is_ok());
        let short = SharedFile::make(c"short", 4096).unwrap();
        let refused = DomainFile::open(short.to_write().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        let loose = std::fs::File::open("/proc/self/exe").unwrap();
        let refused = DomainFile::open(loose.into()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    }
}
