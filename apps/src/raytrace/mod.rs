//! A ray tracer. Tiles of a picture are jobs in a queue on node 0, and the pixels of a tile are its
//! job's result. Nothing is replicated, so nothing is multicast, unless the run survives losses.

mod options;
mod scene;
mod sequential;
mod shared;
mod trace;
mod vector;

pub use options::Options;
pub use scene::Scene;

use std::path::PathBuf;

use dhole::Error;
use serde_json::{Value, json};

use crate::digest::Digest;
use crate::picture::Picture;
use crate::program::Losses;
use crate::report::count;
use crate::solve::Program;

/// The scene, and the file of the picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Problem {
    /// The scene.
    pub scene: Scene,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// The file that becomes the picture, if it is kept.
    pub output: Option<PathBuf>,
}

/// The result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The picture.
    pub picture: Picture,
    /// Rays that were traced, reflected ones among them.
    pub rays: u64,
}

impl Found {
    /// Tells the picture from others.
    fn checksum(&self) -> u64 {
        let mut checksum = Digest::default();
        checksum.add(self.picture.pixels());
        checksum.value()
    }
}

/// The program.
pub const PROGRAM: Program<Problem, Found> = Program {
    name: "raytrace",
    losses: Losses::Survives,
    sequential: sequential::solve,
    shared: shared::solve,
    differ: |alone, found| (alone != found).then(|| "the pictures differ".to_owned()),
    title: |problem| {
        let (width, height) = problem.size;
        format!("ray-traced picture of {width} x {height} pixels")
    },
    found: |_, found| {
        let rays = count(found.rays as usize);
        format!("{rays} rays traced; checksum {:016x}", found.checksum())
    },
    result,
    keep,
};

fn result(problem: &Problem, found: &Found) -> Value {
    let mut result = json!({
        "width": problem.size.0,
        "height": problem.size.1,
        "rays": found.rays,
        "checksum": format!("{:016x}", found.checksum()),
    });
    if let Some(output) = &problem.output {
        result["output"] = json!(output.display().to_string());
    }
    result
}

fn keep(problem: &Problem, found: &Found) -> dhole::Result<()> {
    let Some(output) = &problem.output else {
        return Ok(());
    };
    let written = found.picture.write(output);
    written.map_err(|cause| Error::program(format!("writing {}: {cause}", output.display())))
}
