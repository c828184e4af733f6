//! Ports, and the layers over them, from outside.
#![forbid(unsafe_code)]

mod alive;
mod beneath;
mod failure_detector;
mod multicast;
mod tcp;
mod udp;
