/// A small operation that papers measure of a cluster. It serves to compare a model with the real
/// cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Primitive {
    /// The smallest message there and back, while both ends wait for it.
    RoundTrip,
    /// A message of so many bytes there and back.
    LargeRoundTrip(u32),
    /// Acquiring a lock that its manager holds last: two messages.
    LockTwoHops,
    /// Acquiring a lock that a third node held last: three messages.
    LockThreeHops,
    /// A barrier of so many nodes that arrive at the same time.
    Barrier(u16),
    /// Fetching an object of so many bytes.
    Fetch(u32),
    /// A fault on a page of 4 KiB, all of which is fetched.
    PageFault,
    /// A fault on a page for which an empty diff is fetched.
    EmptyDiffFault,
    /// A fault on a page for which a diff of all its 4 KiB is made, fetched and applied.
    FullDiffFault,
    /// Reading a minipage of so many bytes, of which the manager, the holder and the reader are
    /// three nodes (MultiView, section 4.2).
    MinipageRead(u32),
    /// Writing a minipage of so many bytes, of which so many nodes have a copy, none of them the
    /// manager or the writer.
    MinipageWrite(u32, u16),
    /// Megabytes a second of fetching an object of 1 MiB.
    Throughput,
    /// A write to an object that is replicated on so many nodes, totally ordered.
    GroupWrite(u16),
    /// An operation of an object on another node, with so many bytes of arguments, there and back.
    Invocation(u32),
    /// Starting such an operation without arguments, until the program goes on.
    StartedInvocation,
    /// Making an object on another node by its constructor.
    Creation,
    /// An operation that gives so many KiB back.
    CopyBack(u32),
    /// A read fault on a page of 4 KiB that the node of its adviser has (VOTE, section 4.2): an
    /// operation there, and within it one that puts the page to the node of the fault.
    ReadFault,
    /// Asking a sequencer on a network adapter for a number.
    SequenceNumber,
}

impl Primitive {
    /// All primitives, in the order of the table.
    pub const ALL: [Primitive; 35] = [
        Primitive::RoundTrip,
        Primitive::LargeRoundTrip(4_096),
        Primitive::LockTwoHops,
        Primitive::LockThreeHops,
        Primitive::Barrier(2),
        Primitive::Barrier(4),
        Primitive::Barrier(8),
        Primitive::Barrier(16),
        Primitive::Barrier(32),
        Primitive::Fetch(8),
        Primitive::Fetch(4_096),
        Primitive::PageFault,
        Primitive::EmptyDiffFault,
        Primitive::FullDiffFault,
        Primitive::MinipageRead(128),
        Primitive::MinipageRead(4_096),
        Primitive::MinipageWrite(128, 1),
        Primitive::MinipageWrite(4_096, 1),
        Primitive::MinipageWrite(128, 7),
        Primitive::MinipageWrite(4_096, 7),
        Primitive::Throughput,
        Primitive::GroupWrite(8),
        Primitive::GroupWrite(32),
        Primitive::SequenceNumber,
        Primitive::Invocation(0),
        Primitive::Invocation(64),
        Primitive::Invocation(128),
        Primitive::StartedInvocation,
        Primitive::Creation,
        Primitive::CopyBack(4),
        Primitive::CopyBack(8),
        Primitive::CopyBack(16),
        Primitive::CopyBack(32),
        Primitive::CopyBack(64),
        Primitive::ReadFault,
    ];

    /// Its name, with its unit, as in the table `[published]` of a description.
    pub fn name(self) -> String {
        match self {
            Primitive::RoundTrip => "round_trip_us".into(),
            Primitive::LargeRoundTrip(bytes) => format!("round_trip_{bytes}_bytes_us"),
            Primitive::LockTwoHops => "lock_2_hops_us".into(),
            Primitive::LockThreeHops => "lock_3_hops_us".into(),
            Primitive::Barrier(nodes) => format!("barrier_{nodes}_us"),
            Primitive::Fetch(bytes) => format!("fetch_{bytes}_bytes_us"),
            Primitive::PageFault => "page_fault_us".into(),
            Primitive::EmptyDiffFault => "empty_diff_fault_us".into(),
            Primitive::FullDiffFault => "full_diff_fault_us".into(),
            Primitive::MinipageRead(bytes) => format!("minipage_read_{bytes}_us"),
            Primitive::MinipageWrite(bytes, 1) => format!("minipage_write_{bytes}_us"),
            Primitive::MinipageWrite(bytes, copies) => {
                format!("minipage_write_{bytes}_of_{copies}_copies_us")
            }
            Primitive::Throughput => "throughput_mb_per_s".into(),
            Primitive::GroupWrite(nodes) => format!("group_write_{nodes}_us"),
            Primitive::SequenceNumber => "sequence_number_us".into(),
            Primitive::Invocation(0) => "invocation_us".into(),
            Primitive::Invocation(bytes) => format!("invocation_{bytes}_bytes_us"),
            Primitive::StartedInvocation => "started_invocation_us".into(),
            Primitive::Creation => "creation_us".into(),
            Primitive::CopyBack(kib) => format!("copy_{kib}_kib_us"),
            Primitive::ReadFault => "read_fault_us".into(),
        }
    }
}

/// A primitive as it was published.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Published {
    /// The primitive.
    pub primitive: Primitive,
    /// The published value, in the unit of the primitive's name.
    pub value: f64,
}
