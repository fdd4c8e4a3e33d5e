//! Compiles the `.proto` files of the previous release, so that the tests can speak as its programs do.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

const PREVIOUS: &str = "wire/proto/previous";
const FILES: [&str; 3] = ["gitdoor/v1/runs.proto", "gitdoor/v1/tokens.proto", "gitdoor/v1/gate.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PREVIOUS}");
    let descriptors = protox::compile(FILES, [PREVIOUS])?;
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    fs::write(folder.join("previous.binpb"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_transport(false)
        .boxed(".gitdoor.v1.Permit.run")
        .compile_fds(descriptors)?;
    Ok(())
}
