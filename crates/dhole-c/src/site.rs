//! Where in the program a function of this library was called: return addresses, and what they are
//! called in words.
//!
//! A function that waits or allocates gets its return address as one argument more, by a few
//! instructions in front of it. An address becomes words by `addr2line` where the process is about
//! to end, and only there.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use dhole::CallSite;

/// `$name`, called with `$count` arguments, becomes `$name_from` with the return address behind
/// them. Behind the switch of stacks ([`crate::stacks`]) that is the one of its caller.
macro_rules! with_caller {
    ($($name:literal in $register:literal,)*) => {
        std::arch::global_asm!($(
            ".pushsection .text.dhole_callers, \"ax\", @progbits",
            concat!(".globl ", $name),
            concat!(".type ", $name, ", @function"),
            concat!($name, ":"),
            ".cfi_startproc",
            concat!("mov ", $register, ", [rsp]"),
            "lea r10, [rip + dhole_switched]",
            concat!("cmp ", $register, ", r10"),
            "jne 1f",
            concat!("mov ", $register, ", [rbp + 8]"),
            concat!("1: jmp ", $name, "_from"),
            ".cfi_endproc",
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
        )*);
    };
}

with_caller! {
    "dh_malloc" in "rsi",
    "dh_calloc" in "rdx",
    "dh_realloc" in "rdx",
    "dh_free" in "rsi",
    "dh_strdup" in "rsi",
    "dh_pthread_mutex_lock" in "rsi",
    "dh_pthread_cond_wait" in "rdx",
    "dh_pthread_barrier_wait" in "rsi",
    "dh_pthread_rwlock_rdlock" in "rsi",
    "dh_pthread_rwlock_wrlock" in "rsi",
    "dh_pthread_spin_lock" in "rsi",
    "dh_pthread_join" in "rdx",
    "dh_sem_wait" in "rsi",
    "dh_mtx_lock" in "rsi",
    "dh_cnd_wait" in "rdx",
    "dh_thrd_join" in "rdx",
}

/// A place in the program that nobody has named.
pub(crate) const UNKNOWN: CallSite = CallSite {
    file: "C",
    line: 0,
    column: 0,
};

/// Return addresses that have waited, by their words.
static KNOWN: Mutex<BTreeMap<usize, &'static str>> = Mutex::new(BTreeMap::new());

/// The place in the program behind a call: its address, of which there are as many as calls in the
/// program's text.
pub(crate) fn of(caller: usize) -> CallSite {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = known
        .entry(caller)
        .or_insert_with(|| Box::leak(format!("{caller:#x}").into_boxed_str()));
    CallSite {
        file,
        line: 0,
        column: 0,
    }
}

/// As [`of`], for a block: of functions that allocate and do not know their caller too.
pub(crate) fn of_block(caller: usize) -> CallSite {
    match caller {
        0 => CallSite::runtime("a place that is not known"),
        caller => of(caller),
    }
}

mod linker {
    use std::ffi::c_char;

    unsafe extern "C" {
        pub static __executable_start: c_char;
        pub static etext: c_char;
    }
}

fn is_code(address: usize) -> bool {
    let start = (&raw const linker::__executable_start).addr();
    (start..(&raw const linker::etext).addr()).contains(&address)
}

/// Whether an address is in the program's file: a constant, say.
pub(crate) fn is_program(address: usize) -> bool {
    unsafe extern "C" {
        static end: std::ffi::c_char;
    }
    let start = (&raw const linker::__executable_start).addr();
    (start..(&raw const end).addr()).contains(&address)
}

/// The addresses of code that a text has.
fn addresses(text: &str) -> Vec<(&str, usize)> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric());
    let code = words.filter_map(|word| {
        let address = usize::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        is_code(address).then_some((word, address))
    });
    code.collect()
}

/// A text in which addresses of code have the names of their functions, and files and lines where
/// the program was compiled with `-g`.
pub(crate) fn in_words(text: &str) -> String {
    let found = addresses(text);
    if found.is_empty() {
        return text.to_owned();
    }
    let Ok(program) = std::env::current_exe() else {
        return text.to_owned();
    };
    let mut command = Command::new("addr2line");
    command.args(["-f", "-s", "-C", "-e"]).arg(program);
    // A return address is behind the call.
    command.args(found.iter().map(|(_, at)| format!("{:#x}", at - 1)));
    let Ok(said) = command.stdin(Stdio::null()).stderr(Stdio::null()).output() else {
        return text.to_owned();
    };
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let lines: Vec<&str> = said.lines().collect();
    let mut words = text.to_owned();
    for ((address, _), place) in found.iter().zip(lines.chunks(2)) {
        let [function, line] = place else { continue };
        if *function == "??" || words.contains(&format!("({address})")) {
            continue;
        }
        let function = if *function == "dh_main" {
            "main"
        } else {
            function
        };
        let line = line.split(" (").next().unwrap_or_default();
        let has_line = !line.starts_with('?') && !line.ends_with('?');
        let place = if has_line {
            format!("{function}, {line} ({address})")
        } else {
            format!("{function} ({address})")
        };
        words = words.replace(address, &place);
    }
    words
}
