//! The command over simulated clusters: networks, calibration, and programs that it starts.
#![forbid(unsafe_code)]

mod calibrate;
mod hello;
mod network;
mod sim;
