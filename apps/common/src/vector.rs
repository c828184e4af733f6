//! Arithmetic on points and directions in space.

/// Three coordinates.
pub type Vector = [f64; 3];

/// `a + b`.
#[inline(always)]
pub fn plus(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// `a - b`.
#[inline(always)]
pub fn minus(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// `a` stretched by `factor`.
#[inline(always)]
pub fn times(a: Vector, factor: f64) -> Vector {
    [a[0] * factor, a[1] * factor, a[2] * factor]
}

/// The scalar product.
#[inline(always)]
pub fn dot(a: Vector, b: Vector) -> f64 {
    (a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]
}

/// The largest coordinate without its sign: half the side of the smallest cube around the origin.
#[inline(always)]
pub fn extent(a: Vector) -> f64 {
    a[0].abs().max(a[1].abs()).max(a[2].abs())
}
