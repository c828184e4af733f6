//! Numbers as people read them.

use std::fmt::{self, Display, Write as _};

/// A number with its thousands apart.
///
/// ```
/// assert_eq!(dhole_heap::Grouped(178_764).to_string(), "178,764");
/// ```
#[derive(Clone, Copy)]
pub struct Grouped(pub u64);

impl Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}
