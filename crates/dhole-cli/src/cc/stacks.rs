//! Programs whose stacks are shared: what the program's own code calls that is not its own runs on
//! a private stack. So the linker has each such call go through a few instructions.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::object;

/// Functions that only compute, in no lock: they run on whichever stack. And those that use the
/// stack of their caller.
const DIRECT: &str = "\
    memcpy memmove memset memcmp memchr strlen strnlen strcmp strncmp strcpy strncpy strcat \
    strncat strchr strrchr strstr strspn strcspn strcasecmp strncasecmp abs labs atoi atol \
    sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 log log2 log10 pow sqrt cbrt fabs \
    floor ceil round fmod hypot sinf cosf tanf atan2f expf logf powf sqrtf fabsf floorf ceilf \
    __errno_location __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc toupper tolower \
    setjmp _setjmp __sigsetjmp sigsetjmp longjmp siglongjmp vfork __stack_chk_fail \
    __assert_fail";

/// The object files and archives that a line of the linker names.
fn files(words: &[OsString]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut words = words.iter();
    let mut files = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if let Some(folder) = text.strip_prefix("-L") {
            match folder.is_empty() {
                true => folders.extend(words.next().map(PathBuf::from)),
                false => folders.push(folder.into()),
            }
        } else if let Some(name) = text.strip_prefix("-l") {
            let file = format!("lib{name}.a");
            let mut all = folders.iter().map(|folder| folder.join(&file));
            files.extend(all.find(|it| it.exists()));
        } else if text.ends_with(".o") || text.ends_with(".a") {
            files.push(word.into());
        }
    }
    files
}

/// The functions that the program's own object files call, and do not define.
fn called(words: &[OsString], library: &Path) -> BTreeSet<String> {
    let (mut called, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for file in files(words).iter().filter(|file| *file != library) {
        let bytes = std::fs::read(file).unwrap_or_default();
        let objects = object::members(&bytes).unwrap_or_else(|| vec![&bytes]);
        for object in objects.into_iter().filter(|it| object::is_own(it)) {
            called.extend(object::called(object).unwrap_or_default());
            defined.extend(object::defined(object).unwrap_or_default());
        }
    }
    let direct: BTreeSet<&str> = DIRECT.split_whitespace().collect();
    called.retain(|name| !defined.contains(name) && !direct.contains(name.as_str()));
    called
}

/// The words for the linker, and the source of the instructions in assembly.
pub fn switches(words: &[OsString], library: &Path) -> (Vec<OsString>, String) {
    let called = called(words, library);
    let wraps = called
        .iter()
        .map(|name| format!("-Wl,--wrap={name}").into());
    let switch = |name: &String| {
        format!(
            ".globl __wrap_{name}\n.type __wrap_{name}, @function\n__wrap_{name}:\n\
             \tmov $__real_{name}, %r11d\n\tjmp dhole_on_private_stack\n"
        )
    };
    let text = called.iter().map(switch).collect::<String>();
    let source = format!("\t.text\n{text}\t.section .note.GNU-stack,\"\",@progbits\n");
    (wraps.collect(), source)
}
