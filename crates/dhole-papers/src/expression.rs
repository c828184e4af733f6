//! The expressions in a paper's file: numbers, names, and what is calculated from them.
//!
//! `or`, `and`, `not`, `==`, `<`, `<=`, `>`, `>=` (in a row: `0.8 <= x <= 1.25`), `+`, `-`, `*`,
//! `/`, `'words'`, functions, and names with fields, as in `program.paper.views`. A name may have a
//! `-` in it, so the operator stands between spaces. `seconds[home, 8]` is the value of `seconds`
//! where the variant is `home` and the nodes are 8. With an axis in the brackets it is a list, one
//! value for each of its places. What is calculated from a missing value is missing, and a
//! comparison with it is false.

use serde_json::{Value, json};

/// The meaning of names.
pub trait Names: Sized {
    /// The value of a name with its fields; missing where the value lacks the field.
    ///
    /// # Errors
    /// In words, if nothing has that name.
    fn value(&self, path: &[&str]) -> Result<Value, String>;

    /// The places that the words in brackets name, and whether they are an axis.
    ///
    /// # Errors
    /// In words, if nothing has such a name.
    fn places(&self, words: &[&str]) -> Result<(Vec<Self>, bool), String>;
}

/// Evaluates an expression.
///
/// # Errors
/// In words, if it is none, or has unknown names.
pub fn evaluate(text: &str, names: &impl Names) -> Result<Value, String> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        names,
    };
    let value = parser.either();
    match value {
        Ok(value) if parser.at == parser.tokens.len() => Ok(value),
        Ok(_) => Err(format!(
            "`{text}`: {} words are left",
            parser.tokens.len() - parser.at
        )),
        Err(why) => Err(format!("`{text}`: {why}")),
    }
}

/// Fills in a template: `{expression}`, or `{expression:.2}` for so many digits behind the point,
/// of each number of a list.
///
/// # Errors
/// As [`evaluate`].
pub fn fill(template: &str, names: &impl Names) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (inner, behind) = behind.split_once('}').ok_or("a brace is open")?;
        let (expression, digits) = match inner.rsplit_once(":.") {
            Some((expression, digits)) => (expression, Some(digits)),
            None => (inner, None),
        };
        let digits = digits.map(str::parse::<usize>).transpose();
        let digits = digits.map_err(|cause| format!("`{inner}`: {cause}"))?;
        filled += before;
        filled += &shown(&evaluate(expression, names)?, digits);
        rest = behind;
    }
    Ok(filled + rest)
}

fn shown(value: &Value, digits: Option<usize>) -> String {
    match (value, digits) {
        (Value::Null, _) => String::new(),
        (Value::String(text), _) => text.clone(),
        (Value::Array(all), digits) => {
            let known = all.iter().filter(|one| !one.is_null());
            let all = known.map(|one| shown(one, digits));
            all.collect::<Vec<_>>().join(", ")
        }
        (value, Some(digits)) => format!("{:.digits$}", number(value)),
        (value, None) if value.is_number() => three_digits(number(value)),
        (value, None) => value.to_string(),
    }
}

/// Three digits, or all of a large number.
fn three_digits(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

/// A number, or NaN.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Whether a condition holds.
pub fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token<'a> {
    Number(f64),
    Words(&'a str),
    Name(&'a str),
    Sign(&'a str),
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = |of: fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
        let (token, length) = if first.is_ascii_digit() {
            let length = end(|c| c.is_ascii_digit() || c == '.' || c == 'e');
            let number = rest[..length].parse();
            (
                Token::Number(number.map_err(|_| format!("`{}` is no number", &rest[..length]))?),
                length,
            )
        } else if first.is_ascii_alphabetic() {
            let length = end(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            (Token::Name(&rest[..length]), length)
        } else if first == '\'' {
            let words = rest[1..].split_once('\'').ok_or("a quotation is open")?.0;
            (Token::Words(words), words.len() + 2)
        } else {
            let two = ["==", "<=", ">="]
                .into_iter()
                .find(|two| rest.starts_with(two));
            let sign = two.unwrap_or(&rest[..first.len_utf8()]);
            (Token::Sign(sign), sign.len())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Parser<'a, N> {
    tokens: Vec<Token<'a>>,
    at: usize,
    names: &'a N,
}

impl<'a, N: Names> Parser<'a, N> {
    fn takes(&mut self, wanted: Token<'_>) -> bool {
        let is = self.tokens.get(self.at) == Some(&wanted);
        self.at += usize::from(is);
        is
    }

    fn takes_one<'b>(&mut self, signs: &[&'b str]) -> Option<&'b str> {
        signs
            .iter()
            .copied()
            .find(|sign| self.takes(Token::Sign(sign)))
    }

    fn expects(&mut self, sign: &str) -> Result<(), String> {
        let is = self.takes(Token::Sign(sign));
        is.then_some(())
            .ok_or_else(|| format!("`{sign}` is expected at word {}", self.at))
    }

    fn either(&mut self) -> Result<Value, String> {
        let mut value = self.both()?;
        while self.takes(Token::Name("or")) {
            let other = self.both()?;
            value = if is_true(&value) { value } else { other };
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<Value, String> {
        let mut value = self.negation()?;
        while self.takes(Token::Name("and")) {
            let other = self.negation()?;
            value = json!(is_true(&value) && is_true(&other));
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<Value, String> {
        match self.takes(Token::Name("not")) {
            true => Ok(json!(!is_true(&self.negation()?))),
            false => self.comparison(),
        }
    }

    fn comparison(&mut self) -> Result<Value, String> {
        let mut one = self.sum()?;
        let mut compared = None;
        while let Some(sign) = self.takes_one(&["==", "<=", ">=", "<", ">"]) {
            let other = self.sum()?;
            let (a, b) = (number(&one), number(&other));
            let holds = match sign {
                "==" => one == other && !one.is_null() || a == b,
                "<=" => a <= b,
                ">=" => a >= b,
                "<" => a < b,
                _ => a > b,
            };
            compared = Some(compared.unwrap_or(true) && holds);
            one = other;
        }
        Ok(compared.map_or(one, Value::Bool))
    }

    fn sum(&mut self) -> Result<Value, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.takes_one(&["+", "-"]) {
            let (a, b) = (number(&value), number(&self.product()?));
            value = json!(if sign == "+" { a + b } else { a - b });
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut value = self.operand()?;
        while let Some(sign) = self.takes_one(&["*", "/"]) {
            let (a, b) = (number(&value), number(&self.operand()?));
            value = json!(if sign == "*" { a * b } else { a / b });
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<Value, String> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(json!(number)),
            Some(Token::Words(words)) => Ok(json!(words)),
            Some(Token::Sign("-")) => Ok(json!(-number(&self.operand()?))),
            Some(Token::Sign("(")) => {
                let value = self.either()?;
                self.expects(")")?;
                Ok(value)
            }
            Some(Token::Name(name)) if self.takes(Token::Sign("(")) => {
                let mut arguments = vec![self.either()?];
                while self.takes(Token::Sign(",")) {
                    arguments.push(self.either()?);
                }
                self.expects(")")?;
                call(name, &arguments)
            }
            Some(Token::Name(name)) => self.named(&name.split('.').collect::<Vec<_>>()),
            _ => Err(format!("a value is expected at word {}", self.at)),
        }
    }

    fn named(&mut self, path: &[&str]) -> Result<Value, String> {
        if !self.takes(Token::Sign("[")) {
            return self.names.value(path);
        }
        let mut words = Vec::new();
        let mut numbers = Vec::new();
        while !self.takes(Token::Sign("]")) {
            match self.tokens.get(self.at).copied() {
                Some(Token::Name(name)) => words.push(name.to_owned()),
                Some(Token::Number(number)) => numbers.push(number.to_string()),
                _ => return Err(format!("a name is expected at word {}", self.at)),
            }
            self.at += 1;
            self.takes(Token::Sign(","));
        }
        let words: Vec<&str> = words.iter().chain(&numbers).map(String::as_str).collect();
        let (places, is_axis) = self.names.places(&words)?;
        let values = places.iter().map(|place| place.value(path));
        let mut values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(match is_axis {
            true => Value::Array(values),
            false => values.pop().unwrap_or_default(),
        })
    }
}

/// The functions. Lists may have missing values.
fn call(name: &str, arguments: &[Value]) -> Result<Value, String> {
    let list = |at: usize| arguments[at].as_array().cloned().unwrap_or_default();
    let numbers = || list(0).into_iter().filter_map(|one| one.as_f64());
    Ok(match (name, arguments) {
        // The second where the first holds, and else the third, or nothing.
        ("if", [condition, one, rest @ ..]) => match is_true(condition) {
            true => one.clone(),
            false => rest.first().cloned().unwrap_or_default(),
        },
        ("has", [value]) => json!(!value.is_null()),
        ("abs", [value]) => json!(number(value).abs()),
        ("floor", [value]) => json!(number(value).floor()),
        ("larger", [one, other]) => json!(number(one).max(number(other))),
        // The field of an object that another value names.
        ("field", [object, Value::Number(key)]) => object[key.to_string()].clone(),
        ("field", [object, key]) => object[key.as_str().unwrap_or_default()].clone(),
        // Whether nothing is missing in a list.
        ("known", [_]) => json!(list(0).iter().all(|one| !one.is_null())),
        // Whether each of a list holds.
        ("all", [_]) => json!(list(0).iter().all(is_true)),
        // The least and the largest of a list, of those that are not missing.
        ("min", [_]) => numbers()
            .reduce(f64::min)
            .map_or(Value::Null, |one| json!(one)),
        ("max", [_]) => numbers()
            .reduce(f64::max)
            .map_or(Value::Null, |one| json!(one)),
        ("first", [_]) => list(0).first().cloned().unwrap_or_default(),
        ("last", [_]) => list(0).last().cloned().unwrap_or_default(),
        // Whether each is less than the one before it.
        ("falls", [_]) => json!(list(0).is_sorted_by(|one, next| number(one) > number(next))),
        // Of the first list what stands where the second has its least value.
        ("at_least", [_, _]) => {
            let known = list(0)
                .into_iter()
                .zip(list(1))
                .filter(|(_, value)| value.is_number());
            let least = known.min_by(|(_, one), (_, two)| number(one).total_cmp(&number(two)));
            least.map_or(Value::Null, |(key, _)| key)
        }
        _ => return Err(format!("{name} of {} values is unknown", arguments.len())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `a` is 2 and `b.c` is missing. In brackets `all` is an axis of three places.
    #[derive(Clone)]
    struct Known(f64);

    impl Names for Known {
        fn value(&self, path: &[&str]) -> Result<Value, String> {
            match path {
                ["a"] => Ok(json!(self.0)),
                ["b", "c"] => Ok(Value::Null),
                _ => Err(format!("unknown {path:?}")),
            }
        }

        fn places(&self, words: &[&str]) -> Result<(Vec<Self>, bool), String> {
            match words {
                ["all"] => Ok((vec![Known(3.0), Known(1.0), Known(2.0)], true)),
                ["other", "8"] => Ok((vec![Known(8.0)], false)),
                _ => Err(format!("unknown {words:?}")),
            }
        }
    }

    #[test]
    fn expressions_have_the_usual_order() {
        for (text, value) in [
            ("1 + 2 * 3 - 4 / 2", json!(5.0)),
            ("-(1 + a) * 2", json!(-6.0)),
            ("1 < a <= 2 and not a == 3", json!(true)),
            ("1 < a < 2 or 'no'", json!("no")),
            ("b.c + 1", Value::Null),
            ("b.c < 1 or 1 < b.c or b.c == b.c", json!(false)),
            ("a / (a - 2)", Value::Null),
            ("a[all]", json!([3.0, 1.0, 2.0])),
            ("a[other, 8] + a", json!(10.0)),
            ("at_least(a[all], a[all]) + max(a[all])", json!(4.0)),
            ("falls(a[all])", json!(false)),
            ("if(has(b.c), 1, 'none')", json!("none")),
        ] {
            assert_eq!(evaluate(text, &Known(2.0)).as_ref(), Ok(&value), "{text}");
        }
        for wrong in [
            "",
            "1 +",
            "c",
            "a b",
            "a[none]",
            "(1",
            "nothing(1)",
            "'open",
            "1.2.3",
        ] {
            assert!(evaluate(wrong, &Known(2.0)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn templates_show_three_digits_or_as_many_as_they_say() {
        let filled = fill(
            "{a}, {a:.1}; {a[all]:.0} {b.c}{'w'} {1234.5} {123.45}",
            &Known(2.0),
        );
        assert_eq!(filled.unwrap(), "2.00, 2.0; 3, 1, 2 w 1234 123.5");
        assert!(fill("{a", &Known(2.0)).is_err());
    }
}
