//! `malloc` and its kin, in shared memory.
//!
//! In front of each block stands a [`Header`], in the same minipage. A block that is freed stays in
//! the memory, and the node that freed it gives it out again.

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use dhole::memory::{MemoryError, RawMemory};

use crate::deferred::Inside;
use crate::failure::{cannot, fatal, refused, set_errno};
use crate::site;

mod mapped_pages;

pub(crate) use mapped_pages::{
    capacity_of_pages, map_pages, mapped_bytes, set_mapped_bytes, unmap_pages,
};

/// Where the memory begins in all processes, the first best first: above what sanitisers use, and
/// below what the system gives out. The views take 0x840_0000_0000 bytes.
pub(crate) const BASES: [usize; 3] = [0x2000_0000_0000, 0x2900_0000_0000, 0x1100_0000_0000];

/// How many views there are, one behind the other.
pub(crate) const VIEWS: usize = 32;

/// The memory of this process's node, while its run is on.
static MEMORY: OnceLock<(usize, RawMemory<'static>)> = OnceLock::new();

/// The addresses of its views, also when the run has ended.
static ADDRESSES: OnceLock<Range<usize>> = OnceLock::new();

/// Whether the run has ended, and its memory with it.
static OVER: AtomicBool = AtomicBool::new(false);

/// What this node may give out again: addresses by how many bytes they have.
static FREED: Mutex<BTreeMap<usize, Vec<usize>>> = Mutex::new(BTreeMap::new());

const PAGE: usize = 4096;

/// What stands in front of a block.
#[derive(Clone, Copy)]
#[repr(C)]
struct Header {
    /// Bytes of the block, and its state above them.
    bytes: u64,
    /// Where the program allocated it, or freed it: the address behind the call, which is below
    /// 4 GiB, as all code of a static program.
    site: u32,
    /// The node that allocated it.
    allocated: u16,
    /// The node that freed it.
    freed: u16,
}

impl Header {
    fn bytes(self) -> usize {
        (self.bytes & (STATE - 1)) as usize
    }

    fn state(self) -> u64 {
        self.bytes / STATE
    }

    /// Where it was allocated or freed, in words.
    fn site(self) -> String {
        match self.site {
            0 => String::new(),
            site => format!(" at {site:#x}"),
        }
    }
}

const HEADER: usize = size_of::<Header>();
const STATE: u64 = 1 << 42;
const USED: u64 = 0x2d_e5ed;
const FREE: u64 = 0x2d_ef1e;

thread_local! {
    /// So many blocks of this thread are one minipage, and what is left of the last one.
    static CHUNK: Cell<Chunk> = const { Cell::new(Chunk { blocks: 1, each: 0, next: 0, left: 0 }) };
}

/// Blocks of one size that are allocated together, and given out one after the other.
#[derive(Clone, Copy)]
struct Chunk {
    blocks: usize,
    /// Bytes of each with its header.
    each: usize,
    next: usize,
    left: usize,
}

/// From here on the functions of this module allocate on this node.
///
/// # Safety
/// The memory is there until [`over`] is called, or no thread of the program runs.
pub(crate) unsafe fn use_memory(memory: RawMemory<'_>, node: usize) {
    // SAFETY: only the lifetime changes, by the caller's word.
    let memory = unsafe { std::mem::transmute::<RawMemory<'_>, RawMemory<'static>>(memory) };
    let _once = MEMORY.set((node, memory));
    let _once = ADDRESSES.set(memory.views());
}

/// The run has ended. What comes now (destructors of the program) allocates private memory.
pub(crate) fn over() {
    OVER.store(true, Ordering::Release);
}

/// Whether the run is on in this process: not before it, nor after it, nor in a child of `fork`.
pub(crate) fn is_on() -> bool {
    memory().is_some()
}

/// The node and its memory, while the run is on.
fn memory() -> Option<&'static (usize, RawMemory<'static>)> {
    match OVER.load(Ordering::Acquire) {
        true => None,
        false => MEMORY.get(),
    }
}

/// Whether a block was shared, and its memory is gone.
fn is_gone(block: *const c_void) -> bool {
    let was_shared = |views: &Range<usize>| views.contains(&block.addr());
    OVER.load(Ordering::Acquire) && ADDRESSES.get().is_some_and(was_shared)
}

/// Whether an address is on the stack of this thread.
fn is_on_stack(place: usize) -> bool {
    let mark = 0_u8;
    let here = std::ptr::from_ref(&mark).addr();
    // Above the frame of this function, and not far: it is looked up where it may be one alone.
    if !(here..here.saturating_add(1 << 30)).contains(&place) {
        return false;
    }
    let mut bounds = (std::ptr::null_mut(), 0);
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are this function's own, and are given back where they were made.
    let known = unsafe {
        let made = libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) == 0;
        made && {
            let attributes = attributes.as_mut_ptr();
            let known =
                libc::pthread_attr_getstack(attributes, &raw mut bounds.0, &raw mut bounds.1);
            libc::pthread_attr_destroy(attributes);
            known == 0
        }
    };
    known && (here..bounds.0.addr() + bounds.1).contains(&place)
}

/// Whether some of so many bytes at an address are shared.
pub(crate) fn is_shared(at: *const c_void, bytes: usize) -> bool {
    memory().is_some_and(|(_, memory)| memory.meets(at.addr(), bytes.max(1)))
}

fn freed() -> std::sync::MutexGuard<'static, BTreeMap<usize, Vec<usize>>> {
    FREED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block of at least so many bytes that was freed, at a multiple of `align`: with at most twice
/// as many, or as many more as the alignment costs. It looks at the last 16 blocks of 8 sizes.
fn again(bytes: usize, align: usize) -> Option<usize> {
    let mut freed = freed();
    let most = (bytes * 2).max(64).max(bytes + align + HEADER);
    let mut sizes = freed.range(bytes..=most).take(8);
    let (size, index) = sizes.find_map(|(size, places)| {
        let last = places.len().saturating_sub(16);
        let found = places[last..]
            .iter()
            .rposition(|place| place % align == 0)?;
        Some((*size, last + found))
    })?;
    let places = freed.get_mut(&size)?;
    let place = places.swap_remove(index);
    if places.is_empty() {
        freed.remove(&size);
    }
    Some(place)
}

/// How many bytes a block has that is asked for with so many.
fn capacity(memory: RawMemory<'_>, bytes: usize) -> usize {
    // What is behind is not the program's.
    if memory.isolates() {
        return bytes.max(1);
    }
    let with_header = bytes.max(1) + HEADER;
    match with_header {
        0..=PAGE => with_header.next_multiple_of(16) - HEADER,
        _ => with_header.next_multiple_of(PAGE) - HEADER,
    }
}

/// So many bytes of whole pages, which are never freed.
pub(crate) fn pages(bytes: usize) -> Option<usize> {
    let (_, memory) = memory()?;
    match memory.allocate(bytes, PAGE) {
        Ok(start) => Some(start.as_ptr().expose_provenance()),
        Err(why) => {
            refused(&why, libc::ENOMEM);
            None
        }
    }
}

/// Room for a block with its header, of a chunk where the program wants chunks. `None` where the
/// memory says no.
fn room(
    memory: RawMemory<'_>,
    bytes: usize,
    align: usize,
    (named, caller): (usize, usize),
) -> Result<NonNull<u8>, MemoryError> {
    let mut chunk = CHUNK.get();
    let is_apart = chunk.blocks == 1 || memory.isolates();
    if is_apart || align > 16 || bytes > PAGE / 2 {
        return memory.allocate_at(bytes, align.clamp(16, PAGE), named, site::of_block(caller));
    }
    if chunk.each != bytes || chunk.left == 0 {
        let blocks = chunk.blocks.min(PAGE / bytes);
        let start = memory.allocate(blocks * bytes, 16)?;
        let next = start.as_ptr().expose_provenance();
        chunk = Chunk {
            each: bytes,
            next,
            left: blocks,
            ..chunk
        };
    }
    let place = std::ptr::with_exposed_provenance_mut(chunk.next);
    chunk.next += bytes;
    chunk.left -= 1;
    CHUNK.set(chunk);
    Ok(NonNull::new(place).expect("a block is not at address zero"))
}

/// A block, and whether it is zero.
fn allocate(bytes: usize, align: usize, caller: usize) -> Option<(*mut u8, bool)> {
    let Some((node, memory)) = memory() else {
        // Before the run or after it: a constructor or a destructor. It is private.
        let layout = Layout::from_size_align(bytes, align).ok()?;
        let mut block = std::ptr::null_mut();
        // SAFETY: the pointer is the function's own.
        let refused = unsafe {
            libc::posix_memalign(&raw mut block, layout.align().max(16), layout.size().max(1))
        };
        return (refused == 0).then_some((block.cast(), false));
    };
    let too_large = || {
        let why = format!("allocating {bytes} bytes at a multiple of {align}: out of range");
        refused(&why, libc::ENOMEM);
    };
    if bytes > 1 << 40 || !align.is_power_of_two() || align > 1 << 30 {
        too_large();
        return None;
    }
    let wanted = capacity(*memory, bytes);
    if let Some(place) = again(wanted, align.max(16)) {
        let block = std::ptr::with_exposed_provenance_mut::<u8>(place);
        // SAFETY: a block of this module's, which nobody has: its header stands in front of it.
        let header = unsafe { block.sub(HEADER).cast::<Header>() };
        // SAFETY: as above.
        unsafe {
            (*header).bytes = (*header).bytes() as u64 | (USED * STATE);
            (*header).site = caller as u32;
            (*header).allocated = *node as u16;
        }
        return Some((block, false));
    }
    // Where pages alone are not aligned enough there is room to move.
    let front = match align > PAGE {
        true => HEADER + align,
        false => align.max(HEADER),
    };
    let all = front + wanted;
    let start = match room(*memory, all, align, (bytes, caller)) {
        Ok(start) => start,
        // The node that has the table of all memory is lost, say.
        Err(why) if why.has_failed_run() => cannot(&"allocating", &why),
        Err(why) => {
            refused(&why, libc::ENOMEM);
            return None;
        }
    };
    let from = start.addr().get() + HEADER;
    let skipped = from.next_multiple_of(align.max(16)) - start.addr().get();
    // SAFETY: `all` bytes begin at `start`, and `skipped` is at most `front`.
    let block = unsafe { start.as_ptr().add(skipped) };
    let bytes = (all - skipped) as u64;
    let header = Header {
        bytes: bytes | (USED * STATE),
        site: caller as u32,
        allocated: *node as u16,
        freed: 0,
    };
    // SAFETY: so many bytes were allocated in front of the block, aligned by 16.
    unsafe { block.sub(HEADER).cast::<Header>().write(header) };
    let _known: usize = block.expose_provenance();
    Some((block, true))
}

/// Where a function was called, in words.
fn at(caller: usize) -> String {
    match caller {
        0 => String::new(),
        caller => format!(" at {caller:#x}"),
    }
}

/// The header of a block of this module; the program ends where it is none.
///
/// # Safety
/// The pointer is shared memory.
unsafe fn header(block: *mut c_void, doing: &str, caller: usize) -> *mut Header {
    let header = block.cast::<u8>().wrapping_sub(HEADER).cast::<Header>();
    if !header.is_aligned() {
        fatal(&format!(
            "{doing} {block:p}{}: no block begins there, for it is no multiple of 16",
            at(caller)
        ));
    }
    // SAFETY: the caller's: the block is shared memory. If it is a global, so is what is in front
    // of it, or else the access ends the process with words about it.
    let found = unsafe { header.read() };
    let (bytes, allocated, freed) = (found.bytes(), found.allocated, found.freed);
    match found.state() {
        USED => header,
        FREE => fatal(&format!(
            "{doing} {block:p}{}: these {bytes} bytes of node {allocated} were freed before, on \
             node {freed}{}",
            at(caller),
            found.site()
        )),
        _ => fatal(&format!(
            "{doing} {block:p}{}: no block begins there, or what stands in front was overwritten",
            at(caller)
        )),
    }
}

/// 0 for what the memory did; -1 with words for what it refused.
fn told(done: Option<Result<(), MemoryError>>) -> c_int {
    match done {
        Some(Ok(())) => 0,
        Some(Err(why)) => {
            refused(&why, libc::EINVAL);
            -1
        }
        None => {
            refused(&"the run has not begun, or has ended", libc::EINVAL);
            -1
        }
    }
}

/// Asks for what so many bytes lie on, and does not wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn dh_prefetch(at: *const c_void, bytes: usize) -> c_int {
    let _inside = Inside::enter();
    told(memory().map(|(_, memory)| memory.prefetch(at.addr(), bytes)))
}

/// Sends all other nodes what so many bytes lie on, where this node has it.
#[unsafe(no_mangle)]
pub extern "C" fn dh_push(at: *const c_void, bytes: usize) -> c_int {
    let _inside = Inside::enter();
    told(memory().map(|(_, memory)| memory.push(at.addr(), bytes)))
}

/// Asks for what so many bytes lie on, and waits until all of it may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_fetch(at: *const c_void, bytes: usize) -> c_int {
    let _inside = Inside::enter();
    if !is_shared(at, bytes) {
        return 0;
    }
    // So many requests may be under way.
    for from in (0..bytes).step_by(1024 * PAGE) {
        let place = at.wrapping_byte_add(from);
        let part = (bytes - from).min(1024 * PAGE);
        if dh_prefetch(place, part) != 0 {
            return -1;
        }
        let pages = (0..part).step_by(PAGE).chain([part - 1]);
        for page in pages {
            // SAFETY: the caller's: so many bytes may be read there.
            unsafe { place.byte_add(page).cast::<u8>().read_volatile() };
        }
    }
    0
}

/// From here on so many blocks of one size that this thread allocates, one after the other, are
/// one minipage, as far as they fit on a page. The number before.
#[unsafe(no_mangle)]
pub extern "C" fn dh_chunk(blocks: usize) -> usize {
    let _inside = Inside::enter();
    let blocks = blocks.clamp(1, PAGE);
    let (each, next, left) = (0, 0, 0);
    CHUNK
        .replace(Chunk {
            blocks,
            each,
            next,
            left,
        })
        .blocks
}

/// So many blocks of zeros, one block for `free`, each of them on pages of its own. They begin so
/// many bytes apart as `stride` then says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_malloc_each(
    count: usize,
    bytes: usize,
    stride: *mut usize,
) -> *mut c_void {
    let _inside = Inside::enter();
    let each = bytes.max(1).checked_next_multiple_of(PAGE);
    let Some(all) = each.and_then(|each| each.checked_mul(count)) else {
        let why = format!("allocating {count} times {bytes} bytes: out of range");
        refused(&why, libc::ENOMEM);
        return std::ptr::null_mut();
    };
    let Some((block, is_zero)) = allocate(all, PAGE, 0) else {
        return std::ptr::null_mut();
    };
    // SAFETY: the block has so many bytes; the caller has room for a number, or null.
    unsafe {
        if !is_zero {
            block.write_bytes(0, all);
        }
        if !stride.is_null() {
            stride.write(each.unwrap_or_default());
        }
    }
    block.cast()
}

/// `calloc`.
pub fn dh_calloc(count: usize, bytes: usize) -> *mut c_void {
    dh_calloc_from(count, bytes, 0)
}

/// `realloc`.
pub unsafe fn dh_realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { dh_realloc_from(block, bytes, 0) }
}

/// `strdup`.
pub unsafe fn dh_strdup(text: *const c_char) -> *mut c_char {
    // SAFETY: the caller's: a string.
    unsafe { dh_strndup(text, libc::strlen(text)) }
}

/// `malloc`, called there.
#[unsafe(no_mangle)]
pub extern "C" fn dh_malloc_from(bytes: usize, caller: usize) -> *mut c_void {
    let _inside = Inside::enter();
    allocate(bytes, 16, caller).map_or(std::ptr::null_mut(), |(block, _)| block.cast())
}

/// `calloc`, called there.
#[unsafe(no_mangle)]
pub extern "C" fn dh_calloc_from(count: usize, bytes: usize, caller: usize) -> *mut c_void {
    let _inside = Inside::enter();
    let Some(all) = count.checked_mul(bytes) else {
        refused(
            &format!("allocating {count} times {bytes} bytes: out of range"),
            libc::ENOMEM,
        );
        return std::ptr::null_mut();
    };
    match allocate(all, 16, caller) {
        None => std::ptr::null_mut(),
        Some((block, is_zero)) => {
            if !is_zero {
                // SAFETY: the block has so many bytes.
                unsafe { block.write_bytes(0, all) };
            }
            block.cast()
        }
    }
}

/// `realloc`, called there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_realloc_from(
    block: *mut c_void,
    bytes: usize,
    caller: usize,
) -> *mut c_void {
    let _inside = Inside::enter();
    if block.is_null() {
        return dh_malloc_from(bytes, caller);
    }
    if is_gone(block) {
        refused(&"growing a block after the run has ended", libc::ENOMEM);
        return std::ptr::null_mut();
    }
    // SAFETY: the caller's, as of `realloc`.
    let had = unsafe { usable(block, "growing", caller) };
    let shared = is_shared(block, 1);
    let isolates = memory().is_some_and(|(_, memory)| memory.isolates());
    if shared && !isolates && bytes <= had && bytes >= had / 2 {
        return block;
    }
    let new = dh_malloc_from(bytes, caller);
    if !new.is_null() {
        // SAFETY: both blocks have so many bytes, and the new one is nobody else's.
        unsafe {
            std::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), had.min(bytes));
            dh_free_from(block, caller);
        }
    }
    new
}

/// `free`, called there, of what this module or the C library allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_free_from(block: *mut c_void, caller: usize) {
    let _inside = Inside::enter();
    if block.is_null() || is_gone(block) {
        return;
    }
    if !is_shared(block, 1) {
        let what = match block.addr() {
            place if site::is_program(place) => Some("is a constant or a function of the program"),
            place if is_on_stack(place) => Some("is on the stack of this thread"),
            _ => None,
        };
        if let Some(what) = what {
            fatal(&format!(
                "freeing {block:p}{}: it {what}, and no block",
                at(caller)
            ));
        }
        // SAFETY: the caller's, as of `free`: the C library allocated it (`getcwd`, say).
        return unsafe { libc::free(block) };
    }
    // SAFETY: shared memory, by the test above, at which a page begins.
    if block.addr().is_multiple_of(PAGE) && unsafe { mapped_bytes(block) }.is_some() {
        fatal(&format!(
            "freeing {block:p}{}: it was mapped by mmap",
            at(caller)
        ));
    }
    // SAFETY: shared memory, by the test above.
    let header = unsafe { header(block, "freeing", caller) };
    // SAFETY: a header of this module, which the caller's thread alone uses now.
    let bytes = unsafe {
        let bytes = (*header).bytes();
        (*header).bytes = bytes as u64 | (FREE * STATE);
        (*header).site = caller as u32;
        (*header).freed = memory().map_or(0, |(node, _)| *node as u16);
        bytes
    };
    if let Some((_, memory)) = memory().filter(|(_, memory)| memory.isolates()) {
        let (at, all) = (block.addr() - HEADER, bytes + HEADER);
        if let Err(why) = memory.free_at(at, all, site::of_block(caller)) {
            cannot(&format!("freeing {block:p}{}", self::at(caller)), &why);
        }
        return;
    }
    freed()
        .entry(bytes)
        .or_default()
        .push(block.expose_provenance());
}

/// `malloc_usable_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_malloc_usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's.
    unsafe { usable(block, "using", 0) }
}

/// # Safety
/// As of `malloc_usable_size`.
unsafe fn usable(block: *mut c_void, doing: &str, caller: usize) -> usize {
    if block.is_null() || is_gone(block) {
        return 0;
    }
    if !is_shared(block, 1) {
        // SAFETY: the caller's: the C library allocated it.
        return unsafe { libc::malloc_usable_size(block) };
    }
    // SAFETY: shared memory, by the test above.
    unsafe { (*header(block, doing, caller)).bytes() }
}

fn aligned(align: usize, bytes: usize) -> *mut c_void {
    allocate(bytes, align, 0).map_or(std::ptr::null_mut(), |(block, _)| block.cast())
}

/// `aligned_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_aligned_alloc(align: usize, bytes: usize) -> *mut c_void {
    let _inside = Inside::enter();
    aligned(align, bytes)
}

/// `memalign`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_memalign(align: usize, bytes: usize) -> *mut c_void {
    let _inside = Inside::enter();
    aligned(align, bytes)
}

/// `valloc`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_valloc(bytes: usize) -> *mut c_void {
    let _inside = Inside::enter();
    aligned(PAGE, bytes)
}

/// `pvalloc`.
#[unsafe(no_mangle)]
pub extern "C" fn dh_pvalloc(bytes: usize) -> *mut c_void {
    let _inside = Inside::enter();
    match bytes.checked_next_multiple_of(PAGE) {
        Some(bytes) => aligned(PAGE, bytes),
        None => aligned(PAGE, bytes - PAGE),
    }
}

/// `posix_memalign`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_posix_memalign(
    into: *mut *mut c_void,
    align: usize,
    bytes: usize,
) -> c_int {
    let _inside = Inside::enter();
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let block = aligned(align, bytes);
    if block.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's, as of `posix_memalign`.
    unsafe { into.write(block) };
    0
}

/// `strdup`, called there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_strdup_from(text: *const c_char, caller: usize) -> *mut c_char {
    let _inside = Inside::enter();
    // SAFETY: the caller's: a string.
    unsafe { copied(text, libc::strlen(text), caller) }
}

/// `strndup`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_strndup(text: *const c_char, most: usize) -> *mut c_char {
    let _inside = Inside::enter();
    // SAFETY: the caller's.
    unsafe { copied(text, most, 0) }
}

/// # Safety
/// As of `strndup`.
unsafe fn copied(text: *const c_char, most: usize, caller: usize) -> *mut c_char {
    // SAFETY: the caller's: a string, or so many bytes.
    let bytes = unsafe { libc::strnlen(text, most) };
    let block = dh_malloc_from(bytes + 1, caller).cast::<c_char>();
    if !block.is_null() {
        // SAFETY: both have so many bytes, and the block one more.
        unsafe {
            std::ptr::copy_nonoverlapping(text, block, bytes);
            block.add(bytes).write(0);
        }
    }
    block
}

/// `getline`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_getline(
    line: *mut *mut c_char,
    size: *mut usize,
    file: *mut libc::FILE,
) -> isize {
    // SAFETY: the caller's, as of `getline`.
    unsafe { dh_getdelim(line, size, c_int::from(b'\n'), file) }
}

/// `__getdelim`, which the C library's header calls for `getline` where the compiler optimises.
///
/// # Safety
/// As of `getdelim`.
#[unsafe(export_name = "dh___getdelim")]
pub unsafe extern "C" fn dh_inline_getdelim(
    line: *mut *mut c_char,
    size: *mut usize,
    delimiter: c_int,
    file: *mut libc::FILE,
) -> isize {
    // SAFETY: the caller's.
    unsafe { dh_getdelim(line, size, delimiter, file) }
}

/// `getdelim`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dh_getdelim(
    line: *mut *mut c_char,
    size: *mut usize,
    delimiter: c_int,
    file: *mut libc::FILE,
) -> isize {
    let (mut own, mut room) = (std::ptr::null_mut::<c_char>(), 0_usize);
    // SAFETY: both are this function's own; the file is the caller's.
    let read = unsafe { getdelim(&raw mut own, &raw mut room, delimiter, file) };
    if read < 0 {
        // SAFETY: the C library has allocated it, or it is null.
        unsafe { libc::free(own.cast()) };
        return read;
    }
    let bytes = read as usize + 1;
    // SAFETY: the caller's, as of `getdelim`: null, or a block of so many bytes.
    unsafe {
        if (*line).is_null() || *size < bytes {
            let grown = dh_realloc((*line).cast(), bytes.max(128));
            if grown.is_null() {
                libc::free(own.cast());
                set_errno(libc::ENOMEM);
                return -1;
            }
            line.write(grown.cast());
            size.write(bytes.max(128));
        }
        std::ptr::copy_nonoverlapping(own, *line, bytes);
        libc::free(own.cast());
    }
    read
}

unsafe extern "C" {
    fn getdelim(
        line: *mut *mut c_char,
        size: *mut usize,
        delimiter: c_int,
        file: *mut libc::FILE,
    ) -> isize;
}
