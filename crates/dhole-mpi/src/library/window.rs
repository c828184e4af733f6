//! Windows: memory of this process that others put words into and get words from, while it need
//! not call the library for them.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::mpsc;
use std::time::Duration;

use dhole_space::runtime_thread;
use mpi_sys as ffi;

use super::{Communicator, Inside, MpiError, checked, inside};

/// Bytes of a word, which is the unit of places in a window.
const WORD_BYTES: usize = size_of::<u64>();

/// A window of this process and of all others of its communicator, equally long. It is open for all
/// of them until the process ends.
pub(crate) struct Window {
    handle: ffi::MPI_Win,
    own: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: any thread may use the handle, under MPI_THREAD_MULTIPLE, without which the library is
// not taken as initialised; the memory is only reached as atomics.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Communicator {
    /// Windows of so many words, for which all processes have to ask. They hold zeros.
    ///
    /// The library may wait for the others without a limit, so a thread of its own asks it. Where
    /// that is late it stays in the library.
    pub(crate) fn windows(self, words: usize, within: Duration) -> Result<Window, MpiError> {
        let (tell, told) = mpsc::channel();
        let asks = move || {
            let made = inside().and_then(|inside| self.allocate(&inside, words));
            let _too_late = tell.send(made);
        };
        let started = runtime_thread::spawn("dhole-window", asks);
        started.map_err(|cause| MpiError::Call {
            call: "MPI_Win_allocate",
            said: format!("no thread that asks for it: {cause}"),
        })?;
        let made = told.recv_timeout(within);
        made.unwrap_or(Err(MpiError::Late(within)))
    }

    fn allocate(self, _: &Inside, words: usize) -> Result<Window, MpiError> {
        let mut at: *mut c_void = ptr::null_mut();
        // SAFETY: a communicator of ours and a constant of the library; the call writes an address
        // into `at` and a handle into `handle`.
        let handle = unsafe {
            let mut handle = ffi::RSMPI_WIN_NULL;
            let (bytes, into) = ((words * WORD_BYTES) as ffi::MPI_Aint, (&raw mut at).cast());
            let (info, unit) = (ffi::RSMPI_INFO_NULL, WORD_BYTES as c_int);
            let code = ffi::MPI_Win_allocate(bytes, unit, info, self.0, into, &mut handle);
            checked("MPI_Win_allocate", code)?;
            let code = ffi::MPI_Win_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            checked("MPI_Win_set_errhandler", code)?;
            handle
        };
        if !is_unified(handle)? {
            return Err(MpiError::Separate);
        }
        let own = NonNull::new(at.cast::<AtomicU64>()).filter(|own| own.is_aligned());
        let own = own.ok_or_else(|| MpiError::Call {
            call: "MPI_Win_allocate",
            said: "memory that begins at no word".into(),
        })?;
        let window = Window { handle, own, words };
        for word in window.own() {
            word.store(0, Ordering::Relaxed);
        }
        // SAFETY: a window of ours. No process locks it for itself, so none need be asked.
        let code = unsafe { ffi::MPI_Win_lock_all(ffi::MPI_MODE_NOCHECK as c_int, handle) };
        checked("MPI_Win_lock_all", code)?;
        window.fence();
        Ok(window)
    }
}

/// Whether what a process stores in its window, and what others put there, is one memory.
fn is_unified(handle: ffi::MPI_Win) -> Result<bool, MpiError> {
    let (mut model, mut is_set): (*const c_int, c_int) = (ptr::null(), 0);
    let into = (&raw mut model).cast::<c_void>();
    // SAFETY: a window of ours; of this key the library writes the address of a number, which stays
    // as long as the window, and whether it has done so.
    unsafe {
        let key = ffi::MPI_WIN_MODEL as c_int;
        let code = ffi::MPI_Win_get_attr(handle, key, into, &mut is_set);
        checked("MPI_Win_get_attr", code)?;
        Ok(is_set != 0 && !model.is_null() && *model == ffi::MPI_WIN_UNIFIED as c_int)
    }
}

impl Window {
    /// The window of this process.
    pub(crate) fn own(&self) -> &[AtomicU64] {
        // SAFETY: the library has allocated as many words there, aligned (`allocate`). It keeps
        // them until the process ends, for the window is never freed. Any bytes are words, and
        // others change them while they are borrowed, as atomics may.
        unsafe { std::slice::from_raw_parts(self.own.as_ptr(), self.words) }
    }

    /// Orders what this processor stores in its window and loads from it, for all processes. In the
    /// unified model the window is the processor's memory, so its own fence does; `MPI_Win_sync`
    /// would be one too, behind locks of the library.
    pub(crate) fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    /// Begins to put a word into the window of a process and to get words from there, into `room`.
    ///
    /// # Panics
    /// If those are too many ranges, or not all of them are in the window.
    pub(crate) fn begin(
        &self,
        _: &Inside,
        rank: usize,
        put: Option<(usize, u64)>,
        gets: &[Range<usize>],
        mut room: Vec<u64>,
    ) -> Result<Transfer, MpiError> {
        assert!(gets.len() <= MOST_GETS, "{} ranges", gets.len());
        let is_within = |range: &Range<usize>| range.start <= range.end && range.end <= self.words;
        let all_within = gets.iter().all(is_within) && put.is_none_or(|(at, _)| at < self.words);
        assert!(all_within, "{gets:?} of {} words", self.words);
        let words: usize = gets.iter().map(ExactSizeIterator::len).sum();
        room.clear();
        // Behind those that are got lie the word that is put, and what is got in its place.
        let (value, other) = put.map_or((0, 0), |(_, value)| (value, !value));
        room.extend((0..words).map(|_| 0).chain([value, other]));
        let mut transfer = Transfer {
            // SAFETY: the library is initialised, so its constants are.
            requests: [unsafe { ffi::RSMPI_REQUEST_NULL }; PARTS],
            room,
            words,
            is_complete: false,
        };
        let (rank, mut filled) = (rank as c_int, 0);
        let (first, others) = transfer.requests.split_at_mut(1);
        if let Some((at, _)) = put {
            // SAFETY: a window of ours, of which the target has as many words, by the test above.
            // The word belongs to `transfer`, which gives it back only when the request is
            // complete, and does not move: it is in the buffer of a vector that is not changed.
            let code = unsafe {
                let from = transfer.room.as_ptr().add(words).cast::<c_void>();
                let kind = ffi::RSMPI_UINT64_T;
                let (at, handle) = (at as ffi::MPI_Aint, self.handle);
                ffi::MPI_Rput(from, 1, kind, rank, at, 1, kind, handle, &mut first[0])
            };
            checked("MPI_Rput", code)?;
        }
        let put_at = put.map(|(at, _)| at..at + 1);
        let parts = gets.iter().filter(|range| !range.is_empty());
        for (range, request) in parts.chain(&put_at).zip(others) {
            if Some(range) == put_at.as_ref() {
                filled = words + 1;
            }
            let count = c_int::try_from(range.len()).unwrap_or(c_int::MAX);
            // SAFETY: as above; the ranges lie behind each other in the room, which has as many
            // words as all of them together, and nobody reads it before all are complete.
            let code = unsafe {
                let into = transfer.room.as_mut_ptr().add(filled).cast::<c_void>();
                let kind = ffi::RSMPI_UINT64_T;
                let (at, handle) = (range.start as ffi::MPI_Aint, self.handle);
                ffi::MPI_Rget(into, count, kind, rank, at, count, kind, handle, request)
            };
            checked("MPI_Rget", code)?;
            filled += range.len();
        }
        Ok(transfer)
    }
}

/// The most ranges that a transfer gets.
const MOST_GETS: usize = 2;
/// They, what is put, and what is got to see that it is there.
const PARTS: usize = MOST_GETS + 2;

/// What is put and got at once. Its words stay where they are until it is complete.
pub(crate) struct Transfer {
    requests: [ffi::MPI_Request; PARTS],
    room: Vec<u64>,
    /// How many words are got.
    words: usize,
    is_complete: bool,
}

impl Transfer {
    /// Whether what is got has come, and the library needs what is put no more.
    pub(crate) fn is_complete(&mut self, _: &Inside) -> Result<bool, MpiError> {
        for request in &mut self.requests {
            let mut flag: c_int = 0;
            // SAFETY: a request of ours, or none any more, of which the library says that it is
            // complete.
            let code = unsafe { ffi::MPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
            checked("MPI_Test", code)?;
            if flag == 0 {
                return Ok(false);
            }
        }
        self.is_complete = true;
        Ok(true)
    }

    /// Whether what was put was there when it was got, once all is complete.
    pub(crate) fn is_put(&self) -> bool {
        self.is_complete && self.room[self.words] == self.room[self.words + 1]
    }

    /// What was got, where it is complete.
    pub(crate) fn into_words(mut self) -> Vec<u64> {
        let mut words = match self.is_complete {
            true => std::mem::take(&mut self.room),
            false => Vec::new(),
        };
        words.truncate(self.words);
        words
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        if !self.is_complete {
            // The library may still read the words, or write them.
            std::mem::forget(std::mem::take(&mut self.room));
        }
    }
}
