//! Owner and reader in one process, and windows in which somebody else has written.

use super::*;

const OWNER: usize = 0;
const READER: usize = 1;
const WORDS: usize = 4096;

/// The windows of all nodes, as one of them reaches them.
struct All {
    windows: Arc<Vec<Vec<AtomicU64>>>,
    me: usize,
    /// Nodes that take no part any more.
    gone: Vec<usize>,
}

impl RemoteMemory for All {
    fn own(&self) -> &[AtomicU64] {
        &self.windows[self.me]
    }

    fn fence(&self) {}

    fn transfer(
        &self,
        node: usize,
        put: Option<Put>,
        gets: &[Range<usize>],
        into: &mut Vec<u64>,
    ) -> Result<(), Unreached> {
        if self.gone.contains(&node) {
            let why = "it is gone".to_owned();
            return Err(Unreached { node, why });
        }
        let there = &self.windows[node];
        if let Some(Put { at, value }) = put {
            there[at].store(value, Ordering::Relaxed);
        }
        into.clear();
        for word in gets.iter().flat_map(|range| &there[range.clone()]) {
            into.push(word.load(Ordering::Relaxed));
        }
        Ok(())
    }
}

struct Pair {
    owner: WindowPublications,
    reader: Windows,
    windows: Arc<Vec<Vec<AtomicU64>>>,
}

fn pair_of(nodes: usize, gone: &[usize]) -> Pair {
    let window = || (0..WORDS).map(|_| AtomicU64::new(0)).collect();
    let windows: Arc<Vec<Vec<AtomicU64>>> = Arc::new((0..nodes).map(|_| window()).collect());
    let of = |me| {
        let windows = Arc::clone(&windows);
        let gone = gone.to_vec();
        Windows::new(Arc::new(All { windows, me, gone }), nodes, me)
    };
    Pair {
        owner: WindowPublications::new(Arc::new(of(OWNER))),
        reader: of(READER),
        windows: Arc::clone(&windows),
    }
}

fn pair() -> Pair {
    pair_of(2, &[])
}

impl Pair {
    fn read(&self, id: u64, bytes: usize) -> Option<(u64, Vec<u8>)> {
        let mut room = ReadRoom::default();
        let read = self.reader.read(OWNER, id, bytes, |_| true, &mut room);
        match read.expect("the owner is there") {
            WindowRead::Whole(version) => Some((version, room.bytes)),
            WindowRead::Absent => None,
            WindowRead::Changed => panic!("nothing changes meanwhile"),
        }
    }

    fn publish(&mut self, id: u64, version: u64, bytes: &[u8]) {
        if let Some(room) = self.owner.reserve(id, bytes.len()) {
            self.owner.publish(room, version, bytes);
        }
    }

    /// Somebody else writes into the record of an object.
    fn scribble(&self, id: u64, word: usize, value: u64) {
        let layout = self.reader.layout;
        let at = layout.record(layout.slot(id)) + word;
        self.windows[OWNER][at].store(value, Ordering::Relaxed);
    }
}

#[test]
fn objects_of_all_lengths_are_read_and_their_readers_found() {
    let mut pair = pair();
    let bytes = |len: usize| (0..len).map(|at| at as u8 ^ len as u8).collect::<Vec<_>>();
    for len in [0, 1, 7, 8, 9, 63, 64, 65, 1000] {
        pair.publish(len as u64, 5, &bytes(len));
    }
    for len in [0, 1, 7, 8, 9, 63, 64, 65, 1000] {
        let id = len as u64;
        assert_eq!(pair.read(id, len), Some((5, bytes(len))), "{len} bytes");
        assert_eq!(pair.read(id, len + 1), None, "of another length");
        assert_eq!(pair.owner.unpublish(id), 1 << READER);
        assert_eq!(pair.owner.unpublish(id), 0, "it is not published any more");
        assert_eq!(pair.read(id, len), None);
    }
}

#[test]
fn a_mark_of_an_earlier_version_is_no_mark_of_this_one() {
    let mut pair = pair();
    pair.publish(3, 1, &[1; 8]);
    assert_eq!(pair.read(3, 8), Some((1, vec![1; 8])));
    let mut found = Vec::new();
    let all = |pair: &mut Pair, found: &mut Vec<_>| {
        let read = |id, readers| found.push((id, readers));
        pair.owner.unpublish_all([2, 3, 4, 3].into_iter(), read);
    };
    all(&mut pair, &mut found);
    pair.publish(3, 2, &[2; 8]);
    all(&mut pair, &mut found);
    assert_eq!(found, [(3, 1 << READER)]);
}

#[test]
fn the_63rd_reader_and_all_behind_it_have_one_bit() {
    let mut pair = pair_of(70, &[]);
    pair.publish(3, 1, &[1; 8]);
    for reader in [62, 63, 69] {
        let (windows, gone) = (Arc::clone(&pair.windows), Vec::new());
        let me = reader;
        pair.reader = Windows::new(Arc::new(All { windows, me, gone }), 70, me);
        assert!(pair.read(3, 8).is_some());
    }
    assert_eq!(pair.owner.unpublish(3), 1 << 62 | 1 << 63);
}

#[test]
fn an_object_whose_record_is_another_s_is_not_published() {
    let mut pair = pair();
    let records = pair.reader.layout.records as u64;
    pair.publish(3, 1, &[1; 8]);
    pair.publish(3 + records, 1, &[2; 8]);
    assert_eq!(pair.read(3 + records, 8), None);
    assert_eq!(pair.owner.unpublish(3 + records), 0);
    assert_eq!(pair.read(3, 8), Some((1, vec![1; 8])));
    pair.owner.unpublish(3);
    pair.publish(3 + records, 1, &[2; 8]);
    assert_eq!(pair.read(3 + records, 8), Some((1, vec![2; 8])));
    assert_eq!(pair.read(3, 8), None);
}

#[test]
fn a_window_that_is_full_publishes_no_more_and_room_is_used_again() {
    let mut pair = pair();
    let len = WORDS;
    let fits = |pair: &Pair| (0..10).filter(|id| pair.owner.is_published(*id)).count();
    (0..10).for_each(|id| pair.publish(id, 1, &vec![1; len]));
    let most = fits(&pair);
    assert!((1..10).contains(&most), "{most}");
    // Other objects have the same records, and room of the same length.
    let records = pair.reader.layout.records as u64;
    for id in 0..10 {
        pair.owner.unpublish(id);
        pair.publish(id + records, 1, &vec![2; len]);
    }
    let again = (0..10).filter(|id| pair.owner.is_published(id + records));
    assert_eq!(again.count(), most);
    assert_eq!(pair.read(records, len), Some((1, vec![2; len])));
}

#[test]
fn what_is_published_in_one_run_is_not_read_in_the_next() {
    let mut pair = pair();
    pair.publish(3, 1, &[1; 8]);
    let word = pair.windows[OWNER][pair.reader.layout.record(3)].load(Ordering::Relaxed);
    pair.owner.clear();
    assert_eq!(pair.read(3, 8), None);
    let windows = Arc::clone(&pair.owner.windows);
    pair.owner = WindowPublications::new(windows);
    pair.publish(3, 1, &[2; 8]);
    assert_eq!(pair.read(3, 8), Some((1, vec![2; 8])));
    let again = pair.windows[OWNER][pair.reader.layout.record(3)].load(Ordering::Relaxed);
    assert!(again > word, "a number that was used is not used again");
}

/// Whatever somebody writes into a record, nothing beyond the window is asked for, and the owner
/// goes on.
#[test]
fn a_record_that_somebody_else_has_written_leads_nowhere() {
    for (word, value) in [
        (WORD, u64::MAX - 1),
        (ID, 4),
        (SPAN, u64::MAX),
        (SPAN, (WORDS as u64) << 32 | 8),
        (SPAN, 8),
    ] {
        let mut pair = pair();
        pair.publish(3, 1, &[1; 8]);
        pair.scribble(3, word, value);
        assert_eq!(pair.read(3, 8), None, "{word} {value:x}");
        pair.owner.unpublish(3);
        pair.publish(3, 2, &[2; 8]);
        assert_eq!(pair.read(3, 8), Some((2, vec![2; 8])));
    }
}

/// What another node writes where this one has published nothing yet leads to no mistake of its.
#[test]
fn numbers_that_somebody_else_has_written_are_gone_on_with() {
    for word in [1, 2, u64::MAX - 3, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
        let mut pair = pair();
        pair.scribble(3, WORD, word);
        for version in 1..4 {
            pair.publish(3, version, &[7; 8]);
            assert_eq!(pair.read(3, 8), Some((version, vec![7; 8])), "{word:x}");
            assert_eq!(pair.owner.unpublish(3), 1 << READER, "{word:x}");
        }
    }
}

#[test]
fn a_node_that_is_gone_is_an_error() {
    let mut pair = pair_of(2, &[OWNER]);
    pair.publish(3, 1, &[1; 8]);
    let mut room = ReadRoom::default();
    let read = pair.reader.read(OWNER, 3, 8, |_| true, &mut room);
    let error = read.expect_err("the owner is gone");
    assert_eq!(
        error.to_string(),
        "reaching the memory of node 0: it is gone"
    );
    assert!(!pair.reader.reaches(OWNER) && pair.reader.reaches(READER));
}
