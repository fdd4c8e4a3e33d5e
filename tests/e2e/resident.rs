//! A resident host as `docs/resident.md` sets it up: the document's own commands, run by root and by two threads that are
//! users of their own, against a real control and a real door.

use std::fs;
use std::path::{Path, PathBuf};

use gitdoor_proto::v1::Identity;
use gitdoor_tests::gh::DOOR;
use gitdoor_tests::github::{Fault, Route};
use gitdoor_tests::machine::Machine;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, Secret, World};

use crate::PROGRAM;
use crate::fetch::advance;

const DOCUMENT: &str = include_str!("../../docs/resident.md");
const MIRROR: &str = "/srv/mirrors/acme/api.git";

/// A block of commands of the document.
struct Block {
    heading: &'static str,
    user: &'static str,
    commands: &'static str,
}

/// Every block of shell, in order.
fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut heading = "";
    for (number, part) in DOCUMENT.split("```").enumerate() {
        if number % 2 == 0 {
            heading = part.rsplit_once("\n## ").map_or(heading, |(_, rest)| rest.lines().next().unwrap());
        } else if let Some(block) = part.strip_prefix("sh\n# ") {
            let (user, commands) = block.split_once('\n').unwrap();
            blocks.push(Block { heading, user, commands });
        } else {
            assert!(!part.starts_with("sh"), "a block that says nobody's name: {part}");
        }
    }
    blocks
}

/// The commands of the service, in order.
fn service() -> String {
    let lines = DOCUMENT.lines().filter_map(|line| line.strip_prefix("ExecStart"));
    let commands: Vec<String> =
        lines.map(|line| line.split_once('=').unwrap().1.replace("%I", "acme/api")).collect();
    assert_eq!(commands.len(), 2);
    commands.join("\n")
}

/// The host and what it talks to.
struct Resident {
    world: World,
    machine: Machine,
}

impl Resident {
    /// With a mirror; nothing where the kernel lets nobody make such a host.
    #[expect(clippy::print_stderr, reason = "a test that did nothing says so")]
    async fn start() -> Option<Self> {
        let world = World::builder(PROGRAM).mutual_tls().start().await;
        world.github.create("acme/api");
        let Some(machine) = world.machine(PROGRAM) else {
            eprintln!("skipped: it takes root, or user namespaces with subordinate ids");
            world.finish().await;
            return None;
        };
        for name in ["ca.pem", "mirror.pem", "mirror.key"] {
            let text = fs::read_to_string(world.trust().path(name)).unwrap();
            machine.write(&format!("/root/certs/{name}"), &text);
        }
        let resident = Self { world, machine };
        resident.follow("What the mirror needs to reach control", "").await;
        resident.follow("The mirror", "").await;
        Some(resident)
    }

    /// Runs what the document has under a heading, for this thread.
    async fn follow(&self, heading: &str, thread: &str) {
        let mut followed = 0;
        for block in blocks().into_iter().filter(|block| block.heading == heading) {
            let (user, script) = (block.user.replace("fix-1", thread), self.here(block.commands));
            self.machine.run(&user, &script.replace("fix-1", thread)).await.ok();
            followed += 1;
        }
        assert!(followed > 0, "docs/resident.md has no commands under {heading:?}");
    }

    /// The document's names as they are here. For a thread, GitHub's URLs lead to the door.
    fn here(&self, commands: &str) -> String {
        let github = format!("  {}/acme/api /srv", self.world.github.url());
        commands
            .replace("https://control.example.com:7001", &self.world.runs_address())
            .replace("git.example.com", DOOR)
            .replace("  https://github.com/acme/api /srv", &github)
    }

    /// A thread with its run, as the document makes one.
    async fn thread(&self, name: &str) -> Run {
        let run = self.world.registration(Identity::Write).id(name).send().await.unwrap();
        self.machine.write("/root/bearer", &run.bearer);
        self.follow("A thread", name).await;
        run
    }

    /// Lets the service run once.
    async fn fetch(&self) -> gitdoor_tests::git::Output {
        self.machine.run("root", &service()).await
    }

    /// Moves the upstream's `main`, whose new commit is returned.
    fn change(&self) -> String {
        advance(&self.world.github, "acme/api")
    }

    /// What `main` is in the mirror, as a thread sees it.
    async fn mirrored(&self, thread: &str) -> String {
        let shown = self.machine.run(thread, &format!("git -C {MIRROR} rev-parse refs/heads/main")).await.ok();
        shown.stdout.trim().to_owned()
    }
}

#[tokio::test]
async fn the_document_sets_up_a_mirror_and_threads_that_push_through_the_door() {
    let Some(resident) = Resident::start().await else { return };
    let (machine, github) = (&resident.machine, &resident.world.github);
    let headings: Vec<_> = blocks().iter().map(|block| block.heading).collect();
    assert_eq!(headings[..2], ["What the mirror needs to reach control", "The mirror"]);
    resident.thread("fix-1").await;
    assert_eq!(
        headings[2..],
        ["A thread", "A thread", "A thread", "Threads from before", "The end of a thread"],
        "each is followed here"
    );
    let pushed = machine.run("fix-1", "git -C api rev-parse HEAD").await.ok().stdout;
    assert_eq!(Some(pushed.trim()), github.ref_of("acme/api", "refs/heads/fix-1").as_deref());
    let tip = resident.change();
    resident.fetch().await.ok();
    assert_eq!(resident.mirrored("fix-1").await, tip);
    machine
        .run("fix-1", "git -C api fetch --quiet && git -C api rev-parse origin/main origin/fix-1")
        .await
        .ok()
        .says(&tip);

    let refused = machine.run("fix-1", ". ~/door.sh; cd api && git push origin +HEAD:main").await.code_is(1);
    refused.says("refused: default branch");
    assert_eq!(github.ref_of("acme/api", "refs/heads/main"), Some(tip));
    resident.follow("Threads from before", "fix-1").await;
    resident.follow("The end of a thread", "fix-1").await;
    assert!(!machine.path("/srv/threads/fix-1").exists());
    assert_eq!(resident.world.recorder().hosts(), Vec::<String>::new());
    resident.world.finish().await;
}

#[tokio::test]
async fn no_thread_reads_anothers_bearer_or_asks_control_or_changes_the_mirror() {
    let Some(resident) = Resident::start().await else { return };
    let machine = &resident.machine;
    for thread in ["fix-1", "fix-2"] {
        resident.thread(thread).await;
    }
    for file in ["bearer", "bearer.gh/hosts.yml", "door.sh", "api/.git/config"] {
        let file = format!("/srv/threads/fix-1/{file}");
        machine.run("fix-1", &format!("test -s {file}")).await.ok();
        machine.run("fix-2", &format!("cat {file}")).await.code_is(1).says("Permission denied");
    }
    machine.run("fix-2", "cat /etc/gitdoor/mirror.key").await.code_is(1).says("Permission denied");
    let (_, helper) = DOCUMENT.split_once("'!gitdoor ").unwrap();
    let helper = resident.here(helper.split('\'').next().unwrap()).replace("--credential ", "");
    machine.run("root", &format!("gitdoor {helper} >/dev/null")).await.ok();
    let asked = machine.run("fix-2", &format!("gitdoor {helper}")).await.code_is(64);
    asked.says("--control-tls-key").says("Permission denied").does_not_say("ghs_");
    let pushed = machine.run("fix-2", &format!("cd api && git push --quiet {MIRROR} HEAD:refs/heads/x")).await;
    assert!(pushed.code != Some(0), "{pushed}");

    // Each runs something with a secret in its environment, while another looks.
    let look = "
        as root 'SECRET=hunter2 exec sleep 60' & mirror=$!
        as fix-1 'SECRET=hunter2 exec sleep 60' & thread=$!
        for process in $mirror $thread; do
            until test \"$(cat /proc/$process/comm)\" = sleep; do :; done
            grep --quiet hunter2 /proc/$process/environ
            as fix-2 \"cat /proc/$process/environ\" || echo \"hidden from fix-2\"
        done
        as fix-1 \"grep --quiet hunter2 /proc/$thread/environ\" && echo seen by itself";
    let seen = machine.run("root", look).await.ok().does_not_say("hunter2").says("seen by itself");
    assert_eq!(seen.stdout.matches("hidden from fix-2").count(), 2, "{seen}");
    resident.world.finish().await;
}

#[tokio::test]
async fn the_mirrors_token_is_in_no_file_and_in_no_process_while_it_is_used_and_after() {
    let Some(resident) = Resident::start().await else { return };
    resident.change();
    let asked = || resident.world.github.requests_for(Route::UploadPack).len();
    let before = asked();
    // The answer to what the mirror has and wants: the token was used, and git still holds it.
    resident.world.github.when(Route::UploadPack).skip(1).then(Fault::Silent);
    let looked = async {
        until("it fetches", async || asked() == before + 2).await;
        let tokens = resident.world.token_secrets();
        assert!(!tokens.is_empty());
        assert_nowhere(&tokens, resident.machine.folder());
        let processes = assert_in_no_process(&tokens);
        assert!(processes.iter().any(|name| name.contains("git-remote-http")), "{processes:?}");
    };
    // It ends where it is, as on a machine that loses its power.
    tokio::select! {
        fetched = resident.fetch() => panic!("it fetched: {fetched}"),
        () = looked => {}
    }
    let lock = format!("{MIRROR}/refs/heads/main.lock");
    resident.machine.write(&lock, "");
    resident.machine.write(&format!("{MIRROR}/objects/pack/tmp_pack_x"), "");
    resident.fetch().await.ok();
    assert!(!resident.machine.path(&lock).exists());
    let tip = resident.world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    resident.machine.run("root", &format!("git -C {MIRROR} rev-parse refs/heads/main")).await.ok().says(&tip);
    assert_nowhere(&resident.world.token_secrets(), resident.machine.folder());
    let config = resident.machine.run("root", &format!("git -C {MIRROR} config --list --local")).await.ok();
    assert_eq!(config.stdout.lines().filter(|line| line.starts_with("credential.")).count(), 2, "{config}");
    resident.world.finish().await;
}

#[tokio::test]
async fn what_a_thread_had_before_is_found_and_scrubbed_and_then_it_is_clean() {
    let Some(resident) = Resident::start().await else { return };
    let machine = &resident.machine;
    resident.thread("fix-1").await;
    resident.thread("fix-2").await;
    let doctor = ". ~/door.sh; cd api && gitdoor doctor";
    let old = "https://octo:hunter2-hunter2@github.com";
    let seed = format!("echo {old} >.git-credentials; git -C api remote add old {old}/acme/api");
    machine.run("fix-1", &seed).await.ok();
    let found = machine.run("fix-1", doctor).await.code_is(1);
    found.says("/srv/threads/fix-1/.git-credentials: github.com").says("remote.old.url").does_not_say("hunter2");
    machine.run("fix-2", doctor).await.ok().says("clean  no GitHub credential was found");
    resident.follow("Threads from before", "fix-1").await;
    machine.run("fix-1", doctor).await.ok().says("clean  no GitHub credential was found");
    assert!(!machine.path("/srv/threads/fix-1/.git-credentials").exists());
    resident.world.finish().await;
}

#[tokio::test]
async fn without_control_a_fetch_fails_and_the_mirror_stays_as_it_was() {
    let Some(mut resident) = Resident::start().await else { return };
    resident.thread("fix-1").await;
    let before = resident.mirrored("fix-1").await;
    resident.change();
    resident.world.control().kill().await;
    resident.fetch().await.code_is(128).says("no control could be asked");
    assert_eq!(resident.mirrored("fix-1").await, before);
    resident.world.control().start_again().await;
    resident.fetch().await.ok();
    assert!(resident.mirrored("fix-1").await != before);
    resident.world.finish().await;
}

/// No file below has one of these.
fn assert_nowhere(secrets: &[Secret], folder: &Path) {
    for path in files(folder) {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
        assert!(!secrets.iter().any(|secret| secret.is_in(&text)), "a token is in {}", path.display());
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(kind) if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// No process that can be looked at has one in its arguments or variables. The arguments of all are returned.
fn assert_in_no_process(secrets: &[Secret]) -> Vec<String> {
    let mut arguments = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| {
            let bytes = fs::read(entry.path().join(name)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let (line, variables) = (read("cmdline"), read("environ"));
        for text in [&line, &variables] {
            assert!(!secrets.iter().any(|secret| secret.is_in(text)), "a token is in the process {line}");
        }
        arguments.push(line);
    }
    arguments
}
