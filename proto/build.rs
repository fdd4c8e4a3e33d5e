//! Compiles the `.proto` files in Rust, so that no `protoc` is needed on the machine, and keeps what they describe for
//! each listener's reflection.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

/// Messages that carry a secret: their `Debug` is written by hand in `src/secret.rs`.
const SECRET: &[&str] = &[
    "gitdoor.v1.RegisterRunResponse",
    "gitdoor.v1.RotateBearerResponse",
    "gitdoor.v1.MintMirrorTokenResponse",
    "gitdoor.v1.AuthorizeRequest",
    "gitdoor.v1.Token",
];

const RUNS: &str = "gitdoor/v1/runs.proto";
const TOKENS: &str = "gitdoor/v1/tokens.proto";
const GATE: &str = "gitdoor/v1/gate.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile([RUNS, TOKENS, GATE], ["proto"])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .boxed(".gitdoor.v1.Permit.run")
        .skip_debug(SECRET)
        .compile_fds(descriptors)?;
    describe("runs_listener", &[RUNS, TOKENS])?;
    describe("gate_listener", &[GATE])
}

/// Writes the descriptors of a listener. Files that are only imported lose their services: it does not serve them.
fn describe(listener: &str, served: &[&str]) -> Result<(), Box<dyn Error>> {
    let mut descriptors = protox::compile(served, ["proto"])?;
    for file in &mut descriptors.file {
        if !served.contains(&file.name()) {
            file.service.clear();
        }
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    Ok(fs::write(folder.join(format!("{listener}.binpb")), descriptors.encode_to_vec())?)
}
