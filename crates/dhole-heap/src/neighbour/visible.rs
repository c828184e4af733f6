//! Two processes, played by this one, that map each other's memory: sound ones, and one that lies.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dhole_model::{Detector, OidRange};
use dhole_space::Publications;

use super::*;
use crate::{Monitor, Ref, pack};

const OWNER: NodeId = NodeId(0);
const READER: NodeId = NodeId(1);

fn version(lamport: u64) -> Version {
    let node = OWNER;
    Version { lamport, node }
}

fn memory() -> Arc<VisibleMemory> {
    Arc::new(VisibleMemory::make().expect("two files"))
}

fn shown(memory: &VisibleMemory) -> Option<[OwnedFd; 2]> {
    Some(memory.files().expect("descriptors"))
}

/// Both parts of a cluster of two processes.
fn parts() -> [Arc<Cluster>; 2] {
    parts_by(Detector::Check)
}

fn parts_by(detector: Detector) -> [Arc<Cluster>; 2] {
    static STAMP: AtomicU64 = AtomicU64::new(1 << 32);
    let part = |node| Cluster::part(2, node, detector).expect("room for a node");
    let (parts, stamp) = (
        [OWNER, READER].map(part),
        STAMP.fetch_add(1, Ordering::Relaxed),
    );
    // Other tests of this process take ids meanwhile.
    let window = loop {
        let window = Cluster::window_of(parts[0].ids_left());
        if parts[0].settle(window.clone(), stamp).is_ok() {
            break window;
        }
    };
    parts[1].settle(window, stamp).expect("the same window");
    parts
}

/// Each part publishes in its memory, and sees that of the other.
fn see_each_other(parts: &[Arc<Cluster>; 2], memory: [&Arc<VisibleMemory>; 2]) {
    for (part, own) in parts.iter().zip(memory) {
        let files = memory.iter().map(|it| shown(it)).collect();
        let seen = part.publish_in(own, files, |node, error| panic!("{node}: {error}"));
        seen.expect("memory that is mapped");
    }
}

fn nodes(parts: &[Arc<Cluster>; 2]) -> [Monitor<()>; 2] {
    [OWNER, READER].map(|node| Monitor::new(&parts[node.index()], node, ()))
}

/// The reader hears what the owner has allocated.
fn hears(parts: &[Arc<Cluster>; 2]) {
    let [owner, reader] = parts;
    let mut announced = Vec::new();
    let announcement = owner.announce(READER, &mut announced);
    owner.announced(READER, announcement);
    reader
        .learn(OWNER, &announced)
        .expect("a sound announcement");
}

/// An object of the owner's, published, of which the reader knows.
fn published(parts: &[Arc<Cluster>; 2], [owner, reader]: &[Monitor<()>; 2]) -> Oid {
    let mut guard = owner.lock();
    let mut heap = guard.split().0;
    let oid = heap.alloc((7_u64, true)).unwrap().oid();
    heap.publish(oid, version(1));
    hears(parts);
    reader.lock().split().0.make_room(oid).unwrap();
    oid
}

fn with<R>(node: &Monitor<()>, f: impl FnOnce(&mut HeapMut<'_>) -> R) -> R {
    f(&mut node.lock().split().0)
}

fn bytes(node: &Monitor<()>, oid: Oid) -> Vec<u8> {
    let mut bytes = Vec::new();
    with(node, |heap| heap.gather(oid, &mut bytes)).unwrap();
    bytes
}

/// A one-sided read: what was looked at, where bytes were copied; and whether they became a value.
fn read(reader: &Monitor<()>, oid: Oid) -> Option<(PublishedObject, bool)> {
    with(reader, |heap| {
        let object = heap.look_there(OWNER, oid)?;
        let copied = heap.copy_there(&object) && heap.still_there(&object);
        copied.then(|| (object, heap.install_there(&object).is_ok()))
    })
}

#[test]
fn an_object_is_read_in_the_memory_of_another_process_and_its_reader_is_known() {
    for detector in [Detector::Check, Detector::Vm] {
        is_read_and_known(detector);
    }
}

fn is_read_and_known(detector: Detector) {
    let (parts, memory) = (parts_by(detector), [memory(), memory()]);
    see_each_other(&parts, [&memory[0], &memory[1]]);
    let nodes = nodes(&parts);
    let oid = published(&parts, &nodes);
    let [owner, reader] = &nodes;
    let (object, is_value) = read(reader, oid).expect("it is published");
    assert_eq!((object.version(), is_value), (version(1), true));
    assert_eq!(bytes(reader, oid), bytes(owner, oid));
    let readers = with(owner, |heap| heap.unpublish(oid));
    assert_eq!(readers.of(2).collect::<Vec<_>>(), [READER]);
    assert!(read(reader, oid).is_none(), "it may be written");
    // What lies beyond the part that others see is asked for.
    let beyond = parts[0].published(OWNER).expect("it publishes").clone();
    let last = beyond.seen(beyond.seen_bytes - 8, 8);
    assert!(last.is_some_and(|last| last <= store_bytes(&memory[0]) - 8));
    assert_eq!(beyond.seen(beyond.seen_bytes - 7, 8), None);
    // Memory that a run has used is empty for the next.
    drop((nodes, parts));
    for file in memory.iter().flat_map(|it| shown(it).expect("both")) {
        assert_eq!(bytes_of(&file), 0);
    }
}

/// A neighbour writes a reference to an object that it allocated after it last sent metadata. A
/// reader that finds it there takes neither the bytes nor the new object for freed: it asks by
/// message, and the metadata comes with the reply.
#[test]
fn a_reference_that_is_read_before_its_metadata_comes_is_not_taken_for_freed() {
    let (parts, memory) = (parts(), [memory(), memory()]);
    see_each_other(&parts, [&memory[0], &memory[1]]);
    let nodes = nodes(&parts);
    let [owner, reader] = &nodes;
    let names = with(owner, |heap| heap.alloc(None::<Ref<u32>>).unwrap());
    hears(&parts);
    with(reader, |heap| heap.make_room(names.oid())).unwrap();
    let (new, freed) = with(owner, |heap| {
        let new = heap.alloc(7_u32).unwrap();
        let mut packed = Vec::new();
        pack(&Some(new), &mut packed);
        heap.install(names.oid(), &packed).unwrap();
        heap.publish(names.oid(), version(1));
        let freed = heap.alloc_range(1, |_| 7_u16).unwrap();
        heap.free(freed.oids().unwrap()).unwrap();
        (new, freed)
    });
    for _ in 0..2 {
        let (_, is_value) = read(reader, names.oid()).expect("it is published");
        assert!(!is_value, "the new object is not heard of");
    }
    hears(&parts);
    let (_, is_value) = read(reader, names.oid()).expect("it is published");
    assert!(is_value, "the new object is known");
    with(reader, |heap| heap.make_room(new.oid())).expect("it is not freed");
    // A message is believed: a reference of which its metadata says nothing leads to no object.
    let mut packed = Vec::new();
    pack(&Some(freed.at(0)), &mut packed);
    with(reader, |heap| heap.unpack::<Option<Ref<u16>>>(&packed)).expect("freed everywhere");
}

/// What the system says of a file.
fn is(file: &impl AsRawFd) -> libc::stat {
    // SAFETY: plain numbers, of which zeros are some; the descriptor is open.
    unsafe {
        let mut is: libc::stat = std::mem::zeroed();
        assert_eq!(libc::fstat(file.as_raw_fd(), &mut is), 0);
        is
    }
}

/// Bytes of memory that a file takes.
fn bytes_of(file: &impl AsRawFd) -> i64 {
    is(file).st_blocks * 512
}

/// Bytes of the file of a store.
fn store_bytes(memory: &VisibleMemory) -> u64 {
    let [_, store] = shown(memory).expect("both");
    is(&store).st_size as u64
}

/// Later runs use the same memory: nothing of an earlier one is there.
#[test]
fn memory_is_of_one_run_at_a_time_and_nothing_is_left_in_it() {
    let memory = [memory(), memory()];
    let first = parts();
    see_each_other(&first, [&memory[0], &memory[1]]);
    let owner = Monitor::new(&first[0], OWNER, ());
    let oid = with(&owner, |heap| {
        let all = heap.alloc_range(64, |_| [7_u64; 1 << 10]).unwrap().oids();
        let first = all.unwrap().first;
        heap.publish(first, version(1));
        first
    });
    let record = first[0].record_of(oid);
    let [_, store] = shown(&memory[0]).expect("both");
    let blocks = || bytes_of(&store);
    let freed = OidRange {
        first: oid.plus(32),
        count: 32,
    };
    with(&owner, |heap| heap.free(freed)).unwrap();
    assert!(blocks() >= 256 << 10, "objects lie in the file");
    assert!(blocks() < 512 << 10, "what is freed does not");
    let second = parts();
    let again = |part: &Cluster| part.publish_in(&memory[0], vec![None, None], |_, _| {});
    let busy = again(&second[0]).expect_err("the first run has it");
    assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
    // A run ends before the others hear that it has, and its heap goes later.
    let table = Publications::of(memory[0].records().expect("the same table"));
    let is_published = || {
        table
            .record(record)
            .expect("within the table")
            .is_published()
    };
    assert!(is_published());
    first[0].end_publishing();
    assert!(!is_published(), "nothing is");
    drop((owner, first));
    assert_eq!(blocks(), 0, "nothing is left");
    again(&second[0]).expect("it is free again");
    let twice = again(&second[0]).expect_err("a cluster publishes once");
    assert_eq!(twice.kind(), ErrorKind::Unsupported);
    drop(second);
    // Slots that were given back are of no file any more.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("what is mapped");
    let name = format!(" {} ", is(&store).st_ino);
    let mapped = maps.lines().filter(|line| line.contains(&name));
    assert_eq!(mapped.collect::<Vec<_>>(), [""; 0]);
}

/// What is no such memory: a file that is none of the system's memory.
fn lie() -> [OwnedFd; 2] {
    [(); 2].map(|()| {
        std::fs::File::open("/proc/self/exe")
            .expect("this program")
            .into()
    })
}

#[test]
fn a_process_that_shows_no_such_memory_is_asked_by_message_and_others_are_read() {
    let (parts, memory) = (parts(), memory());
    let told = Mutex::new(Vec::new());
    let tell = |node, error: io::Error| told.lock().unwrap().push((node, error.kind()));
    parts[1]
        .publish_in(&memory, vec![Some(lie()), None], tell)
        .expect("own memory");
    assert_eq!(*told.lock().unwrap(), [(OWNER, ErrorKind::InvalidData)]);
    assert!(parts[1].seen(OWNER).is_none());
    assert!(parts[1].published(READER).is_some());
}

/// A process can write anything into its table, and into its store.
#[test]
fn whatever_a_neighbour_publishes_a_reader_gets_a_value_or_nothing() {
    let (parts, memory) = (parts(), [memory(), memory()]);
    see_each_other(&parts, [&memory[0], &memory[1]]);
    let nodes = nodes(&parts);
    let oid = published(&parts, &nodes);
    let [owner, reader] = &nodes;
    let lying = parts[0]
        .published(OWNER)
        .expect("it publishes")
        .records
        .clone();
    let record = lying.record(parts[0].record_of(oid)).expect("it has one");
    let lie = |place| {
        record.unpublish();
        record.publish(place, 1 << 16);
        read(reader, oid).map(|(_, is_value)| is_value)
    };
    let object = std::mem::size_of::<(u64, bool)>() as u64;
    let store_bytes = store_bytes(&memory[0]);
    assert_eq!(lie(store_bytes - object), Some(true), "zeros, at the end");
    for beyond in [
        store_bytes - object + 1,
        store_bytes,
        u64::MAX - 15,
        u64::MAX,
    ] {
        assert_eq!(lie(beyond), None, "{beyond}");
    }
    // Bytes of which some are no `bool`, wherever they lie.
    let noise = with(owner, |heap| heap.alloc([0x5a_u8; 4096]).unwrap().oid());
    let at = parts[0].published(OWNER).expect("it publishes").clone();
    let place = with(owner, |heap| {
        let at = heap.heap.place(noise).expect("it is there");
        heap.heap.chunks[at.chunk]
            .storage(at.slot)
            .expect("it has bytes")
    });
    let place = at.seen(place, 4096).expect("others see it");
    for place in place..place + 4096 - object {
        assert_eq!(lie(place), Some(false), "no value");
    }
    assert!(with(reader, |heap| !heap.is_present(oid)
        || heap.gather(oid, &mut Vec::new()).is_ok()));
}
