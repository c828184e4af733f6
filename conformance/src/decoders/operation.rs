//! The bytes of arguments that are lent to operations, and of what comes back in them.

use dhole::__private::{NumberBytes, check_length, decode, put};
use dhole::ObjectType;
use serde::{Deserialize, Serialize};

/// An object whose operations borrow in every form.
#[derive(Serialize, Deserialize, Default)]
struct Forms(u64);

#[dhole::object(crate = "dhole")]
impl Forms {
    #[new]
    pub fn of(word: &str, numbers: &[u16]) -> Result<Self, String> {
        let first = numbers.first().ok_or_else(|| word.to_owned())?;
        Ok(Forms(u64::from(*first)))
    }

    pub fn read(&mut self, word: &str, bytes: &[u8], words: &[String], numbers: &[i32]) {
        self.0 += (word.len() + bytes.len() + words.len() + numbers.len()) as u64;
    }

    pub fn change(&mut self, list: &mut Vec<u64>, words: &mut [String], numbers: &mut [f64]) {
        list.push(self.0);
        words.reverse();
        numbers.reverse();
    }

    #[when(*least <= self.0)]
    pub fn fill(&self, least: u64, #[out] wide: &mut [u128], pair: &(u16, Option<bool>)) -> bool {
        wide.iter().all(|it| *it == 0) && pair.1.is_some()
    }
}

/// What operation 1 gives back, as its caller takes it: the length of a slice is the caller's.
fn take_back(bytes: &[u8]) {
    type Received<'a> = ((), Vec<u64>, Vec<String>, NumberBytes<'a, f64>);
    let (mut words, mut numbers) = ([const { String::new() }; 2], [0.0; 2]);
    let Ok(((), _, received, given)) = decode::<Received<'_>>("the result", bytes) else {
        return;
    };
    if check_length("words", words.len(), received.len()).is_ok() {
        put(&mut words, received);
    }
    if check_length("numbers", numbers.len(), given.len()).is_ok() {
        given.put(&mut numbers);
    }
}

/// A call of an operation, whose number is the first byte, of a constructor, or a reply. It is
/// executed, or refused.
pub(super) fn operation(bytes: &[u8]) {
    let Some((number, rest)) = bytes.split_first() else {
        return;
    };
    if *number == u8::MAX {
        return take_back(rest);
    }
    if *number == u8::MAX - 1 {
        let _ = Forms::construct(0, rest);
        return;
    }
    let (mut forms, mut result) = (Forms(3), Vec::new());
    let applied = forms.apply(u16::from(*number), rest, &mut result);
    if applied.is_err() {
        assert!(result.is_empty(), "a refused call has a result");
    }
    if *number == 1 && applied.is_ok() {
        let _ = decode::<((), Vec<u64>, Vec<String>, NumberBytes<'_, f64>)>("", &result)
            .expect("what it gives back can be taken");
    }
}
