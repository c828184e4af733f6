//! Constructors: objects that are made where they are kept.

use dhole::{Client, NodeId, ObjectError, Refusal, on};
use serde::{Deserialize, Serialize};

use super::borrowed::strategies;
use super::succeed;
use crate::Platform;

#[derive(Serialize, Deserialize)]
struct Table {
    title: String,
    numbers: Vec<u64>,
}

#[dhole::object(crate = "dhole")]
impl Table {
    /// A table of the first numbers.
    #[new]
    pub fn counting(title: &str, length: usize) -> Self {
        let numbers = (0..length as u64).collect();
        let title = title.into();
        Table { title, numbers }
    }

    #[new]
    pub fn of(numbers: &[u64], title: String) -> Result<Table, String> {
        assert!(numbers.len() < 5, "not so many");
        if numbers.is_empty() {
            return Err(format!("{title} has no numbers"));
        }
        let numbers = numbers.to_vec();
        Ok(Table { title, numbers })
    }

    pub fn push(&mut self, number: u64) {
        self.numbers.push(number);
    }

    pub fn read(&self) -> (String, Vec<u64>) {
        (self.title.clone(), self.numbers.clone())
    }
}

/// Objects are made by their constructors, wherever they are kept; one that fails makes none.
pub fn objects_are_constructed_where_they_are_kept(platform: &dyn Platform) {
    succeed(platform, 3, |w| {
        for strategy in strategies() {
            let table = w.once(|w| Ok(Table::counting_in(w, strategy, "one", 2)?))?;
            table.push(w, 9)?;
            w.barrier()?;
            assert_eq!(table.read(w)?, ("one".to_owned(), vec![0, 1, 9, 9, 9]));
            w.barrier()?;
            dhole::Object::strategy(&table, w, on(NodeId(2)))?;
            assert_eq!(table.read(w)?.1.len(), 5);
            let causes = [&[][..], &[0; 5]].map(|numbers| {
                match Table::of_in(w, strategy, numbers, "two".to_owned()) {
                    Err(ObjectError::NotMade { cause, .. }) => cause,
                    other => panic!("{other:?}"),
                }
            });
            let wanted = [
                Refusal::Failed("two has no numbers".into()),
                Refusal::Panicked("not so many".into()),
            ];
            assert_eq!(causes, wanted);
            let other = Table::of_in(w, strategy, &[7], "two".to_owned())?;
            assert_eq!(other.read(w)?, ("two".to_owned(), vec![7]));
            w.barrier()?;
        }
        Ok(())
    });
}

/// Who may write into a journal, and how far a client has read.
#[derive(Serialize, Deserialize, Clone, PartialEq, Default, Debug)]
struct Reader {
    name: String,
    read_up_to: usize,
}

#[derive(Serialize, Deserialize)]
struct Journal(Vec<String>);

#[dhole::object(crate = "dhole", client = Reader)]
impl Journal {
    /// The one who opens it knows its first line.
    #[new]
    pub fn open(title: &str, name: &str) -> (Self, Reader) {
        let reader = Reader {
            name: name.into(),
            read_up_to: 1,
        };
        (Journal(vec![title.into()]), reader)
    }

    #[new]
    pub fn read(lines: &[String]) -> Result<(Self, Reader), String> {
        if lines.is_empty() {
            return Err("an empty journal".into());
        }
        Ok((Journal(lines.to_vec()), Reader::default()))
    }

    pub fn append(&mut self, line: &str) {
        self.0.push(line.into());
    }

    pub fn news(&self, reader: &mut Reader) -> Vec<String> {
        let news = self.0[reader.read_up_to..].to_vec();
        reader.read_up_to = self.0.len();
        news
    }
}

/// A constructor gives its caller a client: the object where it is kept, and a user half here.
pub fn a_constructor_gives_its_caller_a_user_half(platform: &dyn Platform) {
    succeed(platform, 3, |w| {
        for strategy in strategies() {
            let me = w.node().to_string();
            let mut mine = Journal::open_in(w, strategy, "title", &me)?;
            assert_eq!(Client::user(&mine).name, me);
            assert!(mine.news(w)?.is_empty());
            mine.append(w, &me)?;
            let all = w.all_gather(mine.clone())?;
            for (node, mut journal) in all.into_iter().enumerate() {
                assert_eq!(Client::user(&journal).name, NodeId::at(node).to_string());
                assert_eq!(journal.news(w)?, [NodeId::at(node).to_string()]);
            }
            match Journal::read_in(w, strategy, &[]) {
                Err(ObjectError::NotMade { cause, .. }) => {
                    assert_eq!(cause, Refusal::Failed("an empty journal".into()));
                }
                other => panic!("{other:?}"),
            }
            let mut other = Journal::read_in(w, strategy, std::slice::from_ref(&me))?;
            assert_eq!(other.news(w)?, [me]);
            w.barrier()?;
        }
        Ok(())
    });
}
