//! The program `gitdoor-control`.

fn main() -> std::process::ExitCode {
    gitdoor_control::main(std::env::args_os())
}
