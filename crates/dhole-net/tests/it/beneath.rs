//! What is asked of the port beneath a watched one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dhole_model::NodeId;
use dhole_net::{FailureDetector, Layer, Local, Port};

/// Notes who is notified, and says that something has come.
struct Notified(Local, Arc<AtomicU64>);

impl Layer for Notified {
    type Inner = Local;

    fn inner(&self) -> &Local {
        &self.0
    }

    fn notify(&self, to: NodeId) {
        self.1.store(u64::from(to.0), Ordering::SeqCst);
    }

    fn peek(&self) -> bool {
        true
    }
}

#[test]
fn what_is_asked_of_the_port_beneath_gets_there() {
    let notified = Arc::new(AtomicU64::new(0));
    let mut ports = Local::cluster(2).expect("ports");
    let port: Box<dyn Port> = Box::new(Notified(ports.swap_remove(0), Arc::clone(&notified)));
    let watched: Box<dyn Port> = Box::new(FailureDetector::with_clock(
        port,
        Duration::from_secs(8),
        || Duration::ZERO,
    ));
    Port::notify(&watched, NodeId(1));
    assert_eq!(notified.load(Ordering::SeqCst), 1);
    assert!(Port::peek(&watched));
}
