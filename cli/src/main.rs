//! The `gitdoor` program.

fn main() -> std::process::ExitCode {
    gitdoor::main(std::env::args_os())
}
