//! Accesses that cannot be made end the process, with words; the same program with `mprotect`. Each
//! is a process of its own: this test, started again.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use dhole::memory::{self, MemorySettings, ProgramMemory, TryAccess as _};
use dhole::{Config, Worker};

use crate::cluster;

/// A process is looked at so often, for 80 seconds, and takes a second at most.
const MOST_LOOKS: usize = 4000;

/// Which program a process is to run.
const PROGRAM: &str = "DHOLE_TEST_MEMORY";

fn started(program: &str, faults: Option<&str>) -> Output {
    started_with(program, faults, None)
}

/// The same, with so many mappings at the most.
fn started_with(program: &str, faults: Option<&str>, mappings: Option<&str>) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["--exact", "ending::a_process_of_its_own", "--nocapture"])
        .env(PROGRAM, program);
    match faults {
        Some(faults) => command.env("DHOLE_FAULTS", faults),
        None => command.env_remove("DHOLE_FAULTS"),
    };
    if let Some(most) = mappings {
        command.env("DHOLE_MOST_MAPPINGS", most);
    }
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the test starts");
    for _ in 0..MOST_LOOKS {
        if child.try_wait().expect("a process").is_some() {
            break;
        }
        // The end of another process within a time can only be polled for.
        std::thread::sleep(Duration::from_millis(20));
    }
    // What has not ended by now does not, and is ended: the test then finds what it has not said.
    let _ended = child.kill();
    child.wait_with_output().expect("what the test has said")
}

fn run<R: Send>(program: impl for<'id> Fn(&mut Worker<'id>) -> dhole::Result<R> + Sync) -> R {
    let config = Config::nodes(2).memory(MemorySettings::default());
    config.run(program).expect("a run").value
}

/// From here on the system refuses `userfaultfd` to this thread and those that it starts, as some
/// containers do.
fn refuse_uffd() {
    #[repr(C)]
    struct Filter {
        code: u16,
        if_true: u8,
        if_false: u8,
        number: u32,
    }
    #[repr(C)]
    struct Filters {
        len: u16,
        first: *const Filter,
    }
    let filter = |code, if_false, number| Filter {
        code,
        if_true: 0,
        if_false,
        number,
    };
    // Load the number of the call; if it is that of userfaultfd, EPERM; otherwise allow it.
    let all = [
        filter(0x20, 0, 0),
        filter(0x15, 1, 323),
        filter(0x06, 0, 0x0005_0001),
        filter(0x06, 0, 0x7fff_0000),
    ];
    let filters = Filters {
        len: all.len() as u16,
        first: all.as_ptr(),
    };
    let (no_new_privileges, set_filter, none) = (38, 22, 0_usize);
    // SAFETY: the calls take numbers, and the filters, which live until they return.
    let set = unsafe {
        prctl(no_new_privileges, 1, none, none, none)
            + prctl(set_filter, 2, (&raw const filters).addr(), none, none)
    };
    assert_eq!(set, 0, "the system takes filters");
}

/// A node that handles faults on alternate stacks.
fn on_alternate_stacks() -> Config {
    let settings = MemorySettings {
        views: 2,
        bytes: 1 << 30,
    };
    // SAFETY: there are no globals.
    let memory = unsafe { ProgramMemory::new(settings, vec![0x50_0000_0000], Vec::new()) };
    Config::nodes(1).memory(memory.with_alternate_stacks())
}

/// This thread has an alternate stack of so many bytes, for ever.
fn has_alternate_stack(bytes: usize) {
    let stack = AlternateStack {
        begins: Box::leak(vec![0_u8; bytes].into_boxed_slice()).as_mut_ptr(),
        flags: 0,
        bytes,
    };
    // SAFETY: the stack is nobody else's, and the structure is the system's.
    let set = unsafe { sigaltstack(&raw const stack, std::ptr::null_mut()) };
    assert_eq!(set, 0, "the system takes a stack");
}

#[repr(C)]
struct AlternateStack {
    begins: *mut u8,
    flags: i32,
    bytes: usize,
}

/// Node 1 reads every second page of each view until the system has no more mappings.
fn splits_mappings(w: &mut Worker<'_>) -> dhole::Result<()> {
    const ROWS: usize = 1 << 18;
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, ROWS, 2)?))?;
    if w.node().index() == 1 {
        // 32 of them are on each page.
        for row in (0..ROWS).filter(|row| row / 32 % 2 == 0) {
            rows.row(row).cells(w)[0].try_load(Relaxed)?;
        }
    }
    Ok(w.barrier()?)
}

unsafe extern "C" {
    fn prctl(what: i32, one: usize, two: usize, three: usize, four: usize) -> i32;
    safe fn _exit(status: i32) -> !;
    fn fork() -> i32;
    fn sigaltstack(new: *const AlternateStack, old: *mut AlternateStack) -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
}

#[test]
fn a_child_of_fork_that_touches_memory_dies() {
    for faults in [None, Some("mprotect")] {
        let output = started("fork", faults);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("child ended by signal 11"), "{output:?}");
    }
}

#[test]
fn a_process_of_its_own() {
    let Ok(program) = std::env::var(PROGRAM) else {
        return;
    };
    match &*program {
        "nowhere" => {
            let rows = run(|w| w.once(|w| Ok(memory::alloc_rows::<u64>(w, 9, 512)?)));
            run(|w| {
                w.barrier()?;
                if w.node().index() == 1 {
                    rows.row(8).cells(w)[1].store(1, Relaxed);
                }
                Ok(w.barrier()?)
            });
        }
        "freed" => run(|w| {
            let row = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 1, 2)?.row(0)))?;
            row.cells(w)[w.node().index()].store(1, Relaxed);
            w.barrier()?;
            if w.node().index() == 0 {
                row.free(w)?;
            }
            w.barrier()?;
            if w.node().index() == 1 {
                println!("{}", row.cells(w)[0].load(Relaxed));
            }
            Ok(w.barrier()?)
        }),
        "in a call" => run(|w| {
            let cell = w.once(|w| Ok(memory::alloc::<u32>(w)?))?;
            let cell = cell.get(w);
            if w.node().index() == 1 {
                w.alloc_range(2, |_| cell.load(Relaxed));
            }
            w.barrier()?;
            Ok(())
        }),
        "another thread" => {
            let config = Config::nodes(2).memory(MemorySettings::default());
            let simulated = config.simulate(dhole::sim::Settings::fixed_cost(2), |w| {
                let cell = w.once(|w| Ok(memory::alloc::<u32>(w)?))?;
                let cell = cell.get(w);
                if w.node().index() == 1 {
                    std::thread::scope(|scope| {
                        scope.spawn(|| cell.load(Relaxed));
                    });
                }
                Ok(w.barrier()?)
            });
            simulated.expect("a run");
        }
        "counts" => {
            let found = run(|w| {
                let rows = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 8, 16)?))?;
                for round in 0..100 {
                    rows.row(round % 8).cells(w)[round % 16].fetch_add(1, Relaxed);
                }
                w.barrier()?;
                let all = (0..8).flat_map(|row| rows.row(row).cells(w));
                let sum: u32 = all.map(|cell| cell.load(Relaxed)).sum();
                w.barrier()?;
                Ok((sum, memory::usage(w)?.faults))
            });
            println!("\nfound {found:?}");
        }
        "refused" => {
            refuse_uffd();
            let config = Config::nodes(2).memory(MemorySettings::default());
            let run = config.run(|w| {
                let cell = w.once(|w| Ok(memory::alloc::<u32>(w)?))?;
                cell.get(w).fetch_add(1, Relaxed);
                w.barrier()?;
                Ok((cell.get(w).load(Relaxed), memory::usage(w)?.faults))
            });
            match run {
                Ok(run) => println!("\nfound {:?}", run.value),
                Err(error) => println!("\nfound {error}"),
            }
        }
        "many mappings" => {
            let config = Config::nodes(2).memory(MemorySettings::default());
            let run = config.run(splits_mappings).map(|_| ());
            println!("\nfound {}", run.expect_err("too many mappings"));
        }
        "small stack" => {
            let run = on_alternate_stacks().run(|w| {
                let row = memory::alloc_rows::<u64>(w, 1, 8)?.row(0);
                let loads = || row.cells(w)[0].try_load(Relaxed);
                let refused = loads().expect_err("the standard library's stack is small");
                has_alternate_stack(1 << 20);
                Ok((loads()?, refused.to_string()))
            });
            println!("\nfound {:?}", run.map(|run| run.value));
        }
        "smallest stack" => {
            let run = on_alternate_stacks().run(|w| {
                let row = memory::alloc_rows::<u64>(w, 1, 8)?.row(0);
                Ok(row.cells(w)[0].load(Relaxed))
            });
            println!("\nfound {:?}", run.map(|run| run.value));
        }
        "few mappings" => {
            let config = Config::nodes(1).memory(MemorySettings::default());
            let run = config.run(|w| {
                let rows = memory::alloc_rows::<u64>(w, 1000, 512)?;
                for row in (0..1000).step_by(2) {
                    rows.row(row).cells(w)[0].try_load(Relaxed)?;
                }
                Ok(())
            });
            match run {
                Ok(_) => println!("\nfound enough"),
                Err(error) => println!("\nfound {error}"),
            }
        }
        "maps" => {
            let found = run(|w| {
                let rows = w.once(|w| Ok(memory::alloc_rows::<u32>(w, 500, 16)?))?;
                w.barrier()?;
                let before = mappings();
                for row in (w.node().index()..1000).step_by(3).map(|row| row % 500) {
                    rows.row(row).cells(w)[0].fetch_add(1, Relaxed);
                }
                w.barrier()?;
                Ok([before, mappings()])
            });
            println!("\nfound {found:?}");
        }
        "swap two" => {
            for nodes in 2..=4 {
                for simulated in [false, true] {
                    swap_two(nodes, simulated);
                }
            }
            println!("\nswapped");
        }
        "fork" => run(|w| {
            let cell = w.once(|w| Ok(memory::alloc::<u32>(w)?))?.get(w);
            cell.store(1, Relaxed);
            w.barrier()?;
            if w.node().index() == 0 {
                // SAFETY: the child makes one access, and ends by it or by the call after it.
                let child = unsafe { fork() };
                if child == 0 {
                    let value = cell.load(Relaxed) as i32;
                    _exit(value);
                }
                let mut status = 0;
                // SAFETY: of the process's own child, and the place is this function's.
                let waited = unsafe { waitpid(child, &raw mut status, 0) };
                println!("\nchild ended by signal {}", status & 0x7f);
                assert_eq!(waited, child);
            }
            Ok(w.barrier()?)
        }),
        "segv" => {
            run(|_| Ok(()));
            let nowhere = std::ptr::null::<u8>();
            // SAFETY: none: the process is to end as it would without dhole.
            let read = unsafe { nowhere.read_volatile() };
            println!("read {read}");
        }
        other => panic!("no program {other}"),
    }
}

/// Nodes copy one number to the other, and the other way round, by one instruction that needs both.
pub fn swaps(w: &mut Worker<'_>) -> dhole::Result<()> {
    let rows = w.once(|w| Ok(memory::alloc_rows::<u64>(w, 2, 1)?))?;
    let node = w.node().index();
    let of = |row: usize| rows.row(row).cells(w)[0].as_ptr();
    let (from, to) = (of(node % 2), of(1 - node % 2));
    for _ in 0..200 {
        // SAFETY: both are numbers that are mapped, aligned and only accessed as atomics are: by
        // instructions of which each number's part is one access.
        unsafe {
            std::arch::asm!("movsq", inout("rsi") from => _, inout("rdi") to => _,
                options(nostack, preserves_flags));
        }
    }
    Ok(w.barrier()?)
}

fn swap_two(nodes: usize, simulated: bool) {
    let config = Config::nodes(nodes).memory(MemorySettings::default());
    let settings = dhole::sim::Settings::fixed_cost(nodes);
    let ended = match simulated {
        true => config.simulate(settings, swaps),
        false => config.run(swaps),
    };
    ended.expect("a run");
}

#[test]
fn so_do_processes_that_need_the_same_two_minipages() {
    for nodes in 2..=4 {
        assert_eq!(cluster::succeeds(nodes, "swaps"), ["value ()"]);
    }
}

#[test]
fn nodes_that_need_the_same_two_minipages_by_one_instruction_get_on() {
    let output = started("swap two", None);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("swapped"), "{output:?}");
}

/// Mappings of memory in this process.
fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the process has mappings");
    let memory = |line: &&str| line.contains("memfd:dhole-memory");
    maps.lines().filter(memory).count()
}

/// Whether the system lets a process have `userfaultfd`: some containers and kernels do not.
fn has_uffd() -> bool {
    let output = started("counts", Some("uffd"));
    let said = String::from_utf8_lossy(&output.stderr);
    let refused = !output.status.success() && said.contains("raw memory");
    if refused {
        println!("passed over, for userfaultfd is refused: {said}");
    }
    !refused
}

#[test]
fn a_node_has_one_mapping_a_view_and_the_privileged_one_however_many_faults() {
    if !has_uffd() {
        return;
    }
    let output = started("maps", Some("uffd"));
    let said = String::from_utf8_lossy(&output.stdout);
    let all = 2 * (MemorySettings::default().views + 1);
    assert!(said.contains(&format!("found {:?}", [all, all])), "{said}");
}

#[test]
fn where_userfaultfd_is_refused_mprotect_does_it_unless_it_was_asked_for() {
    let found = |faults| {
        let output = started("refused", faults);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = found(None);
    assert!(said.contains("found (2, \"mprotect\")"), "{said}");
    let said = found(Some("uffd"));
    assert!(said.contains("Operation not permitted"), "{said}");
}

/// What a program says that splits mappings, of which there may be so many.
#[track_caller]
fn has_too_many(program: &str, most: Option<&str>, words: &[&str]) {
    let output = started_with(program, Some("mprotect"), most);
    let said = String::from_utf8_lossy(&output.stdout);
    for word in words {
        assert!(said.contains(word), "{word}: {output:?}");
    }
}

#[test]
fn too_many_mappings_are_an_error_that_says_what_to_do() {
    let changing = "changing what may be done with the minipage at 0x";
    // The system refuses more.
    let refused = "too many mappings (sysctl vm.max_map_count)";
    has_too_many("many mappings", Some("1000000"), &[changing, refused]);
    let allowed = std::fs::read_to_string("/proc/sys/vm/max_map_count").expect("a number");
    let allowed: usize = allowed.trim().parse().expect("a number");
    let most = format!("of which there may be {} (DHOLE_MOST", allowed / 5 * 4);
    has_too_many("many mappings", None, &[changing, &most]);
    let words = [
        "reading memory at 0x",
        changing,
        " (allocated at crates/dhole/tests/memory/ending.rs:",
        "(1000 x 4096 bytes))",
        "of which there may be 400 (DHOLE_MOST_MAPPINGS, or 80% of the sysctl vm.max_map_count",
        "Allow the process userfaultfd",
        "the seccomp profile of a container may refuse it",
        "(alloc_chunks, --chunk, dh_chunk)",
    ];
    has_too_many("few mappings", Some("400"), &words);
    has_too_many("few mappings", None, &["found enough"]);
    let wrong = "DHOLE_MOST_MAPPINGS is `few`: a number is expected";
    has_too_many("few mappings", Some("few"), &[wrong]);
}

#[test]
fn an_alternate_stack_that_is_too_small_for_a_handler_is_an_error() {
    for faults in [None, Some("mprotect")] {
        let output = started("small stack", faults);
        let said = String::from_utf8_lossy(&output.stdout);
        let words = [
            "found Ok((0, \"reading memory at 0x5000000000 on node 0: faults are handled on",
            "(sigaltstack), which has ",
            " bytes and needs 262144; allocated at ",
        ];
        for word in words {
            assert!(said.contains(word), "{word}: {output:?}");
        }
    }
    dies("smallest stack", &["(sigaltstack), which has "]);
}

fn dies(program: &str, words: &[&str]) {
    for faults in [None, Some("mprotect")] {
        let output = started(program, faults);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{program}: {said}");
        for words in words {
            assert!(said.contains(words), "{program}: {said}");
        }
    }
}

#[test]
fn an_access_to_what_is_not_allocated_ends_the_process() {
    dies(
        "nowhere",
        &[
            "writing memory at 0x8008 on node 1",
            "nothing is allocated there",
        ],
    );
}

#[test]
fn an_access_to_what_was_freed_ends_the_process() {
    let words = [
        "reading memory at 0x0 on node 1",
        "nothing is allocated there",
    ];
    dies("freed", &words);
}

#[test]
fn an_access_within_a_call_is_no_hang() {
    dies(
        "in a call",
        &[
            "reading memory at 0x0 on node 1",
            "within a call of the runtime",
        ],
    );
}

#[test]
fn an_access_of_another_thread_is_no_hang_where_nodes_are_simulated() {
    dies(
        "another thread",
        &["reading memory at 0x0 on node 1", "it is simulated"],
    );
}

#[test]
fn both_ways_to_catch_faults_give_the_same() {
    for (asked, name) in [("uffd", "userfaultfd"), ("mprotect", "mprotect")] {
        if asked == "uffd" && !has_uffd() {
            continue;
        }
        let output = started("counts", Some(asked));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("found (200, {name:?})")), "{said}");
    }
    let output = started("counts", Some("hope"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("DHOLE_FAULTS is `hope`"), "{said}");
}

#[test]
fn a_fault_that_is_the_program_s_own_ends_it_as_ever() {
    use std::os::unix::process::ExitStatusExt as _;
    for faults in [None, Some("mprotect")] {
        let output = started("segv", faults);
        assert_eq!(output.status.signal(), Some(11));
    }
}
