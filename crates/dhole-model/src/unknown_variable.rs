use std::fmt;

/// The error for a variable of the environment that is called as dhole's are, and is none of them.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownVariable {
    /// Its name.
    pub variable: String,
    /// The variable of dhole's whose name is most like it.
    pub nearest: &'static str,
}

impl UnknownVariable {
    /// What every name of dhole's begins with.
    pub const PREFIX: &str = "DHOLE_";
    /// What names begin with that dhole gives no meaning.
    pub const FREE: &str = "DHOLE_TEST_";

    /// Of these variables the first that is called as dhole's are, says something, and is none of
    /// those that are `known`.
    ///
    /// # Errors
    /// It names that variable.
    pub fn look(
        variables: impl Iterator<Item = (String, bool)>,
        known: &[&'static str],
    ) -> Result<(), UnknownVariable> {
        let is_unknown = |variable: &str| {
            let is_ours = variable.starts_with(Self::PREFIX) && !variable.starts_with(Self::FREE);
            is_ours && !known.contains(&variable)
        };
        let mut unknown = variables.filter(|(name, says)| *says && is_unknown(name));
        let Some((variable, _)) = unknown.next() else {
            return Ok(());
        };
        // Of two that are alike the longer one: most often a letter is left out.
        let distance = |name: &&&str| (edits(name, &variable), usize::MAX - name.len());
        let nearest = known.iter().min_by_key(distance);
        let nearest = nearest.copied().unwrap_or(Self::FREE);
        Err(UnknownVariable { variable, nearest })
    }
}

/// The least number of letters that are put in, left out or replaced to make one name of another
/// (Levenshtein).
fn edits(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, its) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != its);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

impl fmt::Display for UnknownVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownVariable { variable, nearest } = self;
        write!(
            f,
            "the environment has {variable}, which is no variable of dhole's: is {nearest} meant? \
             (names that begin with {} are free)",
            Self::FREE
        )
    }
}

impl std::error::Error for UnknownVariable {}

crate::debug_in_words!(UnknownVariable);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_that_make_one_name_of_another() {
        let all = [
            ("", "", 0),
            ("", "abc", 3),
            ("NODS", "NODES", 1),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
        ];
        for (one, other, count) in all {
            assert_eq!([edits(one, other), edits(other, one)], [count; 2]);
        }
    }

    #[test]
    fn a_name_that_is_not_known_is_refused_with_the_nearest() {
        let known = ["DHOLE_NODE", "DHOLE_NODES", "DHOLE_SURVIVE"];
        let look =
            |name: &str, says| UnknownVariable::look([(name.to_owned(), says)].into_iter(), &known);
        let nearest = |name| look(name, true).map_err(|unknown| unknown.nearest);
        assert_eq!(nearest("DHOLE_NODS"), Err("DHOLE_NODES"));
        assert_eq!(nearest("DHOLE_NODESS"), Err("DHOLE_NODES"));
        assert_eq!(nearest("DHOLE_SURVIV"), Err("DHOLE_SURVIVE"));
        for free in ["DHOLE_NODE", "DHOLE_TEST_NODS", "DHOLEY", "PATH", "NODS"] {
            assert_eq!(nearest(free), Ok(()), "{free}");
        }
        assert_eq!(look("DHOLE_NODS", false), Ok(()), "it says nothing");
        let words = look("DHOLE_SURVIV", true).unwrap_err().to_string();
        let expected = "the environment has DHOLE_SURVIV, which is no variable of dhole's: is \
                        DHOLE_SURVIVE meant? (names that begin with DHOLE_TEST_ are free)";
        assert_eq!(words, expected);
    }
}
