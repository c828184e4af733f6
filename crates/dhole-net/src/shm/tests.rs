//! Peers that write into the shared memory what no sound one does: each is cut off and told why,
//! and none makes this side panic, wait or grow.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dhole_model::{NodeId, Notify, SplitMix64};
use dhole_testkit::seeds;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};

use super::segment::Segment;
use super::{LOOK_AFTER, PIECE, Shm, ShmError, ShmLink};
use crate::parker::{Park, Parker};
use crate::ring::{CONTROL, Header, Kind, Reader, Writer};
use crate::{Loss, Mixed, Owed, Port, SendError, Tcp};

/// The largest frame here: one that needs several of the small rings.
const LARGEST: usize = 64 << 10;
const PEER: NodeId = NodeId(1);

/// A port, and the bare memory of its peer.
fn port_and_peer() -> (Shm, ShmLink) {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let ours = ShmLink::offer(here, 0).expect("memory");
    let theirs = ShmLink::accept(there).expect("the same memory");
    let port = Shm::with_largest(NodeId(0), vec![None, Some(ours)], LARGEST);
    (port.expect("a port"), theirs)
}

/// How the peer is lost, after polls that bring no frame.
fn loss(port: &Shm) -> Option<Loss> {
    let mut found = None;
    for _ in 0..10 {
        port.poll(&mut |_, frame| panic!("a frame of {} bytes", frame.len()));
        port.lost(&mut |_, loss| found = Some(loss));
    }
    found
}

fn assert_cut_off(port: &Shm, why: &str) {
    match loss(port) {
        Some(Loss::CutOff(what)) => assert!(what.contains(why), "\"{why}\" is not in \"{what}\""),
        other => panic!("{other:?} where it should be cut off for \"{why}\""),
    }
}

/// The peer's ring begins with `word`.
fn begins_with(word: u64) -> Shm {
    let (port, peer) = port_and_peer();
    let ring = peer.segment.words().len() / 2;
    peer.segment.words()[ring + CONTROL].store(word, Ordering::Release);
    port
}

/// The peer writes these records, whatever they say, each with as many bytes as it says.
fn writes(headers: &[Header]) -> Shm {
    let (port, peer) = port_and_peer();
    let mut writer = Writer::new();
    for &header in headers {
        let bytes = vec![1; header.bytes];
        let written = writer.write(peer.segment.ring(1), header, [&bytes[..]]);
        assert_eq!(written, Ok(true));
    }
    port
}

fn header(kind: Kind, bytes: usize) -> Header {
    Header { kind, bytes }
}

#[test]
fn headers_that_cannot_be_are_cut_off() {
    assert_cut_off(&begins_with(u64::MAX), "a record that begins with");
    assert_cut_off(&begins_with(9), "a record that begins with");
    // A whole frame of 16 MiB, of 4,096 bytes, and of as many as there are behind it in all.
    assert_cut_off(&begins_with(1 | (16 << 20) << 4), "beyond the ring");
    assert_cut_off(&begins_with(1 | 4_096 << 4), "beyond the ring");
    assert_cut_off(&begins_with(5), "a record that begins with 0x5");
}

#[test]
fn who_panics_over_a_frame_where_it_lies_has_taken_it() {
    let frame = |bytes| header(Kind::Whole, bytes);
    let port = writes(&[frame(8), frame(16)]);
    let panics = || port.poll_in_place(&mut |_, _| panic!("on purpose"));
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    let mut taken = Vec::new();
    port.poll(&mut |_, frame| taken.push(frame.len()));
    assert_eq!(taken, [16]);
}

#[test]
fn nothing_is_taken_of_who_was_cut_off_in_the_same_look() {
    let (port, peer) = port_and_peer();
    // Of which a rest is kept, for which room is looked for before anything is taken.
    assert_eq!(port.send(PEER, &[&[1; LARGEST]]), Ok(()));
    peer.segment.words()[0].store(u64::MAX, Ordering::Release);
    let frame = header(Kind::Whole, 8);
    let written = Writer::new().write(peer.segment.ring(1), frame, [&[1; 8][..]]);
    assert_eq!(written, Ok(true));
    assert_cut_off(&port, "has read up to");
}

#[test]
fn nothing_is_taken_of_who_is_cut_off_for_what_was_sent_meanwhile() {
    let (port, peer) = port_and_peer();
    peer.segment.words()[0].store(u64::MAX, Ordering::Release);
    let mut writer = Writer::new();
    for _ in 0..2 {
        let frame = header(Kind::Whole, 8);
        let written = writer.write(peer.segment.ring(1), frame, [&[1; 8][..]]);
        assert_eq!(written, Ok(true));
    }
    let mut taken = 0;
    port.poll(&mut |_, _| {
        taken += 1;
        // Until it is asked up to where the peer has read.
        while port.send(PEER, &[&[0; 1_000]]).is_ok() {}
    });
    assert_eq!(taken, 1);
}

#[test]
fn pieces_that_make_no_frame_are_cut_off() {
    let first = |total| Kind::First(total);
    assert_cut_off(&writes(&[header(Kind::Piece, 8)]), "belong to no frame");
    let too_large = writes(&[header(first(LARGEST + 1), 8)]);
    assert_cut_off(&too_large, "as the beginning of 65537");
    assert_cut_off(&writes(&[header(first(7), 8)]), "as the beginning of 7");
    let two = [header(first(100), 8), header(first(100), 8)];
    assert_cut_off(&writes(&two), "as the beginning of 100");
    let between = [header(first(100), 8), header(Kind::Whole, 8)];
    assert_cut_off(&writes(&between), "in the middle of another");
    let too_much = [header(first(12), 8), header(Kind::Piece, 8)];
    assert_cut_off(&writes(&too_much), "belong to no frame");
}

#[test]
fn pieces_of_nothing_are_cut_off_and_no_turn_is_without_end() {
    let nothing = header(Kind::Piece, 0);
    let first = header(Kind::First(100), 8);
    assert_cut_off(&writes(&[first, nothing]), "a piece of 0 bytes");
    // Every word that follows is the header of one more.
    let (port, peer) = port_and_peer();
    let words = &peer.segment.words()[peer.segment.words().len() / 2 + CONTROL..];
    for word in words {
        word.store(3, Ordering::Relaxed);
    }
    let written = Writer::new().write(peer.segment.ring(1), first, [&[1; 8][..]]);
    assert_eq!(written, Ok(true));
    words[2].store(3, Ordering::Release);
    assert_cut_off(&port, "a piece of 0 bytes");
}

#[test]
fn a_reader_that_was_never_there_is_cut_off() {
    for position in [600, 1 << 40, u64::MAX] {
        let (port, peer) = port_and_peer();
        let mut sent = Ok(());
        peer.segment.words()[0].store(position, Ordering::Release);
        for _ in 0..10 {
            sent = sent.and_then(|()| port.send(PEER, &[&[1; 1_000]]));
        }
        let Err(SendError::Lost { loss, .. }) = sent else {
            panic!("{position} was taken for a position, with {sent:?}");
        };
        assert!(matches!(loss, Loss::CutOff(_)), "{loss:?}");
    }
}

#[test]
fn whoever_waits_for_room_is_woken_however_much_was_freed() {
    for eighths in 1..=8 {
        let (port, peer) = port_and_peer();
        let ring = peer.segment.ring(1);
        let bytes = vec![1; Writer::longest_record(ring) * eighths / 8];
        let written = Writer::new().write(ring, header(Kind::Whole, bytes.len()), [&bytes[..]]);
        assert_eq!(written, Ok(true));
        ring.writer_waits().store(1, Ordering::SeqCst);
        assert_eq!(port.poll(&mut |_, _| ()), 1);
        let waits = ring.writer_waits().load(Ordering::SeqCst);
        assert_eq!(waits, 0, "after a frame of {} bytes", bytes.len());
    }
}

/// Whether a park would last, after which somebody is as up as before.
fn sleeps(port: &Shm) -> bool {
    let lies = port.prepare_park(Park::Fine, Duration::from_secs(60), &mut Vec::new());
    port.finish_park(Park::Fine);
    !port.doorbell.heard() && lies.is_some()
}

/// The peer takes what is there for it, as long as the port has more.
fn take_all(port: &Shm, peer: &ShmLink, reader: &mut Reader) {
    let ring = peer.segment.ring(0);
    loop {
        while let Some(header) = reader.peek(ring).expect("a sound port") {
            reader.copy(ring, header, &mut vec![0; header.bytes]);
        }
        reader.publish(ring);
        port.poll(&mut |_, _| ());
        if reader.is_empty(ring) {
            return;
        }
    }
}

#[test]
fn who_sleeps_already_is_woken_for_the_rest_of_a_frame() {
    let (port, peer) = port_and_peer();
    let mut wakers = Vec::new();
    assert!(
        port.prepare_park(Park::Fine, Duration::from_secs(60), &mut wakers)
            .is_some()
    );
    // As another thread would, while the first sleeps.
    assert_eq!(port.send(PEER, &[&[1; LARGEST]]), Ok(()));
    assert!(port.doorbell.heard(), "nobody would send the rest");
    port.finish_park(Park::Fine);
    assert!(sleeps(&port), "there is no room yet");
    let waits = peer.segment.ring(0).writer_waits();
    assert_eq!(waits.load(Ordering::SeqCst), 1, "for room");
}

#[test]
fn who_was_refused_behind_a_rest_does_not_sleep_once_the_rest_has_gone() {
    let (port, peer) = port_and_peer();
    assert_eq!(port.send(PEER, &[&[1; LARGEST]]), Ok(()));
    let refused = port.send(PEER, &[b"end"]);
    assert_eq!(refused, Err(SendError::Busy { to: PEER }));
    assert!(port.doorbell.heard());
    assert!(sleeps(&port), "there is no room yet");
    take_all(&port, &peer, &mut Reader::new());
    assert!(!sleeps(&port), "there is room, and no peer will tell");
    assert_eq!(port.send(PEER, &[b"end"]), Ok(()));
}

/// Two ports, with rings of so many bytes between them.
fn two(ring_bytes: usize) -> (Shm, Shm) {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let links = [ShmLink::offer(here, ring_bytes), ShmLink::accept(there)].map(Result::ok);
    let [ours, theirs] = links;
    let [port, peer] = [vec![None, ours], vec![theirs, None]];
    let port = Shm::with_largest(NodeId(0), port, LARGEST).expect("a port");
    let peer = Shm::with_largest(PEER, peer, LARGEST).expect("a port");
    (port, peer)
}

/// Two ports with rings of 1 MiB between them, of which one sends rounds of frames to the other.
struct Rounds {
    port: Shm,
    peer: Shm,
    sent: usize,
    taken: usize,
}

impl Rounds {
    const FRAME: usize = 4096;

    fn new() -> Rounds {
        let (port, peer) = two(ShmLink::RING_BYTES);
        Rounds {
            port,
            peer,
            sent: 0,
            taken: 0,
        }
    }

    /// Sends so many frames, which are taken then; whether there was room for all.
    fn pass(&mut self, frames: usize) -> bool {
        let frame = |number: usize| vec![number as u8; Self::FRAME - number % 100];
        let mut had_room = true;
        for _ in 0..frames {
            match self.port.send(PEER, &[&frame(self.sent)]) {
                Ok(()) => self.sent += 1,
                Err(SendError::Busy { .. }) => had_room = false,
                Err(other) => panic!("{other}"),
            }
        }
        self.peer.poll(&mut |_, bytes| {
            assert!(bytes == frame(self.taken), "frame {}", self.taken);
            self.taken += 1;
        });
        assert_eq!(self.taken, self.sent);
        had_room
    }

    /// Up to where the ring was ever written to.
    fn used(&self) -> usize {
        let link = self.port.links[1].as_ref().expect("a link");
        let words = link.segment.words();
        let is_used = |word: &AtomicU64| word.load(Ordering::SeqCst) != 0;
        let last = words[CONTROL..words.len() / 2].iter().rposition(is_used);
        8 * (1 + last.expect("something was written"))
    }
}

#[test]
fn where_little_is_under_way_little_of_the_ring_is_used() {
    let mut rounds = Rounds::new();
    assert!((0..1_000).all(|_| rounds.pass(1)));
    assert!(rounds.used() <= (32 << 10) + 4 * Rounds::FRAME);
    // Now and then it is a round's first that is asked whether all before it were read.
    let mut rounds = Rounds::new();
    assert!((0..1_000).all(|_| rounds.pass(2)));
    assert!(rounds.used() <= 128 << 10);
    let mut rounds = Rounds::new();
    assert!((0..10).filter(|_| !rounds.pass(100)).count() <= 2);
    assert!(rounds.used() > 100 * (Rounds::FRAME - 100));
}

#[test]
fn who_finds_no_room_because_it_went_back_goes_back_later() {
    const BYTES: usize = 504;
    const SKIP: u64 = 5;
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let ours = ShmLink::offer(here, ShmLink::RING_BYTES).expect("memory");
    let _theirs = ShmLink::accept(there).expect("the same memory");
    let (ring, mut writer, mut reader) = (ours.segment.ring(0), Writer::new(), Reader::new());
    let mut write = || {
        let record = header(Kind::Whole, BYTES);
        writer.write(ring, record, [&[1; BYTES][..]]) == Ok(true)
    };
    let mut read_all = || {
        while let Ok(Some(header)) = reader.peek(ring) {
            reader.copy(ring, header, &mut [0; BYTES]);
        }
        reader.publish(ring);
        reader.position() as usize % (ShmLink::RING_BYTES / 8)
    };
    for far in [32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10] {
        let mut place = 0;
        // That it goes back stands where the reader is.
        let goes_back = (0..1 << 16).any(|_| {
            place = read_all();
            assert!(write());
            ours.segment.words()[CONTROL + place].load(Ordering::SeqCst) == SKIP
        });
        assert!(goes_back, "{far} bytes");
        assert!(
            (far..2 * far).contains(&(8 * place)),
            "{place} words of {far} bytes"
        );
        // However often it tries it has gone too far back once.
        while write() {}
        assert!((0..10).all(|_| !write()));
        read_all();
    }
}

#[test]
fn a_lazy_frame_wakes_only_a_thread_that_is_parked_finely() {
    let rung = |peer: &Shm| {
        let link = peer.links[0].as_ref().expect("a link");
        link.outgoing().reader_parked().load(Ordering::SeqCst) == 0
    };
    let me = NodeId(0);
    for park in [Park::Fine, Park::Coarse] {
        let (port, peer) = two(0);
        let mut wakers = Vec::new();
        assert!(
            port.prepare_park(park, Duration::MAX, &mut wakers)
                .is_some()
        );
        assert_eq!(peer.send_with(me, &[b"later"], Notify::Lazy), Ok(()));
        assert_eq!(rung(&peer), park == Park::Fine, "{park:?}");
        assert_eq!(peer.send(me, &[b"now"]), Ok(()));
        assert!(rung(&peer), "{park:?}");
        port.finish_park(park);
        let mut frames = Vec::new();
        port.poll(&mut |_, frame| frames.push(frame.to_vec()));
        assert_eq!(frames, [&b"later"[..], b"now"]);
        // Who looks without waiting sees that something has come; its sender can have it woken.
        assert!(
            port.prepare_park(park, Duration::MAX, &mut wakers)
                .is_some()
        );
        assert!(!port.peek());
        assert_eq!(peer.send_with(me, &[b"later"], Notify::Lazy), Ok(()));
        assert!(port.peek());
        peer.notify(me);
        assert!(rung(&peer), "{park:?}");
        port.finish_park(park);
        assert_eq!(port.poll(&mut |_, _| ()), 1);
        assert!(!port.peek());
        // A sender that fills the ring lazily wakes a coarsely parked thread when nothing more
        // fits.
        assert!(
            port.prepare_park(park, Duration::MAX, &mut wakers)
                .is_some()
        );
        while peer.send_with(me, &[&[0; 4096]], Notify::Lazy) == Ok(()) {}
        assert!(rung(&peer), "{park:?}");
        port.finish_park(park);
    }
    // What goes in pieces wakes whoever is to make room for the next.
    let (port, peer) = two(ShmLink::RING_BYTES);
    let said = port.prepare_park(Park::Coarse, Duration::MAX, &mut Vec::new());
    assert!(said.is_some());
    for (bytes, wakes) in [(PIECE, false), (PIECE + 1, true)] {
        assert_eq!(peer.send_with(me, &[&vec![1; bytes]], Notify::Lazy), Ok(()));
        assert_eq!(rung(&peer), wakes, "{bytes}");
    }
    port.finish_park(Park::Coarse);
}

/// The port by itself.
fn alone(port: Shm) -> Box<dyn Port> {
    Box::new(port)
}

/// The port as that of a node whose neighbours are all on its machine.
fn mixed(port: Shm) -> Box<dyn Port> {
    let far = Tcp::new(NodeId(0), vec![None, None]).expect("a port");
    Box::new(Mixed::new(port, far, vec![true; 2]))
}

#[test]
fn a_thread_that_is_parked_coarsely_looks_by_itself_from_time_to_time() {
    for of in [alone as fn(Shm) -> Box<dyn Port>, mixed] {
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        let [ours, theirs] = [ShmLink::offer(here, 0), ShmLink::accept(there)].map(Result::ok);
        let port = Shm::with_largest(NodeId(0), vec![None, ours], LARGEST).expect("a port");
        let port = of(port);
        let peer = Shm::with_largest(PEER, vec![theirs, None], LARGEST).expect("a port");
        let (slept, sleep) = std::sync::mpsc::channel();
        let given_up = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while port.poll(&mut |_, _| ()) == 0 && !given_up.load(Ordering::SeqCst) {
                    port.park_coarse(Duration::MAX, Duration::from_millis(4));
                }
                slept.send(())
            });
            let link = peer.links[0].as_ref().expect("a link");
            let parked = || link.outgoing().reader_parked().load(Ordering::SeqCst) != 0;
            while !parked() {
                std::thread::yield_now();
            }
            assert_eq!(peer.send_with(NodeId(0), &[b"later"], Notify::Lazy), Ok(()));
            let woke = sleep.recv_timeout(Duration::from_secs(60));
            given_up.store(true, Ordering::SeqCst);
            port.unpark();
            woke.expect("it looks");
        });
    }
}

/// Who sends does not see that the other is parked: its frame is found only by time.
#[test]
fn a_frame_whose_sender_does_not_ring_is_counted() {
    for of in [alone as fn(Shm) -> Box<dyn Port>, mixed] {
        let (port, peer) = two(0);
        let port = of(port);
        port.owe(Owed {
            is_owed: Box::new(|| false),
            within: Duration::from_millis(2),
        });
        let link = peer.links[0].as_ref().expect("a link");
        let flag = link.outgoing().reader_parked();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while port.lost_doorbells() == 0 {
                    port.park(Duration::from_millis(50));
                    port.poll(&mut |_, _| ());
                }
            });
            while port.lost_doorbells() == 0 {
                if flag.swap(0, Ordering::SeqCst) != 0 {
                    let _full = peer.send_with(NodeId(0), &[b"unseen"], Notify::Now);
                }
                std::thread::yield_now();
            }
        });
    }
}

/// A thread that takes what came for another that is parked leaves it the ring.
#[test]
fn a_thread_that_polls_in_vain_takes_no_ring_of_one_that_is_parked() {
    let (port, peer) = two(0);
    let link = port.links[1].as_ref().expect("a link");
    let is_rung = || {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        recv(&link.stream, &mut [0u8; 1], flags).is_ok_and(|(bytes, _)| bytes == 1)
    };
    for is_parked in [true, false] {
        let said = port.prepare_park(Park::Fine, Duration::MAX, &mut Vec::new());
        assert!(said.is_some());
        assert_eq!(peer.send_with(NodeId(0), &[b"it"], Notify::Now), Ok(()));
        assert!(is_rung());
        if !is_parked {
            port.parked.finish_park(Park::Fine, port.incoming());
        }
        let polls = (0..=2 * LOOK_AFTER).map(|_| port.poll(&mut |_, _| ()));
        assert_eq!(polls.sum::<usize>(), 1);
        assert_eq!(is_rung(), is_parked);
        if is_parked {
            port.finish_park(Park::Fine);
        }
    }
}

#[test]
fn half_a_frame_and_the_end_is_broken_and_says_so() {
    let (port, peer) = port_and_peer();
    let first = header(Kind::First(100), 8);
    let written = Writer::new().write(peer.segment.ring(1), first, [&[1; 8][..]]);
    assert_eq!(written, Ok(true));
    drop(peer);
    port.park(Duration::from_secs(60));
    match loss(&port) {
        Some(Loss::Broken(how)) => assert!(how.contains("8 bytes of a frame"), "{how}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bells_without_end_wake_and_do_no_harm() {
    let (port, mut peer) = port_and_peer();
    peer.stream.set_nonblocking(true).expect("a socket");
    while peer.stream.write(&[0; 4_096]).is_ok() {}
    for _ in 0..100 {
        port.park(Duration::from_secs(60));
    }
    assert_eq!(loss(&port), None);
}

/// A word as a peer might write it who knows how words look.
fn word(random: &mut SplitMix64) -> u64 {
    match random.below(4) {
        0 => random.draw(),
        1 => random.below(64),
        2 => (1 + random.below(5)) | (random.below(5_000) << 4),
        _ => 2 | (random.below(5_000) << 4) | (random.below(70_000) << 34),
    }
}

/// Polls and sends while the words change, and says whether the peer is still there.
fn use_port(port: &Shm, random: &mut SplitMix64) -> bool {
    let mut bytes = 0;
    port.poll(&mut |_, frame| bytes += frame.len());
    assert!(bytes <= 4 << 20, "no poll brings more than its turn");
    let frame = vec![3; (random.draw() % 5_000) as usize];
    match port.send(PEER, &[&frame]) {
        Ok(()) | Err(SendError::Busy { .. }) => true,
        Err(SendError::Lost { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn random_words_anywhere_are_survived() {
    let seeds = seeds(0..1_500);
    let mut cut_off = 0;
    for seed in seeds.clone() {
        let mut random = SplitMix64(seed);
        let (port, peer) = port_and_peer();
        let words = peer.segment.words();
        for _ in 0..60 {
            for _ in 0..random.draw() % 8 {
                // Half of them where the next things to be read are.
                let at = match random.draw() % 2 {
                    0 => random.draw() as usize % words.len(),
                    _ => words.len() / 2 + CONTROL + random.draw() as usize % 40,
                };
                words[at].store(word(&mut random), Ordering::Release);
            }
            if !use_port(&port, &mut random) {
                cut_off += 1;
                break;
            }
        }
    }
    assert!(
        cut_off * 2 > seeds.end - seeds.start,
        "only {cut_off} are cut off"
    );
}

#[test]
fn words_that_change_while_they_are_read_are_survived() {
    for seed in 0..40 {
        let (port, peer) = port_and_peer();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = SplitMix64(seed + 1_000);
                let words = peer.segment.words();
                while !stop.load(Ordering::Relaxed) {
                    let at = words.len() / 2 + CONTROL + random.draw() as usize % 40;
                    words[at].store(word(&mut random), Ordering::Release);
                }
            });
            let mut random = SplitMix64(seed);
            let mut rounds = 0;
            while rounds < 2_000 && use_port(&port, &mut random) {
                rounds += 1;
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// What `accept` says to these bytes and files.
fn offered(bytes: &[u8], files: &[&OwnedFd]) -> Result<ShmLink, ShmError> {
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    let bytes = [std::io::IoSlice::new(bytes)];
    sendmsg(&here, &bytes, &mut control, SendFlags::empty()).expect("sent");
    drop(here);
    ShmLink::accept(there)
}

fn memory(bytes: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("test", flags).expect("memory");
    ftruncate(&file, bytes).expect("a size");
    fcntl_add_seals(&file, seals).expect("seals");
    file
}

#[test]
fn what_is_no_shared_memory_is_refused() {
    let sealed = SealFlags::SHRINK | SealFlags::GROW;
    let size = 2 * (CONTROL as u64 + 512) * 8;
    let hello = b"dholeshm";
    assert!(offered(hello, &[&memory(size, sealed)]).is_ok());
    let refused = |bytes: &[u8], files: &[&OwnedFd], why: &str| {
        let error = offered(bytes, files).err().expect("refused").to_string();
        assert!(error.contains(why), "\"{why}\" is not in \"{error}\"");
    };
    refused(hello, &[], "no shared memory");
    refused(b"dholeshx", &[&memory(size, sealed)], "another greeting");
    refused(b"dhole", &[&memory(size, sealed)], "another greeting");
    refused(hello, &[&memory(size, SealFlags::GROW)], "take away again");
    for wrong in [0, 8, size - 8, size + 8, size + 16 * 500, 1 << 40] {
        let bytes = format!("{wrong} bytes of shared memory");
        refused(hello, &[&memory(wrong, sealed)], &bytes);
    }
    let (socket, _) = UnixStream::pair().expect("a pair of sockets");
    refused(
        hello,
        &[&socket.into()],
        "looking at the seals of shared memory",
    );
    let (silent, there) = UnixStream::pair().expect("a pair of sockets");
    drop(silent);
    assert!(ShmLink::accept(there).is_err(), "nothing was offered");
}

#[test]
fn what_a_peer_shows_is_seen_and_what_is_sent_in_place_of_it_is_refused() {
    let both = || {
        let (here, there) = UnixStream::pair().expect("a pair of sockets");
        let ours = ShmLink::offer(here, 0).expect("memory");
        (ours, ShmLink::accept(there).expect("the same memory"))
    };
    let file = || memory(8, SealFlags::GROW);
    for count in 0..=3 {
        let (ours, mut theirs) = both();
        let files: Vec<OwnedFd> = (0..count).map(|_| file()).collect();
        ours.show(&files).expect("a peer");
        theirs.see().expect("what was shown");
        assert_eq!(theirs.shown.map(|shown| shown.len()), Some(count));
    }
    let (ours, mut theirs) = both();
    let four = [file(), file(), file(), file()];
    assert!(ours.show(&four).is_err(), "too many");
    (&ours.stream).write_all(b"dholeshm").expect("a peer");
    let refused = theirs.see().expect_err("another greeting").to_string();
    assert!(refused.contains("another greeting"), "{refused}");
    drop(ours);
    assert!(theirs.see().is_err(), "nothing is shown");
}

#[test]
fn a_short_frame_is_refused_as_any_other() {
    let (a, b) = two(0);
    let short = |port: &Shm| port.send(PEER, &[b"short"]);
    assert_eq!(short(&a), Ok(()));
    a.close(Duration::ZERO);
    assert_eq!(short(&a), Err(SendError::Closed { to: PEER }));
    drop((a, b));
    let (a, b) = two(0);
    let loss = Loss::Left;
    a.give_up(PEER, loss.clone());
    assert_eq!(short(&a), Err(SendError::Lost { to: PEER, loss }));
    drop(b);
    let (here, there) = UnixStream::pair().expect("a pair of sockets");
    let ours = ShmLink::offer(here, 0).expect("memory");
    let peer = ShmLink::accept(there).expect("the same memory");
    let port = Shm::with_largest(NodeId(0), vec![None, Some(ours)], 8).expect("a port");
    let (to, bytes, largest) = (PEER, 9, 8);
    assert_eq!(
        port.send(PEER, &[&[0; 9]]),
        Err(SendError::TooLarge { to, bytes, largest })
    );
    let written = Writer::new().write(peer.segment.ring(1), header(Kind::Whole, 9), [&[1; 9][..]]);
    assert_eq!(written, Ok(true));
    assert_cut_off(&port, "9 bytes where 8 are allowed");
    assert!(matches!(
        port.send(PEER, &[&[0; 9]]),
        Err(SendError::Lost { .. })
    ));
}

#[test]
fn all_that_was_sent_before_the_end_is_taken_however_much_it_was() {
    let (a, b) = two(1 << 16);
    const FRAMES: usize = 3_000;
    for _ in 0..FRAMES {
        assert_eq!(a.send(PEER, &[&[0; 8]]), Ok(()));
    }
    // Its end of the socket, and nothing said.
    a.links[1]
        .as_ref()
        .unwrap()
        .stream
        .shutdown(std::net::Shutdown::Both)
        .unwrap();
    b.look();
    let mut taken = 0;
    while b.poll(&mut |_, _| taken += 1) > 0 {}
    assert_eq!(taken, FRAMES);
}

#[test]
fn a_short_frame_does_not_overtake_the_rest_of_a_long_one() {
    let (a, b) = two(0);
    let long = vec![7; LARGEST];
    // It is begun, and there is no room for its rest.
    assert_eq!(a.send(PEER, &[&long]), Ok(()));
    let mut came = Vec::new();
    for _ in 0..1_000 {
        if !came.contains(&5) {
            let _busy_as_long_as_the_rest_is_kept = a.send(PEER, &[b"short"]);
        }
        b.poll(&mut |_, frame| came.push(frame.len()));
        a.poll(&mut |_, _| ());
    }
    assert_eq!(came.first(), Some(&LARGEST));
    assert!(came[1..].iter().all(|bytes| *bytes == 5) && came.len() > 1);
}

#[test]
fn who_was_refused_a_long_frame_and_sends_a_short_one_is_not_refused() {
    let (a, _b) = two(0);
    let mut outbound = super::lock(&a.links[1].as_ref().unwrap().outbound);
    let ring = a.links[1].as_ref().unwrap().outgoing();
    let bytes = Writer::longest_record(ring) / 3 * 2;
    let long = vec![0; bytes];
    while outbound.send(ring, &[&long], bytes, &mut || ()) != Ok(super::Sent::Busy) {}
    assert!(outbound.refused());
    assert!(outbound.send_on(ring, &[b"short"], 5) && !outbound.refused());
}

/// What was measured before could be taken away in between.
#[test]
fn memory_that_shrinks_until_it_is_sealed_is_as_long_as_it_is_then() {
    let size = |words: u64| 2 * (CONTROL as u64 + words) * 8;
    let sealed = SealFlags::SHRINK | SealFlags::GROW;
    for _ in 0..200 {
        let file = memory(size(1024), SealFlags::empty());
        let theirs = file.try_clone().expect("a descriptor");
        let peer = std::thread::spawn(move || {
            ftruncate(&theirs, size(512)).expect("nothing is sealed");
            fcntl_add_seals(&theirs, sealed).expect("seals");
        });
        let segment = loop {
            let again = file.try_clone().expect("a descriptor");
            if let Ok(segment) = Segment::open(again) {
                break segment;
            }
        };
        peer.join().expect("it ends");
        assert_eq!(8 * segment.words().len() as u64, size(512));
    }
}
