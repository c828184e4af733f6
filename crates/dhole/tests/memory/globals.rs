//! Memory at fixed addresses, with pages of the program's own in it.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use dhole::memory::{MemorySettings, ProgramMemory, RawMemory};
use dhole::{Config, RunError};

const PAGE: usize = 4096;

/// Pages of zeros that no other test has, between two without access: the system joins them to no
/// others.
fn pages(count: usize) -> Range<usize> {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    let bytes = (count + 2) * PAGE;
    let writable = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: at an address of the system's choice; the pages lie within.
    let at = unsafe {
        let none = std::ptr::null_mut();
        let all = mmap_anonymous(none, bytes, ProtFlags::empty(), MapFlags::PRIVATE);
        let at = all.expect("pages").byte_add(PAGE);
        mprotect(at, count * PAGE, writable).expect("pages to write");
        at
    };
    let start = at.expose_provenance();
    start..start + count * PAGE
}

fn cell<'a>(at: usize) -> &'a AtomicU64 {
    // SAFETY: within pages that stay mapped, aligned for the number.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(at)) }
}

fn config(base: usize, globals: Vec<Range<usize>>) -> Config {
    config_at(vec![base], globals)
}

fn config_at(bases: Vec<usize>, globals: Vec<Range<usize>>) -> Config {
    let settings = MemorySettings {
        views: 4,
        bytes: 1 << 30,
    };
    // SAFETY: the pages are this test's own, and accessed by atomics alone.
    Config::nodes(1).memory(unsafe { ProgramMemory::new(settings, bases, globals) })
}

#[test]
fn globals_keep_their_values_and_are_accessed_where_they_are() {
    let (some, zeros) = (pages(3), pages(2));
    cell(some.start + PAGE + 8).store(17, Relaxed);
    let base = 0x10_0000_0000;
    let run = config(base, vec![some.clone(), zeros.clone()]).run(|w| {
        let raw = RawMemory::of(w)?;
        let small = raw.allocate(100, 16)?.addr().get();
        let large = raw.allocate(3 * PAGE + 1, 16)?.addr().get();
        assert!(raw.meets(zeros.end - 1, 1) && raw.meets(some.start - 1, 2));
        assert!(!raw.meets(0, 8) && raw.meets(large, 1));
        // Behind the globals, in the first view.
        assert_eq!((small, large), (base + 5 * PAGE, base + 6 * PAGE));
        for (at, value) in [(some.start + PAGE + 8, 17), (zeros.end - 8, 0), (large, 0)] {
            assert_eq!(cell(at).swap(value + 1, Relaxed), value, "{at:#x}");
        }
        let last = cell(large + 3 * PAGE);
        last.store(5, Relaxed);
        Ok(cell(some.start + PAGE + 8).load(Relaxed) + last.load(Relaxed))
    });
    let run = run.unwrap();
    assert_eq!(run.value, 23);
    assert!(
        run.report
            .total()
            .by_kind
            .iter()
            .all(|(_, sent)| sent.messages == 0)
    );
    // What comes after the run finds memory there.
    assert_eq!(cell(some.start + PAGE + 8).load(Relaxed), 0);
}

#[test]
fn globals_that_are_larger_than_the_memory_are_refused() {
    let settings = MemorySettings {
        views: 1,
        bytes: 2 * PAGE as u64,
    };
    // SAFETY: the pages are this test's own, and nobody accesses them.
    let memory = unsafe { ProgramMemory::new(settings, vec![0x30_0000_0000], vec![pages(3)]) };
    let refused = Config::nodes(1).memory(memory).run(|_| Ok(()));
    let said = refused.map(|_| ()).unwrap_err().to_string();
    assert!(
        said.contains("globals have 12288 bytes, where each of 1 nodes has 8192 bytes"),
        "{said}"
    );
}

#[test]
fn an_address_that_is_taken_and_several_nodes_in_a_process_are_refused() {
    let refusal = |run: Result<(), RunError>| run.unwrap_err().to_string();
    let taken = pages(4);
    let run = config(taken.start, Vec::new()).run(|_| Ok(()));
    let said = refusal(run.map(|run| run.value));
    let (address, end) = (format!("{:#x}", taken.start), taken.end);
    let lies = format!("{address} to {end:#x} is memory without a name");
    for words in ["raw memory", "it has no place on node 0", &address, &lies] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let other = 0x40_0000_0000;
    let run = config_at(vec![taken.start, other], Vec::new()).run(|w| {
        let raw = RawMemory::of(w)?;
        assert_eq!(raw.views(), other..other + (4 << 30));
        let place = raw.allocate(8, 8)?.addr().get();
        cell(place).store(3, Relaxed);
        Ok(place)
    });
    assert_eq!(run.expect("another address").value, other);
    let two = config(0x20_0000_0000, Vec::new());
    let said = refusal(
        two.simulate(dhole::sim::Settings::fixed_cost(2), |_| Ok(()))
            .map(|_| ()),
    );
    assert!(said.contains("2 nodes in one process"), "{said}");
}
