use std::os::fd::OwnedFd;
use std::time::Duration;

use dhole_model::{NodeId, Notify};

use crate::{Incoming, Loss, Offers, Port, SendError};

/// A port over another: what it does not do in its own way, the port beneath does.
///
/// Every method but [`inner`](Layer::inner) is the method of [`Port`] of that name. Where a layer
/// does not say how frames are taken where they lie, they are taken as [`poll`](Layer::poll) says;
/// where it does not say how it parks coarsely, that is a [`park`](Layer::park). It cannot peek.
#[expect(missing_docs, reason = "they are those of Port")]
pub trait Layer: Send + Sync {
    /// What the port beneath is.
    type Inner: Port + ?Sized;

    /// The port beneath.
    fn inner(&self) -> &Self::Inner;

    fn name(&self) -> &'static str {
        self.inner().name()
    }

    fn offers(&self) -> Offers {
        self.inner().offers()
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        self.inner().send_with(to, parts, notify)
    }

    fn notify(&self, to: NodeId) {
        self.inner().notify(to);
    }

    fn multicasts(&self) -> bool {
        self.inner().multicasts()
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        self.inner().send_each(to, parts)
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        self.inner().poll(take)
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        self.poll(&mut |from, frame| take(from, Incoming::of(frame)))
    }

    fn peek(&self) -> bool {
        self.inner().peek()
    }

    fn can_peek(&self) -> bool {
        false
    }

    fn shown_by(&self, peer: NodeId) -> Option<&[OwnedFd]> {
        self.inner().shown_by(peer)
    }

    fn park(&self, at_most: Duration) {
        self.inner().park(at_most);
    }

    fn park_coarse(&self, at_most: Duration, _looks: Duration) {
        self.park(at_most);
    }

    fn unpark(&self) {
        self.inner().unpark();
    }

    fn beat(&self) -> Duration {
        self.inner().beat()
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        self.inner().give_up(peer, loss);
    }

    fn flush(&self) {
        self.inner().flush();
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        self.inner().heard(tell);
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        self.inner().lost(tell);
    }

    fn missed(&self, peer: NodeId, how: &str) {
        self.inner().missed(peer, how);
    }

    fn failed(&self, how: &str) {
        self.inner().failed(how);
    }

    fn exits(&self, code: u8) {
        self.inner().exits(code);
    }

    fn begins(&self, survives: bool) {
        self.inner().begins(survives);
    }

    fn ends(&self) {
        self.inner().ends();
    }

    fn close(&self, at_most: Duration) {
        self.inner().close(at_most);
    }
}

impl<L: Layer> Port for L {
    fn name(&self) -> &'static str {
        Layer::name(self)
    }

    fn me(&self) -> NodeId {
        self.inner().me()
    }

    fn nodes(&self) -> usize {
        self.inner().nodes()
    }

    fn offers(&self) -> Offers {
        Layer::offers(self)
    }

    fn send_with(&self, to: NodeId, parts: &[&[u8]], notify: Notify) -> Result<(), SendError> {
        Layer::send_with(self, to, parts, notify)
    }

    fn notify(&self, to: NodeId) {
        Layer::notify(self, to);
    }

    fn multicasts(&self) -> bool {
        Layer::multicasts(self)
    }

    fn send_each(&self, to: &mut Vec<NodeId>, parts: &[&[u8]]) -> Result<(), SendError> {
        Layer::send_each(self, to, parts)
    }

    fn poll(&self, take: &mut dyn FnMut(NodeId, &[u8])) -> usize {
        Layer::poll(self, take)
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        Layer::poll_in_place(self, take)
    }

    fn peek(&self) -> bool {
        Layer::peek(self)
    }

    fn can_peek(&self) -> bool {
        Layer::can_peek(self)
    }

    fn shown_by(&self, peer: NodeId) -> Option<&[OwnedFd]> {
        Layer::shown_by(self, peer)
    }

    fn park(&self, at_most: Duration) {
        Layer::park(self, at_most);
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        Layer::park_coarse(self, at_most, looks);
    }

    fn unpark(&self) {
        Layer::unpark(self);
    }

    fn beat(&self) -> Duration {
        Layer::beat(self)
    }

    fn give_up(&self, peer: NodeId, loss: Loss) {
        Layer::give_up(self, peer, loss);
    }

    fn flush(&self) {
        Layer::flush(self);
    }

    fn heard(&self, tell: &mut dyn FnMut(NodeId)) {
        Layer::heard(self, tell);
    }

    fn lost(&self, tell: &mut dyn FnMut(NodeId, Loss)) {
        Layer::lost(self, tell);
    }

    fn missed(&self, peer: NodeId, how: &str) {
        Layer::missed(self, peer, how);
    }

    fn failed(&self, how: &str) {
        Layer::failed(self, how);
    }

    fn exits(&self, code: u8) {
        Layer::exits(self, code);
    }

    fn begins(&self, survives: bool) {
        Layer::begins(self, survives);
    }

    fn ends(&self) {
        Layer::ends(self);
    }

    fn close(&self, at_most: Duration) {
        Layer::close(self, at_most);
    }
}

impl<P: Port + ?Sized> Layer for Box<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        self
    }

    fn can_peek(&self) -> bool {
        (**self).can_peek()
    }

    fn park_coarse(&self, at_most: Duration, looks: Duration) {
        (**self).park_coarse(at_most, looks);
    }

    fn poll_in_place(&self, take: &mut dyn FnMut(NodeId, Incoming<'_>)) -> usize {
        (**self).poll_in_place(take)
    }
}
