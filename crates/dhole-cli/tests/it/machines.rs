//! Two network namespaces as two machines: `dhole run --hosts` between them, over TCP with TLS,
//! where the remote shell is `ip netns exec`, or ssh to an sshd on each.
//! Takes root and `ip`; where there is neither, the test says so and holds nothing, and so it does
//! without `sshd` where it takes that.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio, id};

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
        let mut dhole = Command::new(env!("CARGO_BIN_EXE_dhole"));
        let dhole = self.words(&mut dhole, "ip netns exec", transport, before);
        dhole.output().unwrap()
    }

    /// Runs it from the first machine, which reaches both with this remote shell.
    fn run_from_the_first(&self, rsh: &str, before: &str) -> Output {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &self.names[0]]);
        ip.arg(env!("CARGO_BIN_EXE_dhole"));
        self.words(&mut ip, rsh, "mixed", before).output().unwrap()
    }

    fn words<'c>(
        &self,
        dhole: &'c mut Command,
        rsh: &str,
        transport: &str,
        before: &str,
    ) -> &'c mut Command {
        let shell = format!("{before} exec \"$0\" --exact machines::member --nocapture");
        dhole
            .args(["run", "--rsh", rsh, "--hosts"])
            .arg(self.hosts.path())
            .args(["--transport", transport, "--grace-ms", "1000", "--"])
            .args(["/bin/sh", "-c", &shell])
            .arg(env::current_exe().unwrap())
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

/// An sshd on each machine, with keys of their own and for the test alone; gone with the value.
struct Sshds {
    daemons: Vec<Child>,
    folder: tempfile::TempDir,
}

const SSHD: &str = "/usr/sbin/sshd";

impl Sshds {
    fn on(machines: &Machines, test: u8) -> Option<Sshds> {
        if !Path::new(SSHD).exists() {
            eprintln!("no {SSHD}: nothing was tested");
            return None;
        }
        // As the system's own start-up would.
        fs::create_dir_all("/run/sshd").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        for key in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            let status = keygen.arg(folder.path().join(key)).status();
            assert!(status.unwrap().success(), "ssh-keygen");
        }
        let host = fs::read_to_string(folder.path().join("host.pub")).unwrap();
        let (mut known, mut client) = (String::new(), String::new());
        let mut daemons = Vec::new();
        for (i, name) in machines.names.iter().enumerate() {
            let address = format!("10.77.{test}.{}", i + 1);
            known += &format!("{name} {host}");
            client += &format!("Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n");
            let daemon = format!(
                "ListenAddress {address}\nHostKey {place}/host\nPidFile none\nUsePAM no\n\
                 AuthorizedKeysFile {place}/user.pub\nStrictModes no\n\
                 PasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            );
            let file = folder.path().join(format!("sshd-{i}"));
            fs::write(&file, daemon).unwrap();
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name, SSHD, "-D", "-e", "-f"]);
            let mut child = command.arg(file).stderr(Stdio::piped()).spawn().unwrap();
            let said = BufReader::new(child.stderr.take().unwrap());
            daemons.push(child);
            let mut said = said.lines().map_while(Result::ok);
            assert!(
                said.any(|line| line.contains("listening")),
                "sshd on {name}"
            );
            // Whoever writes to a pipe that nobody reads is ended.
            std::thread::spawn(move || said.count());
        }
        fs::write(folder.path().join("known"), known).unwrap();
        client += &format!(
            "Host *\n  IdentityFile {place}/user\n  IdentitiesOnly yes\n  BatchMode yes\n  \
             UserKnownHostsFile {place}/known\n  LogLevel ERROR\n"
        );
        fs::write(folder.path().join("client"), client).unwrap();
        Some(Sshds { daemons, folder })
    }

    /// The remote shell that reaches them.
    fn shell(&self) -> String {
        format!("ssh -F {}/client", self.folder.path().display())
    }

    /// Whether a process is one of them.
    fn are(&self, process: &str) -> bool {
        let mut ids = self.daemons.iter().map(Child::id);
        ids.any(|id| id.to_string() == process)
    }
}

impl Drop for Sshds {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
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
fn addresses_of_one_link_carry_the_zone_of_each_machine() {
    let Some(mut machines) = Machines::new(9, [1, 2]) else {
        return;
    };
    // A cable that has another number on each machine, and the same name.
    let [a, b] = &machines.names;
    assert!(ip(&format!("-n {a} link del cable")));
    assert!(ip(&format!(
        "-n {b} link add other type veth peer name more"
    )));
    let cable = format!("-n {a} link add cable type veth peer name cable netns {b}");
    assert!(ip(&cable));
    machines.hosts = tempfile::NamedTempFile::new().unwrap();
    for (i, name) in machines.names.iter().enumerate() {
        let address = format!("fe80::{}", i + 1);
        let added = format!("-n {name} addr add {address}/64 dev cable nodad");
        assert!(ip(&added) && ip(&format!("-n {name} link set cable up")));
        // Where the other nodes are found, they say themselves.
        let address = format!(" address={address}%cable");
        let address = if i == 0 { &address } else { "" };
        writeln!(machines.hosts, "{name} slots={}{address}", i + 1).unwrap();
    }
    for transport in ["tcp", "mixed", "udp"] {
        let output = machines.run(transport, "");
        assert!(output.status.success(), "{transport}: {output:?}");
        assert!(says(&output, "counted 30"), "{transport}: {output:?}");
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

/// Waits until no process is left on the machines but the daemons: the last that a session does,
/// it does after its connection has ended.
fn nothing_is_left(machines: &Machines, sshds: &Sshds) {
    for name in &machines.names {
        let left = || {
            let pids = Command::new("ip").args(["netns", "pids", name]).output();
            let pids = String::from_utf8(pids.unwrap().stdout).unwrap();
            let pids = pids.lines().filter(|pid| !sshds.are(pid));
            pids.map(str::to_owned).collect::<Vec<_>>()
        };
        let gone = (0..6_000).any(|_| {
            let gone = left().is_empty();
            if !gone {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            gone
        });
        assert!(gone, "left on {name} after a minute: {:?}", left());
    }
}

#[test]
fn a_program_runs_on_two_machines_over_ssh() {
    let Some(machines) = Machines::new(5, [2, 1]) else {
        return;
    };
    let Some(sshds) = Sshds::on(&machines, 5) else {
        return;
    };
    let output = machines.run_from_the_first(&sshds.shell(), "");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout)
            .matches("counted 30")
            .count(),
        3
    );
    nothing_is_left(&machines, &sshds);
}

#[test]
fn over_ssh_a_node_that_is_killed_ends_the_run_on_all_and_nothing_is_left() {
    let Some(machines) = Machines::new(6, [1, 2]) else {
        return;
    };
    let Some(sshds) = Sshds::on(&machines, 6) else {
        return;
    };
    let dies = "[ $DHOLE_NODE != 2 ] || kill -9 $$;";
    let output = machines.run_from_the_first(&sshds.shell(), dies);
    assert_eq!(output.status.code(), Some(128 + 9), "{output:?}");
    let on = format!("node 2 on {} was ended by signal 9", machines.names[1]);
    assert!(says(&output, &on), "{output:?}");
    nothing_is_left(&machines, &sshds);
}

#[test]
fn over_ssh_a_connection_that_is_cut_ends_its_node_and_the_run() {
    let Some(machines) = Machines::new(7, [1, 1]) else {
        return;
    };
    let Some(sshds) = Sshds::on(&machines, 7) else {
        return;
    };
    // Node 1 ends the session that it runs in, the ancestor that is called sshd, and goes on.
    let cuts = "if [ $DHOLE_NODE = 1 ]; then p=$$; \
        until [ \"$(cat /proc/$p/comm)\" = sshd ]; do \
        p=$(cut -d' ' -f4 /proc/$p/stat); done; kill -9 $p; exec sleep 600; fi;";
    let output = machines.run_from_the_first(&sshds.shell(), cuts);
    assert!(!output.status.success(), "{output:?}");
    assert!(
        says(&output, &format!("node 1 on {}", machines.names[1])),
        "{output:?}"
    );
    nothing_is_left(&machines, &sshds);
}

#[test]
fn a_stranger_behind_ssh_starts_nothing() {
    let Some(machines) = Machines::new(8, [1, 1]) else {
        return;
    };
    let Some(sshds) = Sshds::on(&machines, 8) else {
        return;
    };
    // The host's key is another than the one that is known.
    let known = fs::read_to_string(sshds.folder.path().join("known")).unwrap();
    let user = fs::read_to_string(sshds.folder.path().join("user.pub")).unwrap();
    let other = known.lines().map(|line| {
        let host = line.split(' ').next().unwrap();
        format!("{host} {user}")
    });
    fs::write(sshds.folder.path().join("known"), other.collect::<String>()).unwrap();
    let output = machines.run_from_the_first(&sshds.shell(), "");
    assert!(
        !output.status.success() && !says(&output, "counted"),
        "{output:?}"
    );
    assert!(says(&output, "Host key verification failed"), "{output:?}");
    nothing_is_left(&machines, &sshds);
}
