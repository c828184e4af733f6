//! Two network namespaces as two machines: `dhole run --hosts` between them, over TCP with TLS.
//! Takes root and `ip`; where there is neither, the test says so and holds nothing.

use std::env;
use std::io::Write;
use std::process::{Command, Output, Stdio, id};

use dhole::{Config, Lock, Ref, Share};

/// The two namespaces of one test, connected by a cable; gone with the value.
struct Machines {
    names: [String; 2],
    hosts: tempfile::NamedTempFile,
}

fn ip(words: &str) -> bool {
    let mut ip = Command::new("ip");
    let ip = ip.args(words.split(' ')).stderr(Stdio::null());
    ip.status().is_ok_and(|status| status.success())
}

impl Machines {
    /// Two machines whose addresses end in 1 and 2, with so many nodes on each.
    fn new(test: u8, slots: [usize; 2]) -> Option<Machines> {
        let names = ["a", "b"].map(|end| format!("dhole-{}-{test}{end}", id()));
        let [a, b] = &names;
        let cable = format!("-n {a} link add cable type veth peer name cable netns {b}");
        if !ip(&format!("netns add {a}")) || !ip(&format!("netns add {b}")) || !ip(&cable) {
            eprintln!("not root, or no network namespaces here: nothing was tested");
            return None;
        }
        let mut hosts = tempfile::NamedTempFile::new().unwrap();
        for (i, name) in names.iter().enumerate() {
            let address = format!("10.77.{test}.{}", i + 1);
            assert!(ip(&format!("-n {name} addr add {address}/24 dev cable")));
            assert!(ip(&format!("-n {name} link set cable up")));
            assert!(ip(&format!("-n {name} link set lo up")));
            let slots = slots[i];
            writeln!(hosts, "{name} slots={slots} address={address}").unwrap();
        }
        Some(Machines { names, hosts })
    }

    /// Runs the program on both, with these words for the shell that starts it on each.
    fn run(&self, transport: &str, before: &str) -> Output {
        let own = env::current_exe().unwrap();
        let shell = format!("{before} exec \"$0\" --exact member --nocapture");
        Command::new(env!("CARGO_BIN_EXE_dhole"))
            .args(["run", "--rsh", "ip netns exec", "--hosts"])
            .arg(self.hosts.path())
            .args(["--transport", transport, "--grace-ms", "1000", "--"])
            .args(["/bin/sh", "-c", &shell])
            .arg(own)
            .output()
            .unwrap()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

#[derive(Share, Clone, Copy)]
struct Shared {
    lock: Lock,
    count: u64,
}

/// What runs on each node.
#[test]
fn member() {
    if env::var("DHOLE_NODE").is_err() {
        return;
    }
    let run = Config::nodes(1).run(|w| {
        let shared: Ref<Shared> = w.once(|w| {
            let lock = w.new_lock();
            Ok(w.alloc(Shared { lock, count: 0 }))
        })?;
        for _ in 0..10 {
            let lock = shared.get(w).lock;
            lock.with(w, |w| {
                shared.get_mut(w).count += 1;
                Ok(())
            })?;
        }
        w.barrier()?;
        Ok(shared.get(w).count)
    });
    match run {
        Ok(run) => println!("counted {}", run.value),
        Err(error) => panic!("{error}"),
    }
}

fn says(output: &Output, words: &str) -> bool {
    let said = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&said).contains(words)
}

#[test]
fn a_program_runs_on_two_machines() {
    let Some(machines) = Machines::new(1, [2, 1]) else {
        return;
    };
    for transport in ["tcp", "mixed"] {
        let output = machines.run(transport, "");
        assert!(output.status.success(), "{output:?}");
        assert!(says(&output, "counted 30"), "{output:?}");
    }
}

#[test]
fn what_goes_between_machines_is_encrypted_unless_all_say_never() {
    let Some(machines) = Machines::new(2, [1, 1]) else {
        return;
    };
    let words = "export DHOLE_JOIN_MS=3000;";
    // One that does not encrypt meets one that insists on it.
    let never = "[ $DHOLE_NODE = 0 ] || export DHOLE_TLS=never;";
    let output = machines.run("tcp", &format!("{words} {never}"));
    assert!(!output.status.success(), "{output:?}");
    assert!(
        says(&output, "it encrypts, and this node does not"),
        "{output:?}"
    );
    let output = machines.run("tcp", "export DHOLE_TLS=never;");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn shared_memory_does_not_reach_another_machine_and_says_so() {
    let Some(machines) = Machines::new(3, [1, 1]) else {
        return;
    };
    let output = machines.run("shm", "");
    assert!(!output.status.success());
    assert!(says(&output, "not on the same machine"), "{output:?}");
}

#[test]
fn a_node_that_is_killed_on_one_machine_ends_the_run_on_all() {
    let Some(machines) = Machines::new(4, [1, 2]) else {
        return;
    };
    let output = machines.run("tcp", "[ $DHOLE_NODE != 2 ] || kill -9 $$;");
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    let on = format!("node 2 on {} was ended by signal 9", machines.names[1]);
    assert!(says(&output, &on), "{output:?}");
    for name in &machines.names {
        let left = Command::new("ip").args(["netns", "pids", name]).output();
        assert_eq!(left.unwrap().stdout, b"", "on {name}");
    }
}
