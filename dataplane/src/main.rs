//! The data plane's program.

fn main() -> std::process::ExitCode {
    gitdoor_dataplane::main(std::env::args_os())
}
