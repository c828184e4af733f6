use std::fmt;

/// What a setting of runs can be: how it is written in options and in variables. The derive
/// [`Variants`](dhole_macros::Variants) implements it for enums.
pub trait Value: Sized {
    /// The value that is written so, if one is.
    fn find(said: &str) -> Option<Self>;

    /// What may be written, in the order of errors and help; nothing where that is no list.
    fn allowed() -> Vec<&'static str>;

    /// What is expected, in words.
    fn expected() -> String {
        format!("one of {}", Self::allowed().join(", "))
    }

    /// The value that is written so.
    ///
    /// # Errors
    /// [`UnknownValue`] has what may be written.
    fn accept(said: &str) -> Result<Self, UnknownValue> {
        Self::find(said).ok_or_else(|| UnknownValue {
            value: said.to_owned(),
            expected: Self::expected(),
        })
    }
}

/// A switch. `1` and `0` are as good as the words.
impl Value for bool {
    fn find(said: &str) -> Option<bool> {
        match said {
            "on" | "1" => Some(true),
            "off" | "0" => Some(false),
            _ => None,
        }
    }

    fn allowed() -> Vec<&'static str> {
        vec!["on", "off"]
    }
}

/// A number within these limits, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounded<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> Value for Bounded<LEAST, MOST> {
    fn find(said: &str) -> Option<Bounded<LEAST, MOST>> {
        let number = said.trim().parse().ok();
        let within = |number: &u64| (LEAST..=MOST).contains(number);
        number.filter(within).map(Bounded)
    }

    fn allowed() -> Vec<&'static str> {
        Vec::new()
    }

    fn expected() -> String {
        format!("a number from {LEAST} to {MOST}")
    }
}

/// An enum whose variants have names: the derive [`Variants`](dhole_macros::Variants) implements
/// it.
pub trait Named: Copy + PartialEq + 'static {
    /// Every variant, in order.
    const VARIANTS: &'static [Self];

    /// What the variant is called.
    fn named(self) -> &'static str;
}

/// The error for a name that no value of a setting has.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownValue {
    /// What was written.
    pub value: String,
    /// What may be, in words.
    pub expected: String,
}

crate::debug_in_words!(UnknownValue);

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownValue { value, expected } = self;
        write!(f, "{expected} is expected, and not `{value}`")
    }
}

impl std::error::Error for UnknownValue {}

#[cfg(test)]
mod tests {
    use crate::{Barriers, Detector};

    #[test]
    fn names_lead_back_and_others_are_refused_with_what_there_is() {
        for one in Detector::ALL {
            assert_eq!(one.to_string().parse(), Ok(one));
        }
        for one in Barriers::ALL {
            assert_eq!(one.name().parse(), Ok(one));
        }
        let error = "tree".parse::<Barriers>().unwrap_err().to_string();
        let wanted = "one of central, dissemination is expected, and not `tree`";
        assert_eq!(error, wanted);
        assert_eq!("Check".parse::<Detector>().unwrap_err().value, "Check");
    }
}
