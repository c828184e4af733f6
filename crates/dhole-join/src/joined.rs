use dhole_net::Port;
use dhole_space::WindowMaker;

/// What a process has when it has joined the others.
pub struct Joined {
    /// Its port to them.
    pub port: Box<dyn Port>,
    /// As many processes of the cluster as share the cores of this one, itself among them, as far
    /// as is known: what a process does while it waits should depend on that.
    pub neighbours: usize,
    /// What makes windows in the memory of all of them, where the port reaches memory that is not
    /// mapped.
    pub windows: Option<WindowMaker>,
}
