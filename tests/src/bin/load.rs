//! Load for a door: `cargo run --release -p gitdoor-tests --bin load -- --help`.

fn main() -> std::process::ExitCode {
    gitdoor_tests::load::main(std::env::args_os())
}
