//! Nodes as threads; and nodes as processes are, over real and in-process ports, but all in this
//! process.
#![forbid(unsafe_code)]

mod documented;
mod hostile_peer;
mod ids;
mod lazy_send;
mod slow;

use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dhole_model::NodeId;
use dhole_net::{Stream, Tcp};

/// Held while a cluster runs: two clusters of one process at once would not agree on ids.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ports of two nodes that are connected over the loopback.
fn pair() -> [Tcp; 2] {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let here = listener.accept().unwrap().0;
    [
        Tcp::new(NodeId(0), vec![None, Some(Stream::Plain(here))]).unwrap(),
        Tcp::new(NodeId(1), vec![Some(Stream::Plain(there)), None]).unwrap(),
    ]
}
