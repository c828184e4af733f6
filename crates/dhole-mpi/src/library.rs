//! The MPI library, as little of it as the port takes, without a way to use it wrongly: what it
//! reads or writes later belongs to the request, and nothing is called before it is initialised or
//! after it is finalised.
#![expect(unsafe_code, reason = "the library is written in C")]

pub(super) mod window;

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use dhole_model::unpoisoned::{lock, read, write};
use mpi_sys as ffi;
use thiserror::Error;

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
    /// What others put into a window is not what its process finds there, until both say so.
    #[error("the MPI library's windows are not of the unified model (MPI_WIN_MODEL)")]
    Separate,
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
    let phase = read(&PHASE);
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
    // SAFETY: the call writes into a text that is as long as the library wants it, and into the
    // number; it reads nothing but the code.
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
    let mut phase = write(&PHASE);
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
    lock(&AT_EXIT).push(Box::new(before));
}

/// At the exit of the process. The other threads of the process are still there.
extern "C" fn finalise() {
    const LONGEST: Duration = Duration::from_secs(1);
    let closed = std::panic::catch_unwind(|| {
        let all = std::mem::take(&mut *lock(&AT_EXIT));
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
        let _one = lock(&ONE);
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
    ) -> Result<UnderWay, MpiError> {
        let bytes = c_int::try_from(message.len()).unwrap_or(c_int::MAX);
        let mut sending = UnderWay {
            // SAFETY: the library is initialised, so its constants are.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            bytes: message,
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
                sending.bytes.as_ptr().cast::<c_void>(),
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

    /// Receives of messages of at most `room` bytes, one for each sender and its tag. Nothing is
    /// received yet.
    pub fn post(
        self,
        _: &Inside,
        senders: &[(usize, c_int)],
        room: usize,
    ) -> Result<Posted, MpiError> {
        let count = c_int::try_from(room).unwrap_or(c_int::MAX);
        let mut posted = Posted::default();
        for &(from, tag) in senders {
            let bytes = NonNull::from(Box::leak(vec![0_u8; room].into_boxed_slice()));
            let into = bytes.cast::<c_void>().as_ptr();
            // SAFETY: a communicator of ours; as many bytes are there as the library is told, and
            // they are given back only when it has forgotten the request.
            let request = unsafe {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let (from, kind) = (from as c_int, ffi::RSMPI_UINT8_T);
                let code = ffi::MPI_Recv_init(into, count, kind, from, tag, self.0, &mut request);
                checked("MPI_Recv_init", code)?;
                request
            };
            posted.requests.push(request);
            posted.bytes.push(bytes);
            posted.phases.push(Ready::Idle);
        }
        Ok(posted)
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

/// A message on its way out or in, and its bytes, which stay where they are until it is complete.
pub(super) struct UnderWay {
    request: ffi::MPI_Request,
    bytes: Vec<u8>,
    under_way: bool,
}

// SAFETY: a request is a handle that any thread may use; whoever has it has it alone, and the bytes
// with it.
unsafe impl Send for UnderWay {}

impl UnderWay {
    /// Whether the library needs the bytes no more.
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
            false => std::mem::take(&mut self.bytes),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.under_way {
            // The library may still read the bytes, or write them.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

/// Receives that are used again and again, each of one sender, so that nobody waits behind another.
/// While they wait, the library puts the next message where it is read, which takes half as long as
/// to look for one and then to receive it.
#[derive(Default)]
pub(super) struct Posted {
    requests: Vec<ffi::MPI_Request>,
    bytes: Vec<NonNull<[u8]>>,
    phases: Vec<Ready>,
    /// Which has received something that nobody has taken, and how many bytes.
    found: Option<(usize, usize)>,
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

// SAFETY: requests are handles that any thread may use; whoever has them has them alone, and the
// bytes with them.
unsafe impl Send for Posted {}

impl Posted {
    /// Receive `at` waits for the next message, unless it does, or has one that nobody has taken:
    /// what it received before is gone.
    pub fn wait(&mut self, _: &Inside, at: usize) -> Result<(), MpiError> {
        if self.found.is_some_and(|(found, _)| found == at) {
            return Ok(());
        }
        match self.phases[at] {
            Ready::Waits => return Ok(()),
            Ready::Broken | Ready::Over => return Err(MpiError::Over),
            Ready::Idle => self.phases[at] = Ready::Broken,
        }
        // SAFETY: the request is ours and not active; its bytes are there, and nobody looks at
        // them, for that borrows this.
        let code = unsafe { ffi::MPI_Start(&mut self.requests[at]) };
        checked("MPI_Start", code)?;
        self.phases[at] = Ready::Waits;
        Ok(())
    }

    /// Whether something has come for one that waits, which is left there.
    pub fn has_come(&mut self, _: &Inside) -> Result<bool, MpiError> {
        if self.found.is_some() {
            return Ok(true);
        }
        let waits = |at: &usize| self.phases[*at] == Ready::Waits;
        let mut waiting = (0..self.phases.len()).filter(waits);
        let Some(first) = waiting.next() else {
            return Ok(false);
        };
        let alone = waiting.next().is_none();
        let mut status = MaybeUninit::<ffi::MPI_Status>::uninit();
        let (mut at, mut flag): (c_int, c_int) = (first as c_int, 0);
        let (count, status_at) = (self.requests.len() as c_int, status.as_mut_ptr());
        // Of one it is seen at once what comes while one looks; of many, in Open MPI, with the next
        // look.
        // SAFETY: the requests are ours, and as many, and the one is active; those that are not, or
        // null, the library passes over. What is written outlives the call.
        let code = unsafe {
            match alone {
                true => ffi::MPI_Test(&mut self.requests[first], &mut flag, status_at),
                false => {
                    let requests = self.requests.as_mut_ptr();
                    ffi::MPI_Testany(count, requests, &mut at, &mut flag, status_at)
                }
            }
        };
        if let Err(error) = checked("MPI_Testany", code) {
            // Of which of them that is, nobody knows.
            let waiting = self.phases.iter_mut().filter(|p| **p == Ready::Waits);
            waiting.for_each(|phase| *phase = Ready::Broken);
            return Err(error);
        }
        let at = usize::try_from(at).ok().filter(|_| flag != 0);
        let Some((at, phase)) = at.and_then(|at| Some((at, self.phases.get_mut(at)?))) else {
            return Ok(false);
        };
        *phase = Ready::Idle;
        let mut bytes: c_int = 0;
        // SAFETY: the library has written the status, for a request is complete; the number
        // outlives the call.
        let code = unsafe { ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut bytes) };
        checked("MPI_Get_count", code)?;
        self.found = Some((at, (bytes.max(0) as usize).min(self.bytes[at].len())));
        Ok(true)
    }

    /// For which a message has been found to have come, and how long that is. It waits no more.
    pub fn take(&mut self) -> Option<(usize, usize)> {
        self.found.take()
    }

    /// What receive `at` received last; nothing while it waits for more.
    pub fn bytes(&self, at: usize) -> &[u8] {
        match self.phases[at] {
            // SAFETY: they are there, written when they were made; the library writes them only
            // while this waits, which begins with this borrowed mutably.
            Ready::Idle => unsafe { self.bytes[at].as_ref() },
            Ready::Waits | Ready::Broken | Ready::Over => &[],
        }
    }

    /// Waits for no more, ever. What a message is being received into may stay with the library:
    /// then this is an error, after so long.
    pub fn end(&mut self, inside: &Inside, within: Duration) -> Result<(), MpiError> {
        let begun = Instant::now();
        let mut ended = Ok(());
        for at in 0..self.requests.len() {
            let left = within.saturating_sub(begun.elapsed());
            // Whatever becomes of one, the others end.
            ended = ended.and(self.end_one(inside, at, left));
        }
        ended
    }

    fn end_one(&mut self, _: &Inside, at: usize, within: Duration) -> Result<(), MpiError> {
        let (request, phase) = (&mut self.requests[at], &mut self.phases[at]);
        if *phase == Ready::Waits {
            *phase = Ready::Broken;
            // SAFETY: the request is ours, and active.
            checked("MPI_Cancel", unsafe { ffi::MPI_Cancel(request) })?;
            let begun = Instant::now();
            let mut flag: c_int = 0;
            while flag == 0 {
                // SAFETY: the request is ours, and active; the number outlives the call.
                let code = unsafe { ffi::MPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE) };
                checked("MPI_Test", code)?;
                if flag == 0 && begun.elapsed() > within {
                    return Err(MpiError::Late(within));
                }
                std::thread::yield_now();
            }
            *phase = Ready::Idle;
        }
        match *phase {
            Ready::Over => return Ok(()),
            Ready::Broken | Ready::Waits => return Err(MpiError::Over),
            Ready::Idle => *phase = Ready::Broken,
        }
        // SAFETY: the request is ours, and not active. It is null then.
        checked("MPI_Request_free", unsafe {
            ffi::MPI_Request_free(request)
        })?;
        *phase = Ready::Over;
        Ok(())
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        const LONGEST: Duration = Duration::from_secs(1);
        let _ = inside().and_then(|inside| self.end(&inside, LONGEST));
        for (bytes, phase) in self.bytes.iter().zip(&self.phases) {
            if *phase == Ready::Over {
                // SAFETY: made of a box, and the library has forgotten them.
                drop(unsafe { Box::from_raw(bytes.as_ptr()) });
            }
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
    /// Begins to receive it at the beginning of `into`, which is made as long where it is shorter:
    /// its bytes may still lie with the sender, who may stop at any time.
    pub fn receive(mut self, _: &Inside, mut into: Vec<u8>) -> Result<Receiving, MpiError> {
        if into.len() < self.bytes {
            into.resize(self.bytes, 0);
        }
        let mut receiving = UnderWay {
            // SAFETY: the library is initialised, so its constants are.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            bytes: into,
            under_way: true,
        };
        // SAFETY: the message is received once, for this consumes it; the room is as much as there
        // is, belongs to `receiving`, and is given back only when the request is complete.
        let code = unsafe {
            ffi::MPI_Imrecv(
                receiving.bytes.as_mut_ptr().cast::<c_void>(),
                c_int::try_from(self.bytes).unwrap_or(c_int::MAX),
                ffi::RSMPI_UINT8_T,
                &mut self.message,
                &mut receiving.request,
            )
        };
        // Where this fails, nobody knows what the library does with the room.
        checked("MPI_Imrecv", code)?;
        Ok(Receiving {
            room: receiving,
            bytes: self.bytes,
        })
    }
}

/// A message that is being received, and how long it is.
pub(super) struct Receiving {
    room: UnderWay,
    bytes: usize,
}

impl Receiving {
    /// Whether all of it has come.
    pub fn is_complete(&mut self, inside: &Inside) -> Result<bool, MpiError> {
        self.room.is_complete(inside)
    }

    /// What it was received into, and how much of that it is, once it is complete.
    pub fn into_buffer(self) -> Option<(Vec<u8>, usize)> {
        let complete = !self.room.under_way;
        complete.then(|| (self.room.into_buffer(), self.bytes))
    }
}
