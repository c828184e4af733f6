//! The MPI library, as little of it as the port takes, without a way to use it wrongly: what it
//! reads or writes later belongs to the request, and nothing is called before it is initialised or
//! after it is finalised.
#![expect(unsafe_code, reason = "the library is written in C")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use mpi_sys as ffi;
use thiserror::Error;

use crate::sync::locked;

/// Why the library did not do what it was asked to.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MpiError {
    /// The library's own error.
    #[error("{call}: {said}")]
    Call {
        /// The function.
        call: &'static str,
        /// What the library says of it.
        said: String,
    },
    /// Several threads may not use it at once.
    #[error(
        "the MPI library offers thread level {offered} where MPI_THREAD_MULTIPLE ({needed}) is \
         needed"
    )]
    Threads {
        /// What it offers.
        offered: i32,
        /// What it takes.
        needed: i32,
    },
    /// It is not initialised, or finalised already.
    #[error("MPI is not initialised, or is finalised already")]
    Over,
    /// Not all processes did their part in time.
    #[error("not all processes came within {0:?}")]
    Late(Duration),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Running,
    Over,
}

/// Whether the library may be called. Whoever calls it holds this shared, so that none does when
/// it is finalised.
static PHASE: RwLock<Phase> = RwLock::new(Phase::Before);

/// What is to be done at the exit of the process before the library is finalised.
static AT_EXIT: Mutex<Vec<Box<dyn Fn() -> Finalise + Send>>> = Mutex::new(Vec::new());

/// Whether the library is finalised at the exit of the process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Finalise {
    Yes,
    /// That would wait for a process that does not come: the launcher ends all instead.
    No,
}

/// The right to call the library. Two must not be held by one thread.
pub(super) struct Inside {
    _phase: RwLockReadGuard<'static, Phase>,
}

/// Begins calls of the library.
pub(super) fn inside() -> Result<Inside, MpiError> {
    let phase = PHASE.read().unwrap_or_else(PoisonError::into_inner);
    match *phase {
        Phase::Running => Ok(Inside { _phase: phase }),
        Phase::Before | Phase::Over => Err(MpiError::Over),
    }
}

/// Makes an error of what a function returned.
fn checked(call: &'static str, code: c_int) -> Result<(), MpiError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut bytes: c_int = 0;
    // SAFETY: the text is as long as the library wants it; only called within `Inside`.
    let told =
        unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast::<c_char>(), &mut bytes) };
    let bytes = usize::try_from(bytes).unwrap_or(0).min(text.len());
    let said = match told == ffi::MPI_SUCCESS as c_int {
        true => String::from_utf8_lossy(&text[..bytes]).into_owned(),
        false => format!("error {code}"),
    };
    Err(MpiError::Call { call, said })
}

/// Initialises the library, unless the program has done so itself.
pub(super) fn initialise() -> Result<(), MpiError> {
    let mut phase = PHASE.write().unwrap_or_else(PoisonError::into_inner);
    match *phase {
        Phase::Running => return Ok(()),
        Phase::Over => return Err(MpiError::Over),
        Phase::Before => {}
    }
    let (mut there, mut offered): (c_int, c_int) = (0, 0);
    // SAFETY: these may be called at any time, and the numbers outlive the calls. Nobody of ours
    // is in the library, for the phase is held alone.
    let needed = unsafe {
        checked("MPI_Initialized", ffi::MPI_Initialized(&mut there))?;
        let needed = ffi::RSMPI_THREAD_MULTIPLE;
        if there != 0 {
            checked("MPI_Query_thread", ffi::MPI_Query_thread(&mut offered))?;
        } else {
            let code = ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), needed, &mut offered);
            checked("MPI_Init_thread", code)?;
        }
        needed
    };
    if offered < needed {
        return Err(MpiError::Threads { offered, needed });
    }
    *phase = Phase::Running;
    if there == 0 {
        // SAFETY: the function takes no argument and does not unwind.
        unsafe { libc::atexit(finalise) };
    }
    Ok(())
}

/// Has `before` done at the exit of the process.
pub(super) fn at_exit(before: impl Fn() -> Finalise + Send + 'static) {
    locked(&AT_EXIT).push(Box::new(before));
}

/// At the exit of the process. The other threads of the process are still there.
extern "C" fn finalise() {
    const LONGEST: Duration = Duration::from_secs(1);
    let closed = std::panic::catch_unwind(|| {
        let all = std::mem::take(&mut *locked(&AT_EXIT));
        all.iter().all(|before| before() == Finalise::Yes)
    });
    let begun = Instant::now();
    let mut phase = loop {
        // Whoever ends the process may do it within a call of ours, and then this never succeeds.
        if let Ok(phase) = PHASE.try_write() {
            break phase;
        }
        if begun.elapsed() > LONGEST {
            return;
        }
        std::thread::yield_now();
    };
    if *phase != Phase::Running {
        return;
    }
    *phase = Phase::Over;
    let mut over: c_int = 0;
    // SAFETY: the phase is held alone, so no thread of ours is in the library, and none will be.
    unsafe {
        let known = ffi::MPI_Finalized(&mut over) == ffi::MPI_SUCCESS as c_int;
        if known && over == 0 && matches!(closed, Ok(true)) {
            ffi::MPI_Finalize();
        }
    }
}

/// A communicator of dhole's own.
#[derive(Clone, Copy)]
pub(super) struct Communicator(ffi::MPI_Comm);

// SAFETY: a communicator is a handle that any thread may use, under MPI_THREAD_MULTIPLE, without
// which the library is not taken as initialised.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Communicator {
    /// One of this process alone.
    pub fn own(inside: &Inside) -> Result<Communicator, MpiError> {
        // SAFETY: the library is initialised, so its constants are.
        Self::like(inside, unsafe { ffi::RSMPI_COMM_SELF }, Duration::MAX)
    }

    /// One of all processes that were started together, which all have to ask for it.
    pub fn of_all(inside: &Inside, within: Duration) -> Result<Communicator, MpiError> {
        // SAFETY: as above.
        Self::like(inside, unsafe { ffi::RSMPI_COMM_WORLD }, within)
    }

    fn like(_: &Inside, other: ffi::MPI_Comm, within: Duration) -> Result<Communicator, MpiError> {
        /// Of two threads only one may be at it with the same communicator.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = locked(&ONE);
        // What is written later must stay where it is, also where it is not waited for any more.
        let made = Box::leak(Box::new(MaybeUninit::<ffi::MPI_Comm>::uninit()));
        // SAFETY: the place is never given back; it is written when the request is complete.
        let made = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let code = ffi::MPI_Comm_idup(other, made.as_mut_ptr(), &mut request);
            checked("MPI_Comm_idup", code)?;
            wait("MPI_Comm_idup", request, within)?;
            made.assume_init_read()
        };
        // SAFETY: a communicator of ours and a constant of the library.
        let code = unsafe { ffi::MPI_Comm_set_errhandler(made, ffi::RSMPI_ERRORS_RETURN) };
        checked("MPI_Comm_set_errhandler", code)?;
        Ok(Communicator(made))
    }

    /// The number of this process and how many there are.
    pub fn rank_and_size(self, _: &Inside) -> Result<(usize, usize), MpiError> {
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: a communicator of ours; the numbers outlive the calls.
        unsafe {
            checked("MPI_Comm_rank", ffi::MPI_Comm_rank(self.0, &mut rank))?;
            checked("MPI_Comm_size", ffi::MPI_Comm_size(self.0, &mut size))?;
        }
        Ok((rank.max(0) as usize, size.max(0) as usize))
    }

    /// What every process says, in the order of their numbers; each says at most 1 MiB.
    pub fn gather(
        self,
        _: &Inside,
        says: &[u8],
        size: usize,
        within: Duration,
    ) -> Result<Vec<Vec<u8>>, MpiError> {
        const MOST: usize = 1 << 20;
        let says = &says[..says.len().min(MOST)];
        // What the library reads and writes must stay where it is if it is not waited for.
        let length = Box::leak(Box::new(says.len() as c_int));
        let lengths = vec![0 as c_int; size].leak();
        // SAFETY: each of `size` processes brings one number; the memory is never given back.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let code = ffi::MPI_Iallgather(
                ptr::from_mut(length).cast::<c_void>(),
                size_of::<c_int>() as c_int,
                ffi::RSMPI_UINT8_T,
                lengths.as_mut_ptr().cast::<c_void>(),
                size_of::<c_int>() as c_int,
                ffi::RSMPI_UINT8_T,
                self.0,
                &mut request,
            );
            checked("MPI_Iallgather", code)?;
            wait("MPI_Iallgather", request, within)?;
        }
        let lengths = &*lengths;
        let within_limits = |&bytes: &c_int| usize::try_from(bytes).is_ok_and(|b| b <= MOST);
        if !lengths.iter().all(within_limits) {
            return Err(MpiError::Call {
                call: "MPI_Iallgather",
                said: "lengths that no sound process says".into(),
            });
        }
        let begins = lengths.iter().scan(0, |end, bytes| {
            let begin = *end;
            *end += bytes;
            Some(begin)
        });
        let begins: &[c_int] = begins.collect::<Vec<c_int>>().leak();
        let total: c_int = lengths.iter().sum();
        if total == 0 {
            // Open MPI refuses to gather nothing.
            return Ok(vec![Vec::new(); size]);
        }
        let (says, all) = (says.to_vec().leak(), vec![0_u8; total as usize].leak());
        // SAFETY: the lengths are those that the processes bring, and `all` has room for their
        // sum; the memory is never given back.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let code = ffi::MPI_Iallgatherv(
                says.as_ptr().cast::<c_void>(),
                says.len() as c_int,
                ffi::RSMPI_UINT8_T,
                all.as_mut_ptr().cast::<c_void>(),
                lengths.as_ptr(),
                begins.as_ptr(),
                ffi::RSMPI_UINT8_T,
                self.0,
                &mut request,
            );
            checked("MPI_Iallgatherv", code)?;
            wait("MPI_Iallgatherv", request, within)?;
        }
        let each = begins.iter().zip(lengths);
        let each = each.map(|(&begin, &bytes)| all[begin as usize..][..bytes as usize].to_vec());
        Ok(each.collect())
    }

    /// Begins to send a message. `matched` asks that it is complete only when the receiver has
    /// begun to take it.
    pub fn send(
        self,
        inside: &Inside,
        message: Vec<u8>,
        to: usize,
        tag: c_int,
        matched: bool,
    ) -> Result<Sending, MpiError> {
        let bytes = c_int::try_from(message.len()).unwrap_or(c_int::MAX);
        let mut sending = Sending {
            // SAFETY: the library is initialised, so its constants are.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            message,
            under_way: true,
        };
        let start = match matched {
            true => ffi::MPI_Issend,
            false => ffi::MPI_Isend,
        };
        // SAFETY: the bytes belong to `sending`, which gives them back only when the request is
        // complete, and changes them no more; as many are there.
        let code = unsafe {
            start(
                sending.message.as_ptr().cast::<c_void>(),
                bytes,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                self.0,
                &mut sending.request,
            )
        };
        if let Err(error) = checked("MPI_Isend", code) {
            sending.under_way = false;
            return Err(error);
        }
        sending.is_complete(inside)?;
        Ok(sending)
    }

    /// A receive of messages of at most `room` bytes, of any process or of one, that lies ready.
    pub fn post(
        self,
        _: &Inside,
        from: Option<usize>,
        tag: c_int,
        room: usize,
    ) -> Result<Posted, MpiError> {
        let count = c_int::try_from(room).unwrap_or(c_int::MAX);
        let bytes = NonNull::from(Box::leak(vec![0_u8; room].into_boxed_slice()));
        let into = bytes.cast::<c_void>().as_ptr();
        // SAFETY: a communicator of ours; as many bytes are there as the library is told, and they
        // are given back only when it has forgotten the request. Nothing is received yet.
        let request = unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let from = from.map_or(ffi::RSMPI_ANY_SOURCE, |from| from as c_int);
            let kind = ffi::RSMPI_UINT8_T;
            let code = ffi::MPI_Recv_init(into, count, kind, from, tag, self.0, &mut request);
            checked("MPI_Recv_init", code)?;
            request
        };
        let phase = Ready::Idle;
        Ok(Posted {
            request,
            bytes,
            phase,
        })
    }

    /// Takes hold of a message that has come, if one has, of a process.
    pub fn come(self, _: &Inside, from: usize, tag: c_int) -> Result<Option<Come>, MpiError> {
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        let mut flag: c_int = 0;
        // SAFETY: a communicator of ours; what is written outlives the call; the status is read
        // only where the library says that it has written it.
        unsafe {
            let from = from as c_int;
            let mut message = ffi::RSMPI_MESSAGE_NULL;
            let status = status.as_mut_ptr();
            let code = ffi::MPI_Improbe(from, tag, self.0, &mut flag, &mut message, status);
            checked("MPI_Improbe", code)?;
            if flag == 0 {
                return Ok(None);
            }
            let mut bytes: c_int = 0;
            let code = ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut bytes);
            checked("MPI_Get_count", code)?;
            Ok(Some(Come {
                message,
                bytes: bytes.max(0) as usize,
            }))
        }
    }

    /// Whether a message has come, which is left where it is.
    pub fn has_come(self, _: &Inside, from: usize, tag: c_int) -> Result<bool, MpiError> {
        let mut flag: c_int = 0;
        // SAFETY: a communicator of ours; the number outlives the call.
        let code = unsafe {
            ffi::MPI_Iprobe(
                from as c_int,
                tag,
                self.0,
                &mut flag,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        checked("MPI_Iprobe", code)?;
        Ok(flag != 0)
    }
}

/// Waits for a request that is not a message.
///
/// # Safety
/// The request is one, and what it reads and writes is never given back.
unsafe fn wait(
    call: &'static str,
    mut request: ffi::MPI_Request,
    within: Duration,
) -> Result<(), MpiError> {
    let begun = Instant::now();
    loop {
        let mut flag: c_int = 0;
        // SAFETY: the caller's promise.
        let code = unsafe { ffi::MPI_Test(&mut request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        checked(call, code)?;
        if flag != 0 {
            return Ok(());
        }
        if begun.elapsed() > within {
            return Err(MpiError::Late(within));
        }
        std::thread::yield_now();
    }
}

/// A message on its way out, and its bytes, which stay where they are until it is complete.
pub(super) struct Sending {
    request: ffi::MPI_Request,
    message: Vec<u8>,
    under_way: bool,
}

// SAFETY: a request is a handle that any thread may use; whoever has it has it alone.
unsafe impl Send for Sending {}

impl Sending {
    /// Whether the bytes are not needed any more.
    pub fn is_complete(&mut self, _: &Inside) -> Result<bool, MpiError> {
        if !self.under_way {
            return Ok(true);
        }
        let mut flag: c_int = 0;
        // SAFETY: the request is that of a message and not complete yet.
        let code = unsafe { ffi::MPI_Test(&mut self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
        checked("MPI_Test", code)?;
        self.under_way = flag == 0;
        Ok(!self.under_way)
    }

    /// The bytes, for another message, once this one is complete.
    pub fn into_buffer(mut self) -> Vec<u8> {
        match self.under_way {
            true => Vec::new(),
            false => std::mem::take(&mut self.message),
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.under_way {
            // The library may still read the bytes.
            std::mem::forget(std::mem::take(&mut self.message));
        }
    }
}

/// A receive that is used again and again. While it waits, the library puts the next message where
/// it is read, which takes half as long as to look for one and then to receive it.
pub(super) struct Posted {
    request: ffi::MPI_Request,
    bytes: NonNull<[u8]>,
    phase: Ready,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// The library has the request, and does not use it.
    Idle,
    /// It may write the bytes at any time.
    Waits,
    /// It did not do as it was told, and may do anything with the bytes for ever.
    Broken,
    /// It knows nothing of it any more.
    Over,
}

// SAFETY: a request is a handle that any thread may use; whoever has it has it alone, and the bytes
// with it.
unsafe impl Send for Posted {}

impl Posted {
    /// Waits for the next message, unless it does: what was received is gone.
    pub fn wait(&mut self, _: &Inside) -> Result<(), MpiError> {
        match self.phase {
            Ready::Waits => return Ok(()),
            Ready::Broken | Ready::Over => return Err(MpiError::Over),
            Ready::Idle => self.phase = Ready::Broken,
        }
        // SAFETY: the request is ours and not active; its bytes are there, and nobody looks at
        // them, for that borrows this.
        let code = unsafe { ffi::MPI_Start(&mut self.request) };
        checked("MPI_Start", code)?;
        self.phase = Ready::Waits;
        Ok(())
    }

    /// Whether the request is complete, which waits, and then waits no more.
    fn is_complete(&mut self, status: *mut ffi::MPI_Status) -> Result<bool, MpiError> {
        let mut flag: c_int = 0;
        // SAFETY: the request is active; where the status is written, it outlives the call.
        let code = unsafe { ffi::MPI_Test(&mut self.request, &mut flag, status) };
        let tested = checked("MPI_Test", code);
        self.phase = match (&tested, flag) {
            (Err(_), _) => Ready::Broken,
            (Ok(()), 0) => Ready::Waits,
            (Ok(()), _) => Ready::Idle,
        };
        tested.map(|()| flag != 0)
    }

    /// Who sent the message that has come since it waits, if one has, and how long that is.
    pub fn come(&mut self, inside: &Inside) -> Result<Option<(usize, usize)>, MpiError> {
        self.wait(inside)?;
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        if !self.is_complete(status.as_mut_ptr())? {
            return Ok(None);
        }
        let mut bytes: c_int = 0;
        // SAFETY: the library has written the status, for the request is complete; the number
        // outlives the call.
        unsafe {
            let status = status.as_ptr();
            let code = ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut bytes);
            checked("MPI_Get_count", code)?;
            let (from, bytes) = ((*status).MPI_SOURCE.max(0) as usize, bytes.max(0) as usize);
            Ok(Some((from, bytes.min(self.bytes.len()))))
        }
    }

    /// Whether one has come, which is left where it is.
    pub fn has_come(&mut self, inside: &Inside) -> Result<bool, MpiError> {
        self.wait(inside)?;
        let mut flag: c_int = 0;
        // SAFETY: the request is active; the number outlives the call.
        let code = unsafe {
            ffi::MPI_Request_get_status(self.request, &mut flag, ffi::RSMPI_STATUS_IGNORE)
        };
        checked("MPI_Request_get_status", code)?;
        Ok(flag != 0)
    }

    /// What was received last; nothing while it waits for more.
    pub fn bytes(&self) -> &[u8] {
        match self.phase {
            // SAFETY: they are there, written when they were made; the library writes them only
            // while this waits, which begins with this borrowed mutably.
            Ready::Idle => unsafe { self.bytes.as_ref() },
            Ready::Waits | Ready::Broken | Ready::Over => &[],
        }
    }

    /// Waits for no more, ever. What a message is being received into may stay with the library:
    /// then this is an error, after so long.
    pub fn end(&mut self, _: &Inside, within: Duration) -> Result<(), MpiError> {
        if self.phase == Ready::Waits {
            self.phase = Ready::Broken;
            // SAFETY: the request is ours, and active.
            checked("MPI_Cancel", unsafe { ffi::MPI_Cancel(&mut self.request) })?;
            let begun = Instant::now();
            // SAFETY: the library is initialised, so its constants are.
            while !self.is_complete(unsafe { ffi::RSMPI_STATUS_IGNORE })? {
                if begun.elapsed() > within {
                    self.phase = Ready::Broken;
                    return Err(MpiError::Late(within));
                }
                std::thread::yield_now();
            }
        }
        match self.phase {
            Ready::Over => return Ok(()),
            Ready::Broken | Ready::Waits => return Err(MpiError::Over),
            Ready::Idle => self.phase = Ready::Broken,
        }
        // SAFETY: the request is ours, and not active. It is null then.
        let code = unsafe { ffi::MPI_Request_free(&mut self.request) };
        checked("MPI_Request_free", code)?;
        self.phase = Ready::Over;
        Ok(())
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        const LONGEST: Duration = Duration::from_secs(1);
        let _ = inside().and_then(|inside| self.end(&inside, LONGEST));
        if self.phase == Ready::Over {
            // SAFETY: made of a box, and the library has forgotten them.
            drop(unsafe { Box::from_raw(self.bytes.as_ptr()) });
        }
    }
}

/// A message that has come and is nobody else's any more.
pub(super) struct Come {
    message: ffi::MPI_Message,
    /// How long it is.
    pub bytes: usize,
}

impl Come {
    /// Receives it at the beginning of `into`. Of one that does not fit the rest is lost, and that
    /// is an error.
    pub fn receive(mut self, _: &Inside, into: &mut [u8]) -> Result<(), MpiError> {
        let room = c_int::try_from(into.len()).unwrap_or(c_int::MAX);
        // SAFETY: the message is received once, for this consumes it; the room is as much as there
        // is.
        let code = unsafe {
            ffi::MPI_Mrecv(
                into.as_mut_ptr().cast::<c_void>(),
                room,
                ffi::RSMPI_UINT8_T,
                &mut self.message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        checked("MPI_Mrecv", code)
    }
}
