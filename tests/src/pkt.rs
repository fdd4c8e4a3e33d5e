//! pkt-lines, to make push bodies by hand and to read what comes back.

/// Ends a section.
pub const FLUSH: &[u8] = b"0000";

/// The object id that means "none", SHA-1.
pub const ZERO: &str = "0000000000000000000000000000000000000000";

/// A pack without objects, SHA-1: what git sends when the other side has everything.
pub const EMPTY_PACK: &[u8] =
    b"PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

/// The capabilities that git asks for in a push.
pub const GIT_CAPABILITIES: &str = "report-status-v2 side-band-64k object-format=sha1 agent=git/2.47.3";

/// One pkt-line.
pub fn line(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    let mut line = format!("{:04x}", data.len() + 4).into_bytes();
    line.extend_from_slice(data);
    line
}

/// The command section of a push: `(old, new, ref)` for each command, the first with the capabilities, and a flush.
pub fn commands(commands: &[(&str, &str, &str)], capabilities: &str) -> Vec<u8> {
    let mut section = Vec::new();
    for (number, (old, new, name)) in commands.iter().enumerate() {
        let tail = if number == 0 { format!("\0 {capabilities}") } else { String::new() };
        section.extend(line(format!("{old} {new} {name}{tail}")));
    }
    section.extend_from_slice(FLUSH);
    section
}

/// Splits bytes into pkt-lines, `None` for a flush. Stops where they are broken.
pub fn split(mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut lines = Vec::new();
    while let Some((length, rest)) = bytes.split_at_checked(4) {
        let length = std::str::from_utf8(length).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        match length {
            Some(0) => {
                lines.push(None);
                bytes = rest;
            }
            Some(length @ 4..) if rest.len() >= length - 4 => {
                let (data, after) = rest.split_at(length - 4);
                lines.push(Some(data.to_vec()));
                bytes = after;
            }
            Some(_) | None => break,
        }
    }
    lines
}

/// What a side-band answer carries in one band.
pub fn band(body: &[u8], band: u8) -> Vec<u8> {
    let packets = split(body).into_iter().flatten();
    packets.filter(|packet| packet.first() == Some(&band)).flat_map(|packet| packet[1..].to_vec()).collect()
}

/// The lines of a report-status, side-band or bare, without their line feeds.
pub fn report(body: &[u8]) -> Vec<String> {
    let banded = band(body, 1);
    let report = if banded.is_empty() { body } else { &banded };
    let lines = split(report).into_iter().flatten();
    lines.map(|line| String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()).collect()
}
