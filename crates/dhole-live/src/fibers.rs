//! Stacks for processes on live machines: each has a thread, of which one at a time goes on.

#[expect(
    clippy::disallowed_types,
    reason = "a live machine is where threads wait for each other"
)]
use std::sync::Condvar;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;

use dhole_model::NodeId;
use dhole_model::unpoisoned::lock;
use dhole_node::{Fiber, StartError};
use dhole_space::runtime_thread::SignalMask;

/// Which of a node's fibers goes on.
#[expect(clippy::disallowed_types, reason = "as above")]
pub(crate) struct Turn {
    /// Which, and whether it has unwound and given the turn to nobody.
    has: Mutex<(Fiber, bool)>,
    changed: Condvar,
}

impl Turn {
    #[expect(clippy::disallowed_types, reason = "as above")]
    pub fn new() -> Turn {
        Turn {
            has: Mutex::new((Fiber::PROGRAM, false)),
            changed: Condvar::new(),
        }
    }

    /// Lets another fiber go on.
    pub fn give(&self, to: Fiber) {
        lock(&self.has).0 = to;
        self.changed.notify_all();
    }

    /// Whose turn it was has unwound, which none does but by a mistake of ours. One of those that
    /// wait has it then, to unwind in its turn and lose it again.
    pub fn lose(&self) {
        lock(&self.has).1 = true;
        self.changed.notify_all();
    }

    /// Waits until this one is to go on.
    ///
    /// # Panics
    /// When the turn is [lost](Turn::lose), and has come to this one.
    pub fn wait(&self, me: Fiber) {
        let mut has = lock(&self.has);
        while has.0 != me {
            if has.1 {
                *has = (me, false);
                drop(has);
                panic!("another process of the node has unwound");
            }
            let woken = self.changed.wait(has);
            has = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A thread that is wanted.
pub(crate) struct Wanted {
    node: NodeId,
    fiber: Fiber,
    made: SyncSender<Result<(), String>>,
}

/// Where threads are asked for during a run: only whoever holds the run's scope can make them.
pub(crate) struct Maker(Mutex<Option<Sender<Wanted>>>);

impl Maker {
    pub const fn new() -> Maker {
        Maker(Mutex::new(None))
    }

    /// A run begins; where it is told what is wanted.
    pub fn open(&self) -> Receiver<Wanted> {
        let (sender, receiver) = channel();
        *lock(&self.0) = Some(sender);
        receiver
    }

    /// Nothing more is wanted.
    pub fn close(&self) {
        *lock(&self.0) = None;
    }

    /// Makes what is wanted, until that is nothing more. What is made runs code of the program,
    /// with these signals blocked.
    pub fn make<'scope>(
        scope: &'scope Scope<'scope, '_>,
        wanted: Receiver<Wanted>,
        (stack_bytes, signals): (usize, SignalMask),
        run: impl Fn(NodeId, Fiber) + Copy + Send + 'scope,
    ) {
        for Wanted { node, fiber, made } in wanted {
            let thread = std::thread::Builder::new()
                .name(format!("dhole-{}.{}", node.index(), fiber.0))
                .stack_size(stack_bytes);
            let spawned = thread.spawn_scoped(scope, move || {
                signals.apply();
                run(node, fiber);
            });
            // Whoever wanted it waits for the answer.
            let _ = made.send(spawned.map(drop).map_err(|cause| cause.to_string()));
        }
    }

    /// Asks for a thread.
    pub fn want(
        &self,
        node: NodeId,
        fiber: Fiber,
        (machine, nodes): (&'static str, usize),
    ) -> Result<(), StartError> {
        let (made, answer) = sync_channel(1);
        let wanted = Wanted { node, fiber, made };
        let sender = lock(&self.0).clone();
        let asked = sender.is_some_and(|sender| sender.send(wanted).is_ok());
        let answer = match asked {
            true => answer.recv().map_err(|gone| gone.to_string()),
            false => Err("no run is on".to_owned()),
        };
        answer
            .and_then(|made| made)
            .map_err(|cause| StartError::Refused {
                machine,
                nodes,
                what: "a thread for a process",
                cause,
            })
    }
}
