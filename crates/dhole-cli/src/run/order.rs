//! The order with which a node starts, on this machine or by the agent of another.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::line::Line;
use super::secret::{Secret, handed_over, inherit};

/// The description of one node.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub node: u16,
    /// Processes of the cluster.
    pub nodes: u16,
    /// Their transport.
    pub transport: String,
    /// The name of the run.
    pub run: String,
    /// The address at which node 0 listens.
    pub meeting: String,
    /// The name by which other machines reach this one, if not the address that it sees itself.
    pub host: Option<String>,
    /// The folder to run in.
    pub folder: PathBuf,
    /// The program and its arguments, as bytes: they need not be UTF-8.
    pub program: Vec<Vec<u8>>,
    /// Environment variables for the program besides those of its machine.
    pub environment: BTreeMap<String, String>,
}

impl Order {
    /// Starts the node, and returns it with its line. Its process becomes the program and leads a
    /// group of its own. The kernel kills it when the thread that calls this ends.
    pub fn start(
        &self,
        secret: &Secret,
        listener: Option<TcpListener>,
        settle: impl FnOnce(&mut Command),
    ) -> Result<(std::process::Child, Line), RunError> {
        let failed = |doing| {
            move |cause: io::Error| RunError::Start {
                node: self.node,
                doing,
                cause,
            }
        };
        let own = "finding this command's own executable";
        let mut command = Command::new(std::env::current_exe().map_err(failed(own))?);
        let parent = std::process::id().to_string();
        command
            .args(["node", "--parent", &parent, "--"])
            .args(
                self.program
                    .iter()
                    .map(|word| std::ffi::OsStr::from_bytes(word)),
            )
            .current_dir(&self.folder)
            .process_group(0)
            .stdin(Stdio::null())
            .env_remove("DHOLE_SURVIVE")
            .envs(&self.environment)
            .env("DHOLE_NODE", self.node.to_string())
            .env("DHOLE_NODES", self.nodes.to_string())
            .env("DHOLE_TRANSPORT", &self.transport)
            .env("DHOLE_RUN", &self.run)
            .env("DHOLE_MEETING", &self.meeting)
            .env_remove(dhole::sim::ENVIRONMENT_VARIABLE)
            .env_remove("DHOLE_SECRET_FILE")
            .env_remove("DHOLE_LISTEN")
            .env_remove("DHOLE_HOST")
            .env_remove("DHOLE_MEETING_FD");
        if let Some(host) = &self.host {
            command.env("DHOLE_HOST", host);
        }
        let mut descriptors = Vec::new();
        if let Some(listener) = &listener {
            let handing = failed("handing over its listener");
            inherit(listener).map_err(&handing)?;
            descriptors.push(handed_over(listener).map_err(handing)?);
            command.env("DHOLE_MEETING_FD", listener.as_raw_fd().to_string());
        }
        let handing = failed("handing over the secret");
        let file = secret.to_be_read().map_err(&handing)?;
        descriptors.push(handed_over(&file).map_err(handing)?);
        command.env("DHOLE_SECRET_FD", file.as_raw_fd().to_string());
        let making = failed("making a line to it");
        let (line, its_end) = Line::new().map_err(&making)?;
        descriptors.push(handed_over(&its_end).map_err(making)?);
        command
            .env("DHOLE_LAUNCHER_FD", its_end.as_raw_fd().to_string())
            .env("DHOLE_INHERITED", descriptors.join(" "));
        settle(&mut command);
        let child = command.spawn().map_err(failed("starting a process"))?;
        Ok((child, line))
    }
}
