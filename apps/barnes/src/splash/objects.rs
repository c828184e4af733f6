//! The shared objects: bodies and cells, each an array.

use dhole::{Access, Ref, Refs, Share};

use crate::Body;
use crate::moment::Moment;
use crate::shared::objects::Tally;
use apps_common::vector::Vector;

/// A body as SPLASH keeps it (`body`): with what was computed of it last. 96 bytes, so that a page
/// holds 42.
#[derive(Share, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct SplashBody {
    /// What moves.
    pub body: Body,
    /// How it was pulled.
    pub acc: Vector,
    /// Its potential then.
    pub phi: f64,
}

impl From<Body> for SplashBody {
    fn from(body: Body) -> SplashBody {
        SplashBody {
            body,
            acc: [0.0; 3],
            phi: 0.0,
        }
    }
}

/// The contents of an octant: nothing, a body, or a cell.
#[derive(Share, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Kid {
    /// Twice the number, and 1 for a body or 2 for a cell.
    code: u32,
}

/// The meaning of a [`Kid`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    /// No body.
    Nothing,
    /// One body.
    Body(u32),
    /// More than that.
    Cell(u32),
}

impl Kid {
    /// A body.
    pub const fn body(number: u32) -> Kid {
        Kid {
            code: 2 * number + 1,
        }
    }

    /// A cell.
    pub const fn cell(number: u32) -> Kid {
        Kid {
            code: 2 * number + 2,
        }
    }

    /// What it is.
    #[inline(always)]
    pub const fn inside(self) -> Inside {
        match self.code {
            0 => Inside::Nothing,
            odd if odd % 2 == 1 => Inside::Body(odd / 2),
            even => Inside::Cell(even / 2 - 1),
        }
    }
}

/// A cube with more than one body, as SPLASH keeps it (`cell`): 72 bytes.
#[derive(Share, Clone, Copy, Default, Debug)]
#[repr(C)]
pub struct Cell {
    /// Its moment.
    pub moment: Moment,
    /// Its octants, in order.
    pub kids: [Kid; 8],
}

const _: () = assert!(size_of::<SplashBody>() == 96 && size_of::<Cell>() == 72);

/// The roots of the shared data: what every node knows from the start.
#[derive(Share, Clone, Copy, Debug)]
pub struct Universe {
    /// The bodies, by their numbers.
    pub bodies: Refs<SplashBody>,
    /// Cells for the first step.
    pub cells: Refs<Cell>,
    /// For each node, its tally.
    pub tallies: Refs<Tally>,
    /// The largest coordinate of all bodies at the start.
    pub extent: f64,
}

impl Universe {
    /// A body.
    #[inline(always)]
    pub fn body<'w, 'id: 'w>(&self, w: &'w impl Access<'id>, number: u32) -> &'w Body {
        &self.shared(number).get(w).body
    }

    /// Where it is shared.
    #[inline(always)]
    pub fn shared(&self, number: u32) -> Ref<SplashBody> {
        self.bodies.at(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kid_is_what_it_was_made_of() {
        assert_eq!(Kid::default().inside(), Inside::Nothing);
        for number in [0, 1, 7, (1 << 31) - 2] {
            assert_eq!(Kid::body(number).inside(), Inside::Body(number));
            assert_eq!(Kid::cell(number).inside(), Inside::Cell(number));
        }
    }
}
