//! Names operations, and starts itself to see whether the other process takes them for the same.

use dhole_registry::Shipped;
use library::{Act, Does, Operation};

struct Double;
impl Act for Double {
    fn act(number: u64) -> u64 {
        2 * number
    }
}

/// As [`Double`] to the linker, which may merge both.
struct Twice;
impl Act for Twice {
    fn act(number: u64) -> u64 {
        2 * number
    }
}

struct Increase;
impl Act for Increase {
    fn act(number: u64) -> u64 {
        number + 1
    }
}

struct NeverNamed;
impl Act for NeverNamed {
    fn act(number: u64) -> u64 {
        number ^ 5
    }
}

#[inline(never)]
fn where_nobody_comes() {
    library::name::<u64, NeverNamed>();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, names @ ..] = &arguments[..]
        && !names.is_empty()
    {
        for name in names {
            match Shipped::at(name.parse().expect("a number")) {
                Ok(entry) => {
                    let does = entry.is::<Does>().expect("it is an operation");
                    println!("{} {}", entry.name(), (does.0)(20));
                }
                Err(error) => println!("{error}"),
            }
        }
        return;
    }
    if std::env::var_os("NOBODY").is_some() {
        where_nobody_comes();
    }
    let named = [
        library::name::<u64, Double>(),
        library::name::<u64, Twice>(),
        library::name::<i64, Twice>(),
        library::name::<u64, Increase>(),
        Shipped::of::<Operation<u64, NeverNamed>>().map(Shipped::place),
        Some(1 << 20),
    ];
    let names = named.map(|name| name.expect("it was put into the table").to_string());
    let me = std::env::current_exe().expect("this program");
    let status = std::process::Command::new(me).args(names).status();
    assert!(status.expect("the program starts").success());
    assert!(dhole_registry::all().all(|entry| Shipped::at(entry.place()).is_ok()));
    println!("{:x}", dhole_registry::fingerprint());
}
