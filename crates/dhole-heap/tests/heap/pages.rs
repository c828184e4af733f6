//! Heaps whose pages are kept consistent as a whole, and heaps that have none.

use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dhole_heap::{
    AllocError, Cluster, ElementsRefusal, HeapMut, InstallError, Monitor, ObjectRefusal,
    PAGE_BYTES, PageRefusal, Share,
};
use dhole_model::{Elements, NodeId, PageId, PageRange, Placement};

fn paged() -> Monitor<()> {
    let cluster = Cluster::paged(1).expect("room for a node");
    Monitor::new(&cluster, NodeId(0), ())
}

/// The bytes of a page, all of this value.
fn page(byte: u8) -> [u8; PAGE_BYTES as usize] {
    [byte; PAGE_BYTES as usize]
}

/// Otherwise what is installed as a page would change objects that are in use on it.
#[test]
fn a_heap_that_keeps_objects_consistent_offers_no_pages() {
    for placement in [Placement::FirstTouch, Placement::Everywhere] {
        let cluster = Cluster::placing(placement, 1).expect("room for a node");
        let node = Monitor::new(&cluster, NodeId(0), ());
        let mut guard = node.lock();
        let mut heap = guard.split().0;
        heap.alloc(true).expect("room for an object");
        assert!(heap.paged().is_none() && cluster.pages().is_none());
    }
}

#[test]
fn a_paged_heap_allocates_where_pages_may_be_written_alone() {
    let node = paged();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let is_refused = |refused| matches!(refused, Err(AllocError::Pages { .. }));
    assert!(is_refused(heap.alloc(true).map(drop)));
    assert!(is_refused(heap.alloc_range(3, |_| true).map(drop)));
    assert!(is_refused(heap.alloc_array_with(3, |_| true).map(drop)));
    assert!(is_refused(heap.alloc_with(|_: &mut bool| ()).map(drop)));
    assert!(is_refused(
        heap.alloc_range_with(3, |_, _: &mut bool| ()).map(drop)
    ));
    assert!(heap.alloc_array_with(0, |_| true).is_ok());
    let mut pages = heap.paged().expect("a paged cluster");
    let PageRange { first, count } = pages.next_pages::<bool>(1).expect("room");
    assert_eq!(count, 1);
    pages.make_page_valid(first).expect("nobody computes");
    pages.make_page_writable(first, true).expect("it is valid");
    let r = heap.alloc(true).expect("room for an object");
    // What is in use is replaced by nothing: no page that is valid is installed.
    let mut pages = heap.paged().expect("a paged cluster");
    let installed = pages.install_page(first, &page(7));
    assert_eq!(installed.unwrap_err().refusal, PageRefusal::Valid);
    drop(guard);
    let seen = node.lend(|token| *token.get(r).expect("it is here"));
    assert_eq!(seen, Ok(true));
}

#[test]
fn bytes_of_a_page_that_are_no_value_are_never_shown() {
    let node = paged();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let mut pages = heap.paged().expect("a paged cluster");
    let first = pages.next_pages::<bool>(1).expect("room").first;
    pages.make_page_valid(first).expect("nobody computes");
    pages.make_page_writable(first, true).expect("it is valid");
    let r = heap.alloc(true).expect("room for an object");
    let mut pages = heap.paged().expect("a paged cluster");
    pages.invalidate_page(first).expect("an exclusive call");
    pages
        .install_page(first, &page(7))
        .expect("it is not valid");
    pages.make_page_valid(first).expect("nobody computes");
    let shown = pages.show(r.oid());
    assert!(
        matches!(shown, Err(InstallError::Invalid { .. })),
        "{shown:?}"
    );
    assert!(!heap.is_present(r.oid()));
}

/// A value with padding behind its first byte.
#[derive(Share)]
#[share(crate = "dhole_heap")]
#[repr(C)]
struct Padded {
    small: u8,
    large: u64,
}

/// A value whose padding has bytes, too.
fn filled() -> Padded {
    let mut value = MaybeUninit::<Padded>::uninit();
    // SAFETY: all bytes of the value are written, and any bytes are numbers.
    unsafe {
        value.as_mut_ptr().write_bytes(0xaa, 1);
        value.assume_init()
    }
}

/// Padding is not initialised: it must not be compared, and not travel.
#[test]
fn padding_of_a_value_whose_making_unwound_is_no_part_of_its_page() {
    type Make = fn(&mut HeapMut<'_>);
    let ways: [Make; 3] = [
        |heap| drop(heap.alloc_with(panic_with)),
        |heap| drop(heap.alloc_range_with(2, |_, value| panic_with(value))),
        |heap| {
            let made = |i| if i < 3 { filled() } else { panic!("half way") };
            drop(heap.alloc_array_with(4, made));
        },
    ];
    for (way, make) in ways.into_iter().enumerate() {
        let node = paged();
        let mut guard = node.lock();
        let mut heap = guard.split().0;
        let mut pages = heap.paged().expect("a paged cluster");
        let first = pages.next_pages::<Padded>(4).expect("room").first;
        pages.make_page_valid(first).expect("nobody computes");
        pages.make_page_writable(first, true).expect("it is valid");
        let unwound = catch_unwind(AssertUnwindSafe(|| make(&mut heap)));
        assert!(unwound.is_err());
        let mut page = Vec::new();
        let mut pages = heap.paged().expect("a paged cluster");
        let gathered = pages.gather_page(first, false, &mut page);
        gathered.expect("nobody computes");
        let begins = page.iter().position(|byte| *byte == 0xaa);
        let value = &page[begins.expect("it was written")..][..size_of::<Padded>()];
        assert_eq!(value[1..8], [0; 7], "way {way}");
        assert_eq!(value[8..], [0xaa; 8], "way {way}");
    }
}

fn panic_with(value: &mut Padded) {
    // SAFETY: the bytes are those of a value that is borrowed alone, and any bytes are numbers.
    unsafe { std::ptr::from_mut(value).write_bytes(0xaa, 1) };
    panic!("half way");
}

/// Each of these sets handles, and knows nothing of the pages below.
#[test]
fn a_paged_heap_refuses_what_changes_objects_one_by_one() {
    let node = paged();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let row = heap.alloc_rows::<u8>(1, 8).expect("room").row(0).oid();
    let array = heap.alloc_array::<u8>(8).expect("room");
    let elements = Elements::new(array.oid(), 0..8);
    let paged = |refused| matches!(refused, Err(InstallError::Paged { .. }));
    assert!(paged(heap.install(row, &[0; 8])));
    assert!(paged(heap.zero_fill(row)));
    assert!(paged(heap.merge(row, &[])));
    assert!(heap.install_first(row, &[0; 8]).is_err());
    let refused = heap.make_writable(row, true).unwrap_err().refusal;
    assert_eq!(refused, ObjectRefusal::Paged);
    for refused in [
        heap.install_elements(elements, &[0; 8]),
        heap.zero_fill_elements(elements),
        heap.merge_elements(elements, &[0; 8]),
        heap.make_elements_writable(elements),
    ] {
        assert_eq!(refused.unwrap_err().refusal, ElementsRefusal::Paged);
    }
    let overwritten = heap.overwrite_elements(elements, &[1_u8; 8]);
    assert_eq!(overwritten.unwrap_err().refusal, ElementsRefusal::Absent);
}

/// What lies there is an earlier cluster's, padding among it.
#[test]
fn pages_on_which_no_object_can_lie_are_refused() {
    let node = paged();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let space = heap.cluster().pages().expect("a paged cluster");
    let mut pages = heap.paged().expect("a paged cluster");
    for page in [0, space.start - 1, space.end, u64::MAX].map(PageId) {
        let refused = pages.make_page_valid(page).unwrap_err().refusal;
        assert_eq!(refused, PageRefusal::Beyond, "{page}");
    }
    assert!(pages.make_page_valid(PageId(space.start)).is_ok());
}

#[test]
fn a_page_that_nobody_touched_is_gathered_as_zeros_and_takes_no_memory() {
    let node = paged();
    let mut guard = node.lock();
    let mut heap = guard.split().0;
    let last = heap.cluster().pages().expect("a paged cluster").end - 1;
    let mut out = Vec::new();
    let mut pages = heap.paged().expect("a paged cluster");
    pages
        .gather_page(PageId(last), false, &mut out)
        .expect("nobody writes it");
    assert_eq!(out, page(0));
    assert_eq!(heap.store_bytes(), 0);
}
