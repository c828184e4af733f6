//! Services whose user halves are not lent, or cannot travel.

use dhole::Client;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, Default)]
struct Reader(u64);

#[derive(Serialize, Deserialize, Default)]
struct Log(Vec<String>);

#[dhole::object(client = Reader)]
impl Log {
    pub async fn later(reader: &mut Reader) {
        reader.0 += 1;
    }
    pub fn take(&self, reader: Reader) -> u64 {
        reader.0
    }
    pub fn both(&self, reader: &Reader, other: &mut Reader) {
        other.0 = reader.0;
    }
    #[when(reader.advance() > 0)]
    pub fn wait(&self, reader: &mut Reader) {}
    pub fn length(&self) -> usize {
        self.0.len()
    }
}

impl Reader {
    fn advance(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Other(u64);

#[dhole::object(client = &'static str)]
impl Other {
    pub fn get(&self) -> u64 {
        self.0
    }
}

#[derive(Serialize, Deserialize, Default)]
struct Plain(u64);

#[dhole::object]
impl Plain {
    pub fn get(&self) -> u64 {
        self.0
    }
}

fn read(_: &Client<Plain>) {}

fn main() -> Result<(), dhole::RunError> {
    dhole::Config::nodes(2).run(|w| {
        let log = w.once(|w| Ok(w.new_object(dhole::replicated(), Log::default())?))?;
        let mut mine = Client::of(log, Reader::default());
        mine.take(w)?;
        mine.later();
        mine.wait(w)?;
        Ok(mine.length(w)?)
    })?;
    Ok(())
}
