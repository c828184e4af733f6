use dhole_testkit::seeds;

use super::*;
use crate::BuildId;

/// A stream of numbers from a seed (xorshift64*).
struct Seeded(u64);

impl Seeded {
    fn new(seed: u64) -> Seeded {
        Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

fn terms() -> Terms {
    Terms {
        version: 1,
        build: BuildId::from_bytes(&[1; 20]).unwrap(),
        nodes: 4,
        settings: vec![("transport".into(), "tcp".into())],
        places: at("127.0.0.1:4"),
    }
}

fn at(tcp: &str) -> Places {
    Places {
        tcp: tcp.into(),
        ..Places::default()
    }
}

/// One side of a conversation.
struct Side {
    me: NodeId,
    secret: Secret,
    terms: Terms,
    binding: Binding,
    handshake: Handshake,
    out: Vec<u8>,
    ended: Option<Result<Met, HandshakeError>>,
}

impl Side {
    fn new(me: u16, connects_to: Option<u16>, change: impl FnOnce(&mut Side)) -> Side {
        let mut side = Side {
            me: NodeId(me),
            secret: Secret::new(b"what only nodes know").unwrap(),
            terms: terms(),
            binding: Binding::Plain,
            handshake: Handshake::listen(),
            out: Vec::new(),
            ended: None,
        };
        change(&mut side);
        if let Some(peer) = connects_to {
            let mut out = Vec::new();
            side.handshake = Handshake::connect(&side.party(), NodeId(peer), Use::Port, &mut out);
            side.out = out;
        }
        side
    }

    fn party(&self) -> Party<'_> {
        Party {
            me: self.me,
            secret: &self.secret,
            terms: &self.terms,
            binding: self.binding,
            nonce: [self.me.0 as u8; 32],
        }
    }

    /// Takes bytes as a socket would bring them; returns what it had no use for.
    fn take<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while self.ended.is_none() && !bytes.is_empty() {
            let wanted = self.handshake.wants().min(bytes.len());
            assert!(wanted > 0, "a handshake that goes on wants bytes");
            let (now, rest) = bytes.split_at(wanted);
            bytes = rest;
            let mut handshake = std::mem::replace(&mut self.handshake, Handshake::listen());
            let mut out = std::mem::take(&mut self.out);
            let expected = |said: NodeId, _: Use| said.0 < 4;
            self.ended = handshake
                .take(&self.party(), &expected, now, &mut out)
                .transpose();
            (self.handshake, self.out) = (handshake, out);
        }
        bytes
    }

    fn error(&self) -> &HandshakeError {
        match &self.ended {
            Some(Err(error)) => error,
            other => panic!("{:?} has ended with {other:?}", self.me),
        }
    }

    fn met(&mut self) -> &mut Met {
        match &mut self.ended {
            Some(Ok(met)) => met,
            other => panic!("it has ended with {other:?}"),
        }
    }
}

/// Lets both talk until neither has anything to say, `step` bytes at a time.
fn talk(a: &mut Side, b: &mut Side, step: usize) {
    while !a.out.is_empty() || !b.out.is_empty() {
        for _ in 0..2 {
            let said = std::mem::take(&mut a.out);
            for bytes in said.chunks(step) {
                b.take(bytes);
            }
            std::mem::swap(a, b);
        }
    }
}

fn pair(change: impl FnOnce(&mut Side)) -> (Side, Side) {
    let (mut a, mut b) = (Side::new(2, Some(0), change), Side::new(0, None, |_| ()));
    talk(&mut a, &mut b, 4096);
    (a, b)
}

#[test]
fn two_that_know_the_secret_meet_however_their_bytes_are_cut() {
    for step in [1, 2, 7, 64, 4096] {
        let mut a = Side::new(2, Some(0), |a| a.terms.places = at("there:9"));
        let mut b = Side::new(0, None, |_| ());
        talk(&mut a, &mut b, step);
        assert_eq!((a.met().peer, b.met().peer), (NodeId(0), NodeId(2)));
        assert_eq!(b.met().places, at("there:9"));
    }
}

#[test]
fn what_follows_a_handshake_is_left_alone() {
    let (mut a, mut b) = (Side::new(2, Some(0), |_| ()), Side::new(0, None, |_| ()));
    let said = std::mem::take(&mut a.out);
    b.take(&said);
    let said = std::mem::take(&mut b.out);
    a.take(&said);
    let mut said = std::mem::take(&mut a.out);
    said.extend_from_slice(b"a frame");
    assert_eq!(b.take(&said), b"a frame");
    b.met();
}

#[test]
fn each_difference_is_an_error_of_its_own_on_both_sides() {
    type E = HandshakeError;
    let (a, b) = pair(|a| a.secret = Secret::new(b"what a stranger guesses").unwrap());
    assert_eq!(*a.error(), E::WrongSecret);
    let reason = HandshakeRefusal::WrongSecret;
    assert_eq!(*b.error(), E::RefusedBy { reason });

    let (a, b) = pair(|a| a.terms.version = 2);
    assert_eq!(*a.error(), E::Version { ours: 2, theirs: 1 });
    assert_eq!(*b.error(), E::Version { ours: 1, theirs: 2 });

    let other = BuildId::from_bytes(&[2; 20]).unwrap();
    let (a, b) = pair(|a| a.terms.build = other);
    assert!(matches!(a.error(), E::Build { .. }));
    assert!(matches!(b.error(), E::Build { .. }));

    let (a, b) = pair(|a| a.terms.nodes = 3);
    assert_eq!(*a.error(), E::Nodes { ours: 3, theirs: 4 });
    assert_eq!(*b.error(), E::Nodes { ours: 4, theirs: 3 });

    let (a, b) = pair(|a| a.terms.settings.push(("seed".into(), "7".into())));
    let setting = |ours: Option<&str>, theirs: Option<&str>| E::Setting {
        name: "seed".into(),
        ours: ours.map(String::from),
        theirs: theirs.map(String::from),
    };
    assert_eq!(*a.error(), setting(Some("7"), None));
    assert_eq!(*b.error(), setting(None, Some("7")));
}

#[test]
fn who_is_not_expected_is_told_so() {
    let mut b = Side::new(0, None, |_| ());
    let mut a = Side::new(2, Some(1), |_| ());
    talk(&mut a, &mut b, 4096);
    let (wanted, reason) = (NodeId(1), HandshakeRefusal::Misdirected);
    assert_eq!(*b.error(), HandshakeError::Misdirected { wanted });
    assert_eq!(*a.error(), HandshakeError::RefusedBy { reason });

    let mut b = Side::new(0, None, |_| ());
    let mut a = Side::new(7, Some(0), |_| ());
    talk(&mut a, &mut b, 4096);
    let (said, reason) = (NodeId(7), HandshakeRefusal::Unexpected);
    assert_eq!(*b.error(), HandshakeError::Unexpected { said });
    assert_eq!(*a.error(), HandshakeError::RefusedBy { reason });
}

#[test]
fn each_kind_of_nonsense_is_an_error_of_its_own() {
    type E = HandshakeError;
    let said = |bytes: &[u8]| {
        let mut side = Side::new(0, None, |_| ());
        side.take(bytes);
        match side.ended {
            Some(ended) => ended.expect_err("nonsense"),
            None => side.handshake.ended(),
        }
    };
    assert_eq!(said(b""), E::NoWord);
    assert_eq!(said(b"GET / HTTP/1.1\r\n\r\n"), E::NotDhole);
    assert_eq!(said(&[0x16, 3, 1]), E::Encrypts);
    let four_gib = said(b"DHJ1\x01\xff\xff\xff\xff");
    let bytes = u64::from(u32::MAX);
    assert_eq!(four_gib, E::Oversized { bytes, most: 37 });
    let half = said(b"DHJ1\x01\x25\0\0\0half");
    assert_eq!(
        half,
        E::HalfFrame {
            had: 13,
            expected: 46
        }
    );
    // Terms before any proof are not even read.
    assert!(matches!(said(b"DHJ1\x04\x01\0\0\0"), E::Malformed { .. }));
    assert!(matches!(said(b"DHJ1\x01\0\0\0\0"), E::Malformed { .. }));
}

#[test]
fn a_proof_sent_back_to_its_maker_proves_nothing() {
    // A listener that has no secret plays the connector's own words back, and its nonce.
    let mut a = Side::new(2, Some(0), |_| ());
    let hello = std::mem::take(&mut a.out);
    let mut other = Side::new(0, None, |o| {
        o.secret = Secret::new(b"what a stranger guesses").unwrap();
    });
    other.take(&hello);
    let mut challenge = std::mem::take(&mut other.out);
    let nonce = hello[14..46].to_vec();
    challenge[11..43].copy_from_slice(&nonce);
    a.take(&challenge);
    assert_eq!(*a.error(), HandshakeError::WrongSecret);
}

#[test]
fn a_proof_for_one_connection_is_none_for_another() {
    for (ours, theirs) in [
        (Binding::Tls([1; 32]), Binding::Tls([2; 32])),
        (Binding::Plain, Binding::Tls([2; 32])),
    ] {
        let mut a = Side::new(2, Some(0), |a| a.binding = ours);
        let mut b = Side::new(0, None, |b| b.binding = theirs);
        talk(&mut a, &mut b, 4096);
        assert_eq!(*a.error(), HandshakeError::WrongSecret);
    }
}

#[test]
fn a_sealed_frame_opens_once_in_its_place_and_direction() {
    let (mut a, mut b) = pair(|_| ());
    let frame = |met: &mut Met, body: &[u8]| {
        let mut out = Vec::new();
        met.session.seal(Kind::Failed, body, &mut out);
        out.split_off(9)
    };
    let (first, second) = (frame(a.met(), b"1"), frame(a.met(), b"2"));
    let open = |met: &mut Met, frame: &[u8]| {
        let opened = met.session.open(Kind::Failed, frame);
        opened.map(<[u8]>::to_vec)
    };
    assert_eq!(open(b.met(), &second), Err(HandshakeError::WrongSecret));
    assert_eq!(open(b.met(), &first).unwrap(), b"1");
    assert_eq!(open(b.met(), &first), Err(HandshakeError::WrongSecret));
    assert_eq!(open(a.met(), &second), Err(HandshakeError::WrongSecret));
    assert_eq!(open(b.met(), &second).unwrap(), b"2");
    assert!(open(b.met(), b"short").is_err());
}

/// What one side says to a sound other, in frames as they were sent.
fn conversation() -> [Vec<u8>; 2] {
    let (mut a, mut b) = (Side::new(2, Some(0), |_| ()), Side::new(0, None, |_| ()));
    let mut said = [Vec::new(), Vec::new()];
    while !a.out.is_empty() || !b.out.is_empty() {
        for (i, other) in [(0, 1), (1, 0)] {
            let sides = [&mut a, &mut b];
            let words = std::mem::take(&mut sides[i].out);
            said[i].extend_from_slice(&words);
            let sides = [&mut a, &mut b];
            sides.into_iter().nth(other).unwrap().take(&words);
        }
    }
    said
}

/// Changes a few bytes, cuts, doubles or swaps parts.
fn mutate(seeded: &mut Seeded, bytes: &mut Vec<u8>) {
    for _ in 0..=seeded.below(3) {
        let at = seeded.below(bytes.len().max(1)).min(bytes.len());
        match seeded.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << seeded.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 0xff, 0x7f, 0x80][seeded.below(4)],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, seeded.below(256) as u8),
            4 => {
                let copy = bytes[at..].to_vec();
                bytes.extend_from_slice(&copy[..copy.len().min(100)]);
            }
            _ => {
                let to = at.saturating_add(seeded.below(12)).min(bytes.len());
                drop(bytes.drain(at..to));
            }
        }
    }
}

#[test]
fn whatever_a_stranger_says_he_meets_nobody() {
    let sound = conversation();
    for seed in seeds(0..20_000) {
        let mut seeded = Seeded::new(seed);
        // A stranger has heard a conversation and plays one side of it, a little changed, to a node
        // whose nonce is another one by now.
        let listens = seeded.below(2) == 0;
        let mut said = sound[usize::from(!listens)].clone();
        mutate(&mut seeded, &mut said);
        let mut side = match listens {
            true => Side::new(0, None, |_| ()),
            false => Side::new(2, Some(0), |_| ()),
        };
        let fresh = |side: &mut Side| {
            let nonce = [0xee; 32];
            let party = Party {
                nonce,
                ..side.party()
            };
            let mut out = Vec::new();
            let expected = |said: NodeId, _: Use| said.0 < 4;
            let mut handshake = match listens {
                true => Handshake::listen(),
                false => Handshake::connect(&party, NodeId(0), Use::Port, &mut out),
            };
            let mut bytes = said.as_slice();
            let mut kept = 0;
            while !bytes.is_empty() {
                let (now, rest) = bytes.split_at(handshake.wants().min(bytes.len()));
                bytes = rest;
                match handshake.take(&party, &expected, now, &mut out) {
                    Ok(None) => kept = kept.max(handshake.wants()),
                    Ok(Some(met)) => return Some(met),
                    Err(_) => break,
                }
            }
            assert!(kept <= 16 << 10, "seed {seed}: {kept} bytes are waited for");
            assert!(
                out.len() < 4096,
                "seed {seed}: {} bytes of answers",
                out.len()
            );
            None
        };
        let met = fresh(&mut side);
        assert!(met.is_none(), "seed {seed}: a stranger met {met:?}");
    }
}

#[test]
fn terms_of_any_bytes_are_read_without_a_panic() {
    let ours = terms();
    let mut sound = Vec::new();
    ours.write(&mut sound);
    assert_eq!(Terms::read(&sound, &ours).unwrap(), ours);
    for seed in seeds(0..20_000) {
        let mut bytes = sound.clone();
        mutate(&mut Seeded::new(seed), &mut bytes);
        if let Ok(read) = Terms::read(&bytes, &ours) {
            let mut again = Vec::new();
            read.write(&mut again);
            assert_eq!(again, bytes, "seed {seed}: what was read is what was said");
        }
    }
}
