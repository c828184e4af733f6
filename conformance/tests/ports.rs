//! The suite of ports, on every port. A program of its own: an MPI library catches signals that
//! nodes catch too.

use conformance::ports;

conformance::port_suite!(local, super::ports::local);
conformance::port_suite!(tcp, super::ports::tcp);
conformance::port_suite!(narrow_tcp, super::ports::narrow_tcp);
conformance::port_suite!(shm, super::ports::shm);
conformance::port_suite!(narrow_shm, super::ports::narrow_shm);
conformance::port_suite!(mixed, super::ports::mixed);
conformance::port_suite!(watched, super::ports::watched);
conformance::port_suite!(udp, super::ports::udp);
conformance::port_suite!(lossy_udp, super::ports::lossy_udp);
conformance::port_suite!(lossy, super::ports::lossy);
#[cfg(feature = "mpi")]
conformance::port_suite!(mpi, super::ports::mpi);
