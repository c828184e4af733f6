/// How a broadcast gets its number (Orca, section 2.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// The sender asks the sequencer for a number, and multicasts the message with it.
    Ask,
    /// The sender sends the message to the sequencer, which multicasts it with a number.
    Forward,
    /// The sender multicasts the message, and the sequencer multicasts its number.
    Announce,
}

/// In a group of so many, to tell the other of a number costs a message less than to ask for it,
/// and nobody is woken for it who did not broadcast.
const FEW_MEMBERS: usize = 2;

/// Who may go on when members are lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Quorum {
    /// More than half of the last view, or half of it with the most senior member: of a group that
    /// falls apart one part goes on at most. The rule where a lost member may be alive.
    Majority,
    /// Whoever is left. Only where a lost member is dead: a process of the same machine.
    Survivors,
}

/// What a group may rely on, and its limits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// Each message arrives once, or its sender or receiver is lost. If not, what is missing is
    /// asked for and sent again.
    pub reliable: bool,
    /// One packet reaches all. If not, a multicast is as many messages as there are receivers.
    pub multicast: bool,
    /// The largest body that travels in one message, in bytes.
    pub largest: usize,
    /// Up to how many bytes a body goes through the sequencer, in bytes.
    pub forward_most: usize,
    /// The method for all, whatever their size.
    pub method: Option<Method>,
    /// Who may go on when members are lost.
    pub quorum: Quorum,
    /// Whether a member hears when its broadcasts are safe: that costs an answer of each member to
    /// each broadcast.
    pub confirm: bool,
    /// Numbers that may be given out before all members have acknowledged them, and so the
    /// longest history.
    pub window: u32,
    /// A token collects acknowledgements when so many numbers lack them.
    pub acknowledge_every: u32,
    /// Broadcasts of one member that are under way at a time.
    pub under_way: u32,
    /// Broadcasts of one member that may wait, those under way included.
    pub queue: usize,
    /// To how many members each member passes a multicast on, where no packet reaches all. If not
    /// given, whoever multicasts sends to all itself.
    pub fanout: Option<u32>,
    /// Messages that a member passes on to another before that has passed them on.
    pub credits: u32,
    /// After how long without an answer a message is sent again, in nanoseconds. Only where the
    /// links are not reliable.
    pub resend_ns: u64,
}

impl Settings {
    /// For links that lose nothing and have no multicast: shared memory, TCP.
    pub fn reliable() -> Settings {
        Settings {
            reliable: true,
            multicast: false,
            largest: 1 << 20,
            forward_most: 4 << 10,
            method: None,
            quorum: Quorum::Majority,
            confirm: false,
            window: 1024,
            acknowledge_every: 256,
            under_way: 16,
            queue: 4096,
            fanout: None,
            credits: 32,
            resend_ns: 0,
        }
    }

    /// For datagrams of at most `largest` bytes, which may be lost, doubled and overtaken.
    pub fn datagrams(largest: usize, resend_ns: u64) -> Settings {
        Settings {
            reliable: false,
            largest,
            forward_most: largest / 4,
            resend_ns: resend_ns.max(1),
            ..Settings::reliable()
        }
    }

    /// How a body of so many bytes gets its number in a group of so many members.
    ///
    /// Through the sequencer when it is small: one message more than the multicast. Otherwise its
    /// bytes travel once: announced, if it fits one message, where one packet reaches all, for then
    /// two packets do, and where there are but two, of whom the sequencer need not wait then; and
    /// with numbers asked for where that costs fewer messages, or many parts.
    pub fn method_for(&self, bytes: usize, members: usize) -> Method {
        let tells_all = self.multicast || members <= FEW_MEMBERS;
        match self.method {
            Some(method) => method,
            None if bytes <= self.forward_most => Method::Forward,
            None if tells_all && bytes <= self.largest => Method::Announce,
            None => Method::Ask,
        }
    }
}
