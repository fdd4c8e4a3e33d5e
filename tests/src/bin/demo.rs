//! Every part of gitdoor in one program: `cargo demo` shows them at work, and the tests start each as a process.

use std::ffi::OsString;
use std::process::ExitCode;

/// A part's `main`.
type Part = fn(Vec<OsString>) -> ExitCode;

/// How each part is asked for, what it is called, and where it begins.
const PARTS: [(&str, &str, Part); 3] = [
    ("__control", "gitdoor-control", gitdoor_control::main),
    ("__dataplane", "gitdoor-dataplane", gitdoor_dataplane::main),
    ("__gitdoor", "gitdoor", gitdoor::main),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    for (role, name, part) in PARTS {
        if first.as_deref().is_some_and(|first| first == role) {
            return part(std::iter::once(name.into()).chain(arguments).collect());
        }
    }
    gitdoor_tests::demo::main(first.into_iter().chain(arguments))
}
