//! Red-black successive over-relaxation of a grid (DOSA, section 7; TreadMarks' SOR).
//!
//! A point `(i, j)` is red where `i + j` is even. A step relaxes all red points from their black
//! neighbours, then all black points from their red ones. Each colour is an array of its own, so
//! that a half-sweep writes one array and reads the other:
//!
//! ```text
//!   column j      0    1    2    3    4    5        a row of `columns` = 5 interior points
//!   even row i   [R]   B    R    B    R    B  (R)   red   [0 2 4]  black [1 3 5]
//!   odd row i    [B]   R    B    R    B    R  (B)   red   [1 3 5]  black [0 2 4]
//! ```
//!
//! Column 0 is a wall: its points keep their value. The wall on the right has in every row the
//! value of the wall on the left and is not stored, so that a row of 2,047 interior points is
//! 1,024 numbers of each colour, 8 KiB, as in DOSA's measurements. Rows 0 and `rows + 1` are
//! walls too.
//!
//! The new value of a point depends only on values of the other colour. So every division of the
//! rows among nodes gives the same grid, bit for bit.

pub mod by_page;
pub mod calls;
pub mod kernel;
pub mod layout;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod memory;
pub mod options;
pub mod problem;
pub mod sections;
pub mod sequential;
pub mod shared;
pub mod unhoisted;

pub use by_page::ByPage;
pub use kernel::{Columns, relax};
pub use layout::Layout;
pub use problem::{Colour, Problem};
pub use unhoisted::PointByPoint;
