//! Datagrams to all members at once.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};

use super::UdpKey;

/// What all members of a cluster know, and nobody else: where datagrams to all of them go, and how
/// those are tagged. Such a tag proves that a member sent the datagram, and not which one.
#[derive(Debug)]
pub struct UdpGroup {
    pub(super) address: SocketAddr,
    pub(super) key: UdpKey,
    /// Bound to the group, and so it gets nothing else.
    pub(super) socket: UdpSocket,
    interface: Ipv4Addr,
}

impl UdpGroup {
    /// Joins the group at `address`, over the interface that has the address `interface`. With port
    /// 0 a free one is chosen, for the others to be told of.
    ///
    /// # Errors
    /// What the kernel says where it takes part in no group.
    pub fn join(address: SocketAddrV4, interface: Ipv4Addr, key: UdpKey) -> io::Result<UdpGroup> {
        let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
        // Each process of a machine has a socket of its own there.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &address)?;
        sockopt::set_ip_add_membership(&socket, address.ip(), &interface)?;
        let socket = UdpSocket::from(socket);
        socket.set_nonblocking(true)?;
        let _ = sockopt::set_socket_recv_buffer_size(&socket, super::KERNEL_KEEPS);
        Ok(UdpGroup {
            address: socket.local_addr()?,
            key,
            socket,
            interface,
        })
    }

    /// The port of the group.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Makes a socket ready to send there: never further than the next network, and on one machine
    /// never out of it.
    pub(super) fn open(&self, socket: &UdpSocket) -> io::Result<()> {
        let ttl = if self.interface.is_loopback() { 0 } else { 1 };
        sockopt::set_ip_multicast_if(socket, &self.interface)?;
        sockopt::set_ip_multicast_ttl(socket, ttl)?;
        Ok(sockopt::set_ip_multicast_loop(socket, true)?)
    }
}
