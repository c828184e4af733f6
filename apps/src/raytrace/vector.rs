//! Vectors and colours.

use std::ops::{Add, Mul, Neg, Sub};

/// Three numbers: a place, a direction or a colour.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Vector(pub f64, pub f64, pub f64);

impl Vector {
    /// The scalar product.
    pub fn dot(self, other: Vector) -> f64 {
        self.0 * other.0 + self.1 * other.1 + self.2 * other.2
    }

    /// The vector product.
    pub fn cross(self, o: Vector) -> Vector {
        Vector(
            self.1 * o.2 - self.2 * o.1,
            self.2 * o.0 - self.0 * o.2,
            self.0 * o.1 - self.1 * o.0,
        )
    }

    /// The direction.
    pub fn unit(self) -> Vector {
        self * (1.0 / self.dot(self).sqrt())
    }

    /// The product of the components, as a colour takes light away.
    pub fn filtered(self, by: Vector) -> Vector {
        Vector(self.0 * by.0, self.1 * by.1, self.2 * by.2)
    }
}

impl Add for Vector {
    type Output = Vector;
    fn add(self, o: Vector) -> Vector {
        Vector(self.0 + o.0, self.1 + o.1, self.2 + o.2)
    }
}

impl Sub for Vector {
    type Output = Vector;
    fn sub(self, o: Vector) -> Vector {
        Vector(self.0 - o.0, self.1 - o.1, self.2 - o.2)
    }
}

impl Mul<f64> for Vector {
    type Output = Vector;
    fn mul(self, by: f64) -> Vector {
        Vector(self.0 * by, self.1 * by, self.2 * by)
    }
}

impl Neg for Vector {
    type Output = Vector;
    fn neg(self) -> Vector {
        self * -1.0
    }
}
