//! Files that other processes show, and what they may do with those of this one.

use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd};

use super::*;

/// Bytes of a table.
const RECORDS: u64 = 8 << 30;

/// Sealed or not, of so many bytes, in huge pages or not.
fn file(seals: libc::c_int, bytes: u64, flags: u32) -> Option<OwnedFd> {
    // SAFETY: the calls take strings, numbers and descriptors that are open.
    unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | flags;
        let file = libc::memfd_create(c"lie".as_ptr(), flags);
        if file < 0 {
            return None;
        }
        let file = OwnedFd::from_raw_fd(file);
        if libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) != 0 {
            return None;
        }
        assert_eq!(libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals), 0);
        Some(file)
    }
}

#[test]
fn memory_that_may_end_or_is_of_another_size_or_kind_is_not_mapped() {
    let shrink = libc::F_SEAL_SHRINK;
    let sound = |bytes| file(shrink, bytes, 0).expect("a file");
    assert!(open([sound(RECORDS), sound(STORE_BYTES)], RECORDS).is_ok());
    let unsealed = |bytes| file(libc::F_SEAL_GROW, bytes, 0).expect("a file");
    let plain = || OwnedFd::from(std::fs::File::open("/proc/self/exe").expect("this program"));
    let mut lies = vec![
        [unsealed(RECORDS), sound(STORE_BYTES)],
        [sound(RECORDS), unsealed(STORE_BYTES)],
        [sound(STORE_BYTES), sound(RECORDS)],
        [sound(RECORDS), sound(STORE_BYTES - 4096)],
        [sound(RECORDS + 4096), sound(STORE_BYTES)],
        [plain(), sound(STORE_BYTES)],
        [sound(RECORDS), plain()],
    ];
    // Where there are no huge pages in reserve, who touches one is killed.
    let huge = |bytes| file(shrink, bytes, libc::MFD_HUGETLB);
    lies.extend(huge(RECORDS).map(|huge| [huge, sound(STORE_BYTES)]));
    lies.extend(huge(STORE_BYTES).map(|huge| [sound(RECORDS), huge]));
    for (nth, lie) in lies.into_iter().enumerate() {
        let refused = open(lie, RECORDS).map(drop).expect_err("a lie");
        assert_eq!(refused.kind(), ErrorKind::InvalidData, "{nth}: {refused}");
    }
}

#[test]
fn no_other_process_writes_the_store_or_makes_either_file_shorter() {
    let memory = VisibleMemory::make().expect("two files");
    let [records, store] = memory.files().expect("descriptors");
    let map = |file: &OwnedFd| {
        let (null, both) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: at an address of the system's choice; nobody touches what is mapped there.
        let at = unsafe { libc::mmap(null, 4096, both, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        at != libc::MAP_FAILED
    };
    assert!(map(&records), "bits are set there");
    assert!(!map(&store), "it is to be read");
    for file in [&records, &store] {
        for bytes in [0, 4096, STORE_BYTES + 4096] {
            // SAFETY: the descriptor is open.
            let changed = unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) };
            assert_ne!(changed, 0, "{bytes}");
        }
        // SAFETY: the descriptor is open. Nobody could give memory back after that.
        let sealed = unsafe {
            libc::fcntl(
                file.as_raw_fd(),
                libc::F_ADD_SEALS,
                libc::F_SEAL_FUTURE_WRITE,
            )
        };
        assert_ne!(sealed, 0);
    }
}
