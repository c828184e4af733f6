//! The simulated cluster: order, time, waiting, networks.

mod ending;
mod network;
mod order;
mod stage;
mod timing;
mod waiting;
