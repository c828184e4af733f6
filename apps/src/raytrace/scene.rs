//! Scenes, and the files that describe them: one thing a line, `#` for comments.
//!
//! ```text
//! camera 0 2 -8  0 1 0  45          place, what it looks at, degrees of the view
//! sky 0.4 0.6 0.9                   the colour where there is nothing
//! light 5 8 -5  1 1 1               place, colour
//! sphere 0 1 0  1  0.9 0.2 0.2 0.3  centre, radius, colour, how much of it is a mirror
//! floor 0  0.8 0.8 0.8 0.1          height, colour, how much of it is a mirror
//! ```

use std::str::SplitWhitespace;

use super::vector::Vector;
use crate::input::{BadFile, Lines};

/// The most things that a scene has.
const MOST_THINGS: usize = 100_000;

/// A material.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Surface {
    /// Its colour.
    pub colour: Vector,
    /// How much of it is a mirror, from 0 to 1.
    pub mirror: f64,
}

/// A ball.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sphere {
    /// Its centre.
    pub centre: Vector,
    /// Its radius.
    pub radius: f64,
    /// Its material.
    pub surface: Surface,
}

/// What is to be drawn.
#[derive(Clone, PartialEq, Debug)]
pub struct Scene {
    /// Where the camera is, and what it looks at.
    pub camera: (Vector, Vector),
    /// Degrees that it sees from top to bottom.
    pub view: f64,
    /// The colour where there is nothing.
    pub sky: Vector,
    /// Places and colours of lights.
    pub lights: Vec<(Vector, Vector)>,
    /// Balls.
    pub spheres: Vec<Sphere>,
    /// A floor: its height, and its material.
    pub floor: Option<(f64, Surface)>,
}

impl Scene {
    /// Reads a file's lines.
    ///
    /// # Errors
    /// [`BadFile`] with the line that is wrong.
    pub fn parse(lines: &Lines) -> Result<Scene, BadFile> {
        let mut scene = Scene {
            camera: (Vector(0.0, 1.0, -8.0), Vector(0.0, 1.0, 0.0)),
            view: 45.0,
            sky: Vector::default(),
            lights: Vec::new(),
            spheres: Vec::new(),
            floor: None,
        };
        for (line, text) in lines.iter() {
            let text = text.split('#').next().unwrap_or_default();
            let mut words = text.split_whitespace();
            let Some(keyword) = words.next() else {
                continue;
            };
            let mut numbers = Numbers { lines, line, words };
            match keyword {
                "camera" => {
                    scene.camera = (
                        numbers.vector("the camera's place")?,
                        numbers.vector("what it looks at")?,
                    );
                    let (place, at) = scene.camera;
                    let along = at - place;
                    if along.cross(Vector(0.0, 1.0, 0.0)) == Vector::default() {
                        return Err(lines.wrong(line, "a camera cannot look straight up or down"));
                    }
                    scene.view = numbers.number("its view")?;
                    if !(1.0..=170.0).contains(&scene.view) {
                        return Err(lines.wrong(line, "a view is from 1 to 170 degrees"));
                    }
                }
                "sky" => scene.sky = numbers.vector("the sky's colour")?,
                "light" => {
                    let light = (
                        numbers.vector("a light's place")?,
                        numbers.vector("its colour")?,
                    );
                    scene.lights.push(light);
                }
                "sphere" => {
                    let centre = numbers.vector("a sphere's centre")?;
                    let radius = numbers.number("its radius")?;
                    if radius <= 0.0 {
                        let what = format!("a sphere's radius cannot be {radius}");
                        return Err(lines.wrong(line, what));
                    }
                    let colour = numbers.vector("its colour")?;
                    let surface = surface(lines, line, colour, numbers.number("its mirror")?)?;
                    scene.spheres.push(Sphere {
                        centre,
                        radius,
                        surface,
                    });
                }
                "floor" => {
                    let height = numbers.number("the floor's height")?;
                    let colour = numbers.vector("its colour")?;
                    let surface = surface(lines, line, colour, numbers.number("its mirror")?)?;
                    scene.floor = Some((height, surface));
                }
                other => {
                    let what = format!("{other:?} is nothing that a scene has");
                    return Err(lines.wrong(line, what));
                }
            }
            if let Some(word) = numbers.words.next() {
                return Err(lines.wrong(line, format!("{word:?} is left over")));
            }
            if scene.spheres.len() + scene.lights.len() > MOST_THINGS {
                return Err(lines.wrong(line, format!("more than {MOST_THINGS} things")));
            }
        }
        if scene.spheres.is_empty() && scene.floor.is_none() {
            return Err(lines.wrong_as_a_whole("there is nothing to see in it"));
        }
        Ok(scene)
    }
}

/// The numbers of a line.
struct Numbers<'a> {
    lines: &'a Lines,
    line: usize,
    words: SplitWhitespace<'a>,
}

impl Numbers<'_> {
    fn number(&mut self, what: &str) -> Result<f64, BadFile> {
        let number: f64 = self.lines.parse(self.line, what, self.words.next())?;
        match number.is_finite() && number.abs() < 1e9 {
            true => Ok(number),
            false => Err(self
                .lines
                .wrong(self.line, format!("{what} cannot be {number}"))),
        }
    }

    fn vector(&mut self, what: &str) -> Result<Vector, BadFile> {
        Ok(Vector(
            self.number(what)?,
            self.number(what)?,
            self.number(what)?,
        ))
    }
}

fn surface(lines: &Lines, line: usize, colour: Vector, mirror: f64) -> Result<Surface, BadFile> {
    match (0.0..=1.0).contains(&mirror) {
        true => Ok(Surface { colour, mirror }),
        false => Err(lines.wrong(line, format!("a mirror is from 0 to 1, not {mirror}"))),
    }
}
