//! Numbers as people read them.

use std::fmt::{self, Display, Write as _};

/// A number with its thousands apart.
///
/// ```
/// assert_eq!(dhole_model::Grouped(178_764).to_string(), "178,764");
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

/// So many things: a number with its thousands apart, and the word for one or for several.
///
/// ```
/// use dhole_model::Counted;
///
/// let said = [1, 2_000].map(|count| Counted(count, "index", "indices").to_string());
/// assert_eq!(said, ["1 index", "2,000 indices"]);
/// ```
#[derive(Clone, Copy)]
pub struct Counted(pub u64, pub &'static str, pub &'static str);

impl Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted(count, one, several) = *self;
        let things = if count == 1 { one } else { several };
        write!(f, "{} {things}", Grouped(count))
    }
}
