//! The moment of a cell: the mass and centre that it has for a body far away.

use dhole::Share;

use super::Body;
use apps_common::vector::{Vector, plus, times};

/// The moment of a cell: the mass in it, its centre, and, for the division of the work, the cost of
/// its bodies.
#[derive(Share, Clone, Copy, PartialEq, Default, Debug)]
#[repr(C)]
pub struct Moment {
    /// The centre of mass.
    pub pos: Vector,
    /// The total mass.
    pub mass: f64,
    /// The total cost, in interactions.
    pub cost: u64,
}

impl Moment {
    /// The moment of several parts. The order matters to the last bit, so callers give the bodies
    /// of a leaf in the order of their places and the octants of a cell in theirs. A part alone is
    /// what it is, not rounded.
    #[inline]
    pub fn of(mut parts: impl Iterator<Item = Moment>) -> Moment {
        let first = parts.next().unwrap_or_default();
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return first;
        }
        let mut sum = Moment::default();
        for part in std::iter::once(first).chain(parts) {
            sum.pos = plus(sum.pos, times(part.pos, part.mass));
            sum.mass += part.mass;
            sum.cost += part.cost;
        }
        if sum.mass > 0.0 {
            sum.pos = times(sum.pos, 1.0 / sum.mass);
        }
        sum
    }

    /// The moment of a leaf of these bodies.
    #[inline]
    pub fn of_bodies<'a>(bodies: impl Iterator<Item = &'a Body>) -> Moment {
        Moment::of(bodies.map(Moment::of_body))
    }

    /// The moment of a body.
    #[inline]
    pub fn of_body(body: &Body) -> Moment {
        Moment {
            pos: body.pos,
            mass: body.mass,
            cost: body.cost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_lies_between_the_parts_by_their_masses() {
        let part = |x, mass, cost| Moment {
            pos: [x, 0.0, 1.0],
            mass,
            cost,
        };
        let both = Moment::of([part(0.0, 1.0, 5), part(4.0, 3.0, 6)].into_iter());
        assert_eq!(both, part(3.0, 4.0, 11));
        assert_eq!(Moment::of(std::iter::empty()), Moment::default());
    }
}
