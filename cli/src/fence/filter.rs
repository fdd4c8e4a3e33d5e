//! The system calls that are not for what runs behind the fence, as a program of the kernel's.
//!
//! `ioctl` with `TIOCSTI` or `TIOCLINUX` puts words into the input of the terminal, which a shell outside would run. The
//! kernel's key rings are inherited, whatever the namespaces. Both are refused as not permitted, also by the numbers
//! that 32-bit programs use.

use seccompiler::{BpfProgram, sock_filter};

/// Whether it is written for this machine.
pub(super) const IS_KNOWN: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The numbers of `ioctl`, and of `add_key`, `request_key` and `keyctl`, for one kind of program.
struct Numbers {
    kind: u32,
    ioctl: &'static [u32],
    keys: &'static [u32],
}

/// x32 has the kind of x86-64, and its numbers have a bit of their own.
const X32: u32 = 0x4000_0000;
/// <https://github.com/torvalds/linux/blob/master/include/uapi/linux/audit.h> has the kinds.
const KNOWN: [Numbers; 4] = [
    Numbers { kind: 0xc000_003e, ioctl: &[16, X32 + 514], keys: &[248, 249, 250, X32 + 248, X32 + 249, X32 + 250] },
    Numbers { kind: 0x4000_0003, ioctl: &[54], keys: &[286, 287, 288] },
    Numbers { kind: 0xc000_00b7, ioctl: &[29], keys: &[217, 218, 219] },
    Numbers { kind: 0x4000_0028, ioctl: &[54], keys: &[309, 310, 311] },
];

/// Where the kernel puts what is asked: the call's number, the kind of program, the lower half of the second argument.
const NUMBER: u32 = 0;
const KIND: u32 = 4;
const REQUEST: u32 = 24;

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

const ALLOW: u32 = 0x7fff_0000;
/// With EPERM.
const REFUSE: u32 = 0x0005_0001;

/// The program.
pub(super) fn program() -> BpfProgram {
    let mut program = Vec::new();
    for Numbers { kind, ioctl, keys } in &KNOWN {
        let mut block = vec![load(NUMBER)];
        for number in *keys {
            block.extend([unless(*number, 1), end(REFUSE)]);
        }
        for number in *ioctl {
            block.extend([unless(*number, 5), load(REQUEST), when(TIOCSTI, 1), unless(TIOCLINUX, 1)]);
            block.extend([end(REFUSE), end(ALLOW)]);
        }
        block.push(end(ALLOW));
        // A block is a few dozen instructions long.
        let length = u8::try_from(block.len()).unwrap_or(u8::MAX);
        program.extend([load(KIND), unless(*kind, length)]);
        program.extend(block);
    }
    program.push(end(REFUSE));
    program
}

fn load(place: u32) -> sock_filter {
    sock_filter { code: 0x20, jt: 0, jf: 0, k: place }
}

/// Passes over so many instructions, unless what was loaded is this.
fn unless(value: u32, over: u8) -> sock_filter {
    sock_filter { code: 0x15, jt: 0, jf: over, k: value }
}

/// Passes over so many instructions, when what was loaded is this.
fn when(value: u32, over: u8) -> sock_filter {
    sock_filter { code: 0x15, jt: over, jf: 0, k: value }
}

fn end(answer: u32) -> sock_filter {
    sock_filter { code: 0x06, jt: 0, jf: 0, k: answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer.
    fn answer(kind: u32, number: u32, request: u32) -> u32 {
        let program = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program.get(at).cloned().unwrap();
            at += 1;
            match (code, k) {
                (0x20, NUMBER) => loaded = number,
                (0x20, KIND) => loaded = kind,
                (0x20, REQUEST) => loaded = request,
                (0x15, _) => at += usize::from(if loaded == k { jt } else { jf }),
                (0x06, _) => return k,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_terminals_input_and_the_key_rings_are_refused_and_all_else_is_allowed() {
        for Numbers { kind, ioctl, keys } in KNOWN {
            for number in ioctl {
                assert_eq!(answer(kind, *number, TIOCSTI), REFUSE);
                assert_eq!(answer(kind, *number, TIOCLINUX), REFUSE);
                assert_eq!(answer(kind, *number, 0x5401), ALLOW, "the terminal's settings");
            }
            for number in keys {
                assert_eq!(answer(kind, *number, 0), REFUSE);
            }
            assert_eq!(answer(kind, 0, TIOCSTI), ALLOW, "another call");
        }
        assert_eq!(answer(1, 0, 0), REFUSE, "a kind that is not known");
    }
}
