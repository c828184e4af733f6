//! Where a memory can lie that has the same addresses in all processes.

use std::ops::Range;

use dhole_space::Mapping;

/// What is in the way of so many bytes at each of some addresses, in words; empty where nothing
/// is.
pub(crate) fn obstacles(bases: &[usize], bytes: usize) -> Vec<String> {
    bases.iter().map(|base| obstacle(*base, bytes)).collect()
}

fn obstacle(base: usize, bytes: usize) -> String {
    let place = format!("{bytes} bytes at {base:#x}");
    match Mapping::reserve(Some(base), bytes) {
        Err(cause) => {
            let lies = what_lies_in(base..base.saturating_add(bytes));
            format!("{place}: {}", lies.unwrap_or_else(|| cause.to_string()))
        }
        Ok(mapped) => match mapped.start().addr().get() {
            at if at == base => String::new(),
            at => format!("{place}: the system gives {at:#x}"),
        },
    }
}

/// The first mapping of this process that has addresses in common with some, in words.
fn what_lies_in(wanted: Range<usize>) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |it| usize::from_str_radix(it, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        let meets = start < wanted.end && wanted.start < end;
        let name = rest.split_ascii_whitespace().nth(4);
        let name = name.unwrap_or("memory without a name");
        meets.then(|| format!("{start:#x} to {end:#x} is {name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_named() {
        let here = what_is_in_the_way_is_named as fn() as usize;
        // Below all that the system chooses by itself, whatever other tests map meanwhile.
        let low = 0x20000;
        let said = obstacles(&[here / 4096 * 4096, low], 4096);
        let name = std::env::current_exe().expect("a name");
        let name = name.display().to_string();
        assert!(
            said[0].starts_with("4096 bytes at 0x") && said[0].ends_with(&name),
            "{said:?}"
        );
        assert_eq!(said[1], "");
        // An address that no process has.
        let beyond = obstacles(&[0x7fff_ffff_f000], 1 << 30);
        assert!(beyond[0].contains("at 0x7ffffffff000: "), "{beyond:?}");
    }
}
