//! What happens to a node, and where.

use std::time::Duration;
use std::{env, process, thread};

use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};

pub const HOW: &str = "DHOLE_TEST_HOW";
pub const WHEN: &str = "DHOLE_TEST_WHEN";

/// Says who runs here, and where the nodes meet.
pub fn introduce() {
    println!("runs {}", process::id());
    println!("meets at {}", env::var("DHOLE_MEETING").unwrap());
}

/// Whether it is to happen here.
pub fn strikes(now: &str) -> bool {
    env::var("DHOLE_NODE").unwrap() == "1" && env::var(WHEN).unwrap() == now
}

/// Makes it happen; `close` closes the connections without a goodbye. Returns where it passes.
pub fn happens(close: impl FnOnce()) {
    match env::var(HOW).unwrap().as_str() {
        "killed" => kill_process(getpid(), Signal::KILL).unwrap(),
        "stopped" => {
            println!("stops {}", process::id());
            return kill_process(getpid(), Signal::STOP).unwrap();
        }
        "stopped for good" => {
            println!("stays {}", process::id());
            kill_process(getpid(), Signal::STOP).unwrap();
        }
        "closed" => {
            close();
            if env::var(WHEN).unwrap() == "at exit" {
                println!("stays {}", process::id());
            }
        }
        "out of memory" => {
            let most = Rlimit {
                current: Some(1 << 20),
                maximum: Some(1 << 20),
            };
            setrlimit(Resource::As, most).unwrap();
            let bytes = vec![1u8; 1 << 30];
            println!("{}", bytes[bytes.len() / 2]);
        }
        other => panic!("{other}"),
    }
    // Whoever was struck does nothing more, and does not end by itself: the test ends it.
    thread::sleep(Duration::from_secs(600));
}
