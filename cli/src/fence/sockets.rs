//! The sockets that somebody listens at. A file that may only be read can be connected to all the same, and one without
//! a file is seen by all that share the network.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::Caller;

/// Those of this network, as the kernel lists them.
const LIST: &str = "/proc/net/unix";
/// Most of those without a file that are named.
const NAMED: usize = 8;

/// The files of those that are there.
pub(super) fn bound() -> Vec<PathBuf> {
    let list = fs::read_to_string(LIST).unwrap_or_default();
    let there = names(&list).into_iter().filter(|name| Path::new(name).is_absolute());
    let files = there.filter_map(|name| Path::new(name).canonicalize().ok());
    files.filter(|file| fs::metadata(file).is_ok_and(|found| found.file_type().is_socket())).collect()
}

/// Whether the session's bus, with the key ring behind it, is one without a file.
pub(super) fn has_session_bus(caller: &Caller) -> bool {
    let address = caller.variable("DBUS_SESSION_BUS_ADDRESS");
    address.is_some_and(|address| address.to_string_lossy().contains("unix:abstract="))
}

/// Says which can be reached from inside.
pub(super) fn abstract_notes() -> Vec<String> {
    let list = fs::read_to_string(LIST).unwrap_or_default();
    let open: Vec<_> = names(&list).into_iter().filter(|name| name.starts_with('@')).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let more = open.len().saturating_sub(NAMED);
    let names = open.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    vec![format!(
        "abstract sockets can be reached from inside, since this kernel cannot keep them out (Linux 6.12 with Landlock \
         can): {names}{more}"
    )]
}

/// `Num RefCount Protocol Flags Type St Inode Path`, of those that listen. Only the last may have spaces in it.
fn names(list: &str) -> BTreeSet<&str> {
    const LISTENS: u32 = 0x1_0000;
    let lines = list.lines().filter_map(|line| {
        let flags = u32::from_str_radix(line.split_ascii_whitespace().nth(3)?, 16).ok()?;
        let at = line.find(" /").into_iter().chain(line.find(" @")).min()?;
        (flags & LISTENS != 0).then(|| line.get(at + 1..)).flatten()
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_listen_are_read_by_their_names() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            00000000bf5b1d2c: 00000002 00000000 00010000 0001 01  1234 /run/a b/socket\n\
            00000000bf5b1d2d: 00000002 00000000 00010000 0001 01 12345 @/tmp/.X11-unix/X0\n\
            00000000bf5b1d2e: 00000003 00000000 00000000 0001 03 123456 /run/connected\n\
            00000000bf5b1d2f: 00000003 00000000 00010000 0001 01 1234567\n\
            broken\n";
        let expected = ["/run/a b/socket", "@/tmp/.X11-unix/X0"];
        assert_eq!(names(list), expected.into_iter().collect());
    }
}
