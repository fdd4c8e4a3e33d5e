//! Compiles the `.proto` files in Rust, so that no `protoc` is needed on the machine.

use std::error::Error;

/// Messages that carry a secret: their `Debug` is written by hand in `src/secret.rs`.
const SECRET: &[&str] = &[
    "gitdoor.v1.RegisterRunResponse",
    "gitdoor.v1.RotateBearerResponse",
    "gitdoor.v1.AuthorizeRequest",
    "gitdoor.v1.Token",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = ["proto/gitdoor/v1/runs.proto", "proto/gitdoor/v1/gate.proto"];
    let descriptors = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .boxed(".gitdoor.v1.Permit.run")
        .skip_debug(SECRET)
        .compile_fds(descriptors)?;
    Ok(())
}
