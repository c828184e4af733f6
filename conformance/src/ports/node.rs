use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{Loss, Port, SendError};

use super::Patience;

/// What a check waits for at once between two polls.
const PARK: Duration = Duration::from_millis(20);

/// A node of a check: sends and waits as the engine does.
pub struct Node<'a> {
    /// The node's port.
    pub port: &'a dyn Port,
    patience: Patience,
}

impl<'a> Node<'a> {
    /// The node at this port.
    pub fn new(port: &'a dyn Port) -> Self {
        Node {
            port,
            patience: Patience::default(),
        }
    }

    /// The other nodes.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let me = self.port.me();
        let nodes = (0..self.port.nodes()).map(NodeId::at);
        nodes.filter(move |&node| node != me)
    }

    /// Sends a frame, and takes what comes as long as there is no room for it.
    ///
    /// # Panics
    /// When the frame cannot be sent.
    pub fn send(&self, to: NodeId, parts: &[&[u8]], take: &mut dyn FnMut(NodeId, &[u8])) {
        loop {
            match self.port.send(to, parts) {
                Ok(()) => return,
                Err(SendError::Busy { .. }) => {
                    self.patience.for_a("room");
                    if self.port.poll(take) == 0 {
                        self.port.park(PARK);
                    }
                }
                Err(error) => panic!("{}: {error}", self.port.me()),
            }
        }
    }

    /// Takes what comes until `done`.
    pub fn take_until(
        &self,
        what: &str,
        done: &mut dyn FnMut() -> bool,
        take: &mut dyn FnMut(NodeId, &[u8]),
    ) {
        while !done() {
            self.patience.for_a(what);
            if self.port.poll(take) == 0 {
                self.port.park(PARK);
            }
        }
    }

    /// Takes what comes until some peer is lost: which, and why.
    pub fn take_until_lost(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> (NodeId, Loss) {
        loop {
            self.patience.for_a("a loss");
            if self.port.poll(take) == 0 {
                self.port.park(PARK);
            }
            let mut lost = Vec::new();
            self.port.lost(&mut |node, loss| lost.push((node, loss)));
            assert!(lost.len() < 2, "more than one is lost: {lost:?}");
            if let Some(lost) = lost.pop() {
                return lost;
            }
        }
    }

    /// The number that is the whole of a frame.
    ///
    /// # Panics
    /// When the frame is not a number.
    pub fn number(frame: &[u8]) -> u64 {
        u64::from_le_bytes(frame.try_into().expect("a frame of eight bytes"))
    }
}

/// Runs what each node does in a thread of its own. A node that is done goes on polling until all
/// are, for what is on the way between others may need it; then all say goodbye.
pub fn together(ports: &[Box<dyn Port>], role: impl Fn(&Node<'_>) + Sync) {
    /// Says so when a node fails, so that the others do not wait for it.
    struct Done<'a>(&'a AtomicUsize, &'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            if thread::panicking() {
                self.1.store(true, Ordering::SeqCst);
            }
        }
    }
    let (done, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for port in ports {
            let (role, done, failed) = (&role, &done, &failed);
            scope.spawn(move || {
                let node = Node::new(&**port);
                let mine = Done(done, failed);
                role(&node);
                drop(mine);
                while done.load(Ordering::SeqCst) < ports.len() && !failed.load(Ordering::SeqCst) {
                    node.patience.for_a("the other nodes");
                    if port.poll(&mut |from, _| panic!("{from} sent too much")) == 0 {
                        port.park(Duration::from_millis(1));
                    }
                }
            });
        }
    });
}
