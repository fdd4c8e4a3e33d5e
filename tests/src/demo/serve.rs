//! `--serve`: everything stays up, and a shell is told how to reach it.

use anyhow::Result;
use gitdoor_proto::v1::Identity;
use tokio::signal::unix::{SignalKind, signal};

use crate::world::World;

/// Prints what a shell needs, says `ready`, and stays until SIGINT or SIGTERM.
pub(super) async fn serve() -> Result<()> {
    // Listened for before anything starts: an early one must end it in order, too.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let world = World::builder(std::env::current_exe()?).detached().start().await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.register(Identity::Write).await;
    for (name, value) in exports(&world, &run.bearer) {
        println!("export {name}='{value}'");
    }
    println!("ready");
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    world.finish().await;
    Ok(())
}

/// What makes `https://github.com/` lead to the door, with the bearer as password there and nowhere else.
fn exports(world: &World, bearer: &str) -> Vec<(&'static str, String)> {
    let door = world.url(0);
    let helper =
        "!f() { test \"$1\" = get && echo username=x-access-token && echo \"password=$GITDOOR_BEARER\"; }; f";
    vec![
        ("GITDOOR_BEARER", bearer.to_owned()),
        ("GIT_SSL_CAINFO", world.ca_file().display().to_string()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_CONFIG_COUNT", "2".to_owned()),
        ("GIT_CONFIG_KEY_0", format!("url.{door}/.insteadOf")),
        ("GIT_CONFIG_VALUE_0", "https://github.com/".to_owned()),
        ("GIT_CONFIG_KEY_1", format!("credential.{door}.helper")),
        ("GIT_CONFIG_VALUE_1", helper.to_owned()),
    ]
}
