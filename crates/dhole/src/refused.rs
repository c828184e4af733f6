//! What `#[dhole::object]` refuses, with the compiler's message.
//!
//! Operations take their state by reference:
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue;
//! #[dhole::object]
//! impl Queue {
//!     pub fn close(self) {} // error: an operation takes `&self` if it only reads, or `&mut self`
//! }
//! ```
//!
//! Arguments are given by value or borrowed for the call, and results are given by value:
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue;
//! #[dhole::object]
//! impl Queue {
//!     pub fn push(&mut self, job: &'static str) {} // error: an argument is borrowed for the call
//! }
//! ```
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(String);
//! #[dhole::object]
//! impl Queue {
//!     pub fn first(&self) -> &str { &self.0 } // error: a result is given by value
//! }
//! ```
//!
//! Arguments and results implement serde's traits:
//!
//! ```compile_fail,E0277
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue;
//! struct Job;
//! #[dhole::object]
//! impl Queue {
//!     pub fn push(&mut self, job: Job) {} // error: `Job` does not travel between nodes
//! }
//! ```
//!
//! The worker of an operation that waits is written with its lifetime:
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue;
//! # use dhole::Worker;
//! #[dhole::object]
//! impl Queue {
//!     pub fn pop(&mut self, w: &mut Worker) -> dhole::Result<()> { Ok(()) } // error: `Worker<'_>`
//! }
//! ```
//!
//! The state does so too, and `&self` cannot change it:
//!
//! ```compile_fail,E0277
//! struct Queue;
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> usize { 0 } // error: `Queue: serde::Serialize` is not satisfied
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! struct Queue(std::cell::Cell<u32>); // error: cannot be shared between threads safely
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> u32 { self.0.replace(1) }
//! }
//! ```
//!
//! An operation that only reads cannot write:
//!
//! ```compile_fail,E0594
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     pub fn push(&self) { self.0 += 1; }
//! }
//! ```
//!
//! nor a guard:
//!
//! ```compile_fail,E0594
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     #[when({ self.0 += 1; true })]
//!     pub fn push(&mut self) {}
//! }
//! ```
//!
//! Only operations wait, and there must be some:
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> u32 { self.0 }
//!     #[when(self.0 > 0)] // error: only operations wait
//!     fn pop(&mut self) {}
//! }
//! ```
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue { // error: no operations
//!     fn pop(&mut self) {}
//! }
//! ```
//!
//! The runtime executes `#[on_loss]` itself, at once, and passes the node:
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> u32 { self.0 }
//!     #[on_loss] // error: it is not `pub`
//!     pub fn lose(&mut self, node: dhole::NodeId) {}
//! }
//! ```
//!
//! ```compile_fail
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> u32 { self.0 }
//!     #[on_loss]
//!     #[when(self.0 > 0)] // error: it cannot wait
//!     fn lose(&mut self, node: dhole::NodeId) {}
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> u32 { self.0 }
//!     #[on_loss]
//!     fn lose(&mut self, node: String) {} // error: expected `String`, found `NodeId`
//! }
//! ```
//!
//! A state that does not become bytes is resident, and a constructor makes its objects:
//!
//! ```compile_fail,E0277
//! struct Queue(std::fs::File);
//! #[dhole::object] // error: the state of `Queue` does not become bytes
//! impl Queue {
//!     pub fn is_file(&self) -> bool { true }
//! }
//! ```
//!
//! ```compile_fail
//! struct Queue(std::fs::File);
//! #[dhole::object(resident)]
//! impl Queue { // error: no constructor
//!     pub fn is_file(&self) -> bool { true }
//! }
//! ```
//!
//! A handle needs a type with operations, and has no other methods:
//!
//! ```compile_fail,E0277
//! fn of(handle: dhole::Object<Vec<u8>>) {} // error: `Vec<u8>` has no operations
//! ```
//!
//! ```compile_fail,E0599
//! # #[derive(serde::Serialize, serde::Deserialize)] struct Queue(u32);
//! #[dhole::object]
//! impl Queue {
//!     pub fn len(&self) -> u32 { self.0 }
//! }
//! fn pop(queue: dhole::Object<Queue>, w: &mut dhole::Worker<'_>) {
//!     queue.pop(w); // error: no method named `pop`
//! }
//! ```
//!
//! Types may have parameters:
//!
//! ```
//! use serde::{Deserialize, Serialize, de::DeserializeOwned};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Stack<T>(Vec<T>);
//!
//! #[dhole::object]
//! impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Stack<T> {
//!     pub fn push(&mut self, (item, again): (T, bool), _note: Option<T>) {
//!         let _ = again;
//!         self.0.push(item);
//!     }
//!     #[when(!self.0.is_empty())]
//!     pub fn pop(&mut self) -> Option<T> {
//!         self.0.pop()
//!     }
//!     pub fn replace(&mut self, with: Self) -> Self {
//!         std::mem::replace(self, with)
//!     }
//! }
//!
//! dhole::Config::nodes(2).run(|w| {
//!     let stack = w.once(|w| Ok(w.new_object(dhole::on(dhole::NodeId(0)), Stack(vec!['a']))?))?;
//!     stack.push(w, ('b', true), None)?;
//!     stack.pop(w)?;
//!     w.barrier()?; // who replaced it before would leave nothing to pop
//!     assert!(stack.replace(w, Stack(Vec::new()))?.0.len() < 3);
//!     Ok(())
//! })?;
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! A value that the stack of no node holds is refused when a program is built, and what makes it in
//! place is named:
//!
//! ```compile_fail,E0080
//! #[derive(dhole::Share)]
//! struct Field([[f64; 1024]; 3072]); // 24 MiB
//!
//! dhole::Config::nodes(2).run(|w| {
//!     w.once(|w| Ok(w.alloc(Field([[0.0; 1024]; 3072])))) // error: make it with `alloc_with`
//! })?;
//! # Ok::<(), dhole::RunError>(())
//! ```
//!
//! ```
//! #[derive(dhole::Share)]
//! struct Field([[f64; 1024]; 3072]);
//!
//! dhole::Config::nodes(2).run(|w| {
//!     w.once(|w| Ok(w.alloc_with(|field: &mut Field| field.0[0].fill(1.0))))
//! })?;
//! # Ok::<(), dhole::RunError>(())
//! ```
