//! What the detector `vm` leaves to others: every fault that is no touch of its own. Each test
//! does its work in a process of its own, for that ends by the fault.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::ffi::{c_int, c_void};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use dhole_heap::{Cluster, Monitor, ReserveError};
use dhole_model::{Detector, NodeId};

const CHILD: &str = "DHOLE_TEST_CHILD";

/// Runs `f` in a process of its own, which runs the one test of this name; how that ended.
fn apart(test: &str, f: impl FnOnce()) -> ExitStatus {
    if std::env::var_os(CHILD).is_some() {
        f();
        std::process::exit(0);
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    let test = format!("faults::{test}");
    child
        .args([&test, "--exact", "--nocapture"])
        .env(CHILD, "1");
    child.output().expect("it can be started").status
}

fn cluster() -> Result<Arc<Cluster>, ReserveError> {
    Cluster::with_detector(1, Detector::Vm)
}

/// Has the process do with SIGSEGV what it does by itself: Rust's own handler is gone.
fn no_handler() {
    // SAFETY: it installs no function.
    unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
}

/// Makes a cluster and has one access of it fault.
fn fault_once() {
    let node = Monitor::new(&cluster().unwrap(), NodeId(0), ());
    let r = node.lock().split().0.alloc(1_u64).unwrap();
    node.lend(|mut token| assert!(token.get_mut(r).is_err()))
        .unwrap();
}

fn dereference_null() {
    let null = std::hint::black_box(std::ptr::null::<u64>());
    // SAFETY: there is none; that is the test.
    let read = unsafe { null.read_volatile() };
    println!("null holds {read}");
}

#[test]
fn a_null_dereference_still_ends_the_process_by_sigsegv() {
    let ended = apart(
        "a_null_dereference_still_ends_the_process_by_sigsegv",
        || {
            fault_once();
            dereference_null();
        },
    );
    assert_eq!(ended.signal(), Some(libc::SIGSEGV), "{ended}");
}

#[test]
fn a_signal_that_is_sent_still_ends_the_process() {
    let ended = apart("a_signal_that_is_sent_still_ends_the_process", || {
        no_handler();
        fault_once();
        // SAFETY: it sends a signal, no more.
        unsafe { libc::raise(libc::SIGSEGV) };
    });
    assert_eq!(ended.signal(), Some(libc::SIGSEGV), "{ended}");
}

#[test]
fn writing_what_may_only_be_read_but_by_a_touch_ends_the_process() {
    let ended = apart(
        "writing_what_may_only_be_read_but_by_a_touch_ends_the_process",
        || {
            no_handler();
            let node = Monitor::new(&cluster().unwrap(), NodeId(0), ());
            let r = node.lock().split().0.alloc(1_u64).unwrap();
            let seen = node.lend(|token| std::ptr::from_ref(token.get(r).unwrap()));
            // SAFETY: there is none: the view may only be read, and no touch writes here.
            unsafe { seen.unwrap().cast_mut().write_volatile(2) };
        },
    );
    assert_eq!(ended.signal(), Some(libc::SIGSEGV), "{ended}");
}

extern "C" fn leave(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands it over; leaving is allowed in a handler.
    unsafe { libc::_exit(if (*info).si_addr().is_null() { 42 } else { 43 }) };
}

#[test]
fn a_handler_from_before_is_called_for_what_is_not_ours() {
    let ended = apart(
        "a_handler_from_before_is_called_for_what_is_not_ours",
        || {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = leave;
            // SAFETY: a valid `sigaction`, of a function of the type that its flags say.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as usize;
                action.sa_flags = libc::SA_SIGINFO;
                libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
            }
            fault_once();
            dereference_null();
        },
    );
    assert_eq!(ended.code(), Some(42), "{ended}");
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    maps.lines()
        .filter(|line| line.contains("memfd:dhole"))
        .count()
}

#[test]
fn the_views_of_a_cluster_that_ends_go_back() {
    let ended = apart("the_views_of_a_cluster_that_ends_go_back", || {
        for _ in 0..200 {
            let cluster = Cluster::with_detector(64, Detector::Vm).unwrap();
            let nodes = (0..64).map(|i| Monitor::new(&cluster, NodeId(i), ()));
            for node in nodes {
                node.lock().split().0.alloc_range(600, |i| i).unwrap();
            }
            assert_eq!(mappings(), 2 * 64);
        }
        assert_eq!(mappings(), 0);
    });
    assert!(ended.success(), "{ended}");
}

#[test]
fn where_the_system_refuses_the_views_the_cluster_says_so() {
    let ended = apart(
        "where_the_system_refuses_the_views_the_cluster_says_so",
        || {
            let _space = Cluster::new(1).unwrap();
            let none = libc::rlimit {
                rlim_cur: 1 << 20,
                rlim_max: 1 << 20,
            };
            // SAFETY: it limits what is mapped from now on.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &none) }, 0);
            let refused = cluster().unwrap_err();
            assert!(matches!(refused, ReserveError::Views { .. }), "{refused}");
            assert!(
                refused
                    .to_string()
                    .contains("detector vm: Cannot allocate memory")
            );
        },
    );
    assert!(ended.success(), "{ended}");
}

/// Limits the address space of this process.
fn limit_address_space(bytes: u64) {
    let most = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: it reads the limit, and no other memory.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &most) }, 0);
}

#[test]
fn a_reservation_leaves_room_for_what_a_program_allocates_beside_it() {
    let ended = apart(
        "a_reservation_leaves_room_for_what_a_program_allocates_beside_it",
        || {
            // More than one of the reservations that are tried, but not by enough.
            limit_address_space((1 << 40) + (300 << 20));
            let _cluster = Cluster::new(1).unwrap();
            drop(std::hint::black_box(vec![1_u8; 500 << 20]));
        },
    );
    assert!(ended.success(), "{ended}");
}

#[test]
fn where_address_space_is_limited_less_is_reserved_and_serves() {
    let ended = apart(
        "where_address_space_is_limited_less_is_reserved_and_serves",
        || {
            limit_address_space(3 << 30);
            let cluster = Cluster::new(3).unwrap();
            for node in (0..3).map(|i| Monitor::new(&cluster, NodeId(i), ())) {
                let mut node = node.lock();
                let all = node.split().0.alloc_range(100_000, |i| [i; 32]).unwrap();
                assert_eq!(all.len(), 100_000);
            }
            let refused = Cluster::new(2).unwrap_err();
            assert!(matches!(refused, ReserveError::Slots { .. }), "{refused}");
        },
    );
    assert!(ended.success(), "{ended}");
}

#[test]
fn where_too_little_is_left_the_error_says_how_much_why_and_what_to_do() {
    let ended = apart(
        "where_too_little_is_left_the_error_says_how_much_why_and_what_to_do",
        || {
            limit_address_space(600 << 20);
            let refused = Cluster::new(16).unwrap_err().to_string();
            for part in [
                "the system refuses 1024 MiB for 16 nodes and as much for everything else",
                "`ulimit -v` says 614400 KiB",
                "so that none of them ever moves",
                "`ulimit -v unlimited`",
                "fewer nodes in a process",
            ] {
                assert!(refused.contains(part), "{part}: {refused}");
            }
        },
    );
    assert!(ended.success(), "{ended}");
}

#[test]
fn ids_that_another_cluster_took_while_processes_agreed_on_them_are_an_error_that_says_so() {
    let ended = apart(
        "ids_that_another_cluster_took_while_processes_agreed_on_them_are_an_error_that_says_so",
        || {
            let part = Cluster::part(2, NodeId(0), Detector::Check).unwrap();
            let window = Cluster::window_of(part.ids_left());
            let other = Cluster::new(1).unwrap();
            let node = Monitor::new(&other, NodeId(0), ());
            let mut guard = node.lock();
            guard.split().0.alloc_range(10, |i| [i; 32]).unwrap();
            let refused = part.settle(window.clone(), 7).unwrap_err();
            let ReserveError::Taken { first } = refused else {
                panic!("{refused}");
            };
            assert_eq!(first, window.start);
            let words = refused.to_string();
            assert!(words.contains("by another run of this process"), "{words}");
            part.settle(Cluster::window_of(part.ids_left()), 8).unwrap();
        },
    );
    assert!(ended.success(), "{ended}");
}
