//! `--serve`: everything stays up, and a shell is told how to reach it.

use anyhow::Result;
use gitdoor_proto::v1::Identity;
use tokio::signal::unix::{SignalKind, signal};

use crate::gh::{DOOR, write_hosts};
use crate::world::World;

/// Prints what a shell needs, says `ready`, and stays until SIGINT or SIGTERM.
pub(super) async fn serve() -> Result<()> {
    // Listened for before anything starts: an early one must end it in order, too.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let world = World::builder(std::env::current_exe()?).detached().control_flag("--read-statuses").start().await;
    world.github.seed("acme/api").furnished().create();
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

/// What makes `https://github.com/` lead to the door, and gh take the door for its host. Both call it by one name, so gh
/// finds its host in a clone's remotes. Only the proxy can tell the address of that name; whatever else the shell asks
/// for by HTTPS ends at the proxy, with a 404. `GITDOOR_URL` is the same door, for requests by hand.
fn exports(world: &World, bearer: &str) -> Vec<(&'static str, String)> {
    let door = world.url(0);
    let authorities = world.ca_file().display().to_string();
    let settings = world.new_home().join("gh");
    write_hosts(&settings, DOOR, bearer);
    let helper =
        "!f() { test \"$1\" = get && echo username=x-access-token && echo \"password=$GITDOOR_BEARER\"; }; f";
    vec![
        ("GITDOOR_URL", door.clone()),
        ("GITDOOR_BEARER", bearer.to_owned()),
        ("GIT_SSL_CAINFO", authorities.clone()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
        ("GIT_CONFIG_COUNT", "3".to_owned()),
        ("GIT_CONFIG_KEY_0", format!("url.https://{DOOR}/.insteadOf")),
        ("GIT_CONFIG_VALUE_0", "https://github.com/".to_owned()),
        ("GIT_CONFIG_KEY_1", format!("credential.https://{DOOR}.helper")),
        ("GIT_CONFIG_VALUE_1", helper.to_owned()),
        ("GIT_CONFIG_KEY_2", format!("credential.{door}.helper")),
        ("GIT_CONFIG_VALUE_2", helper.to_owned()),
        ("GH_HOST", DOOR.to_owned()),
        ("GH_CONFIG_DIR", settings.display().to_string()),
        ("GH_PROMPT_DISABLED", "1".to_owned()),
        ("GH_NO_UPDATE_NOTIFIER", "1".to_owned()),
        ("SSL_CERT_FILE", authorities),
        ("HTTPS_PROXY", world.recorder().url()),
        ("NO_PROXY", "localhost,127.0.0.1".to_owned()),
    ]
}
