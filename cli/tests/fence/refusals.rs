//! What is refused before anything runs.

use gitdoor::fence::Plan;

use crate::Place;

#[test]
fn a_folder_that_is_or_holds_what_is_hidden_is_refused() {
    let place = Place::new();
    place.write("work/inner/app.pem", "x");
    let hide = vec![place.path("work/inner/app.pem")];
    for (plan, words) in [
        (Plan { work: place.path("home"), ..place.plan("") }, "the working folder"),
        (Plan { work: place.path(""), ..place.plan("") }, "the working folder"),
        (Plan { work: place.path("tmp"), ..place.plan("") }, "the working folder"),
        (Plan { work: "/".into(), ..place.plan("") }, "the working folder"),
        (Plan { work: place.path("none"), ..place.plan("") }, "the working folder"),
        (Plan { show: vec![place.path("home")], ..place.plan("") }, "--show"),
        (Plan { share: vec![place.path("")], ..place.plan("") }, "--share"),
        (Plan { show: vec![place.path("none")], ..place.plan("") }, "--show"),
        (Plan { show: vec!["/proc".into()], ..place.plan("") }, "--show /proc: the fence has a /proc"),
        (
            Plan { share: vec!["/dev".into()], ..place.plan("") },
            "--share or the working folder /dev: the fence has",
        ),
        (Plan { work: "/proc/sys".into(), ..place.plan("") }, "a place outside of both is needed"),
        (Plan { hide: hide.clone(), ..place.plan("") }, "app.pem is in it"),
        (Plan { hide: vec![place.path("work")], ..place.plan("") }, "is in it"),
        (Plan { work: place.path("run"), show: vec![place.path("work/inner")], hide, ..place.plan("") }, "--show"),
    ] {
        let refusal = place.refusal(&plan).to_string();
        assert!(refusal.contains(words), "{plan:?}: {refusal}");
    }
}

#[test]
fn a_program_that_is_run_outside_and_that_the_command_could_exchange_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    for name in ["bwrap", "git", "gh"] {
        let place = Place::new();
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
        if let Some(program) = found {
            symlink(program, place.path("work").join(name)).unwrap();
        } else {
            let program = place.write(&format!("work/{name}"), "#!/bin/sh\n");
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let place = place.first_on_path("work");
        let refusal = place.refusal(&place.plan("true")).to_string();
        assert!(refusal.contains(&format!("work/{name} could be exchanged by the command")), "{refusal}");
    }
}

#[test]
fn a_bubblewrap_that_makes_no_fence_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let line = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    let bwrap = place.write("bin/bwrap", line);
    std::fs::set_permissions(&bwrap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = place.first_on_path("bin");
    let variables = place.variables.iter().map(|(name, value)| (name.into(), value.clone())).collect();
    let caller = gitdoor::fence::Caller::with(variables, place.path(""));
    let refusal = gitdoor::fence::Fence::of(env!("CARGO_BIN_EXE_gitdoor").as_ref(), caller).unwrap_err();
    assert!(refusal.to_string().contains("makes no fence"), "{refusal}");
}

#[test]
fn a_machine_without_bubblewrap_is_told_what_to_install() {
    let mut place = Place::new();
    place.variables.retain(|(name, _)| name != "PATH");
    let variables = place.variables.iter().map(|(name, value)| (name.into(), value.clone())).collect();
    let caller = gitdoor::fence::Caller::with(variables, place.path(""));
    let refusal = gitdoor::fence::Fence::of(env!("CARGO_BIN_EXE_gitdoor").as_ref(), caller).unwrap_err();
    assert!(refusal.to_string().contains("install the distribution's package bubblewrap"), "{refusal}");
}

#[test]
fn a_bubblewrap_that_cannot_is_quoted() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut place = Place::new();
    place.variables.retain(|(name, _)| name != "PATH");
    let bwrap = place.write("bin/bwrap", "#!/bin/sh\necho 'No permissions to create new namespace' >&2; exit 1\n");
    std::fs::set_permissions(&bwrap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let variables = [("PATH".into(), place.path("bin").into()), ("HOME".into(), place.path("home").into())].into();
    let caller = gitdoor::fence::Caller::with(variables, place.path(""));
    let refusal = gitdoor::fence::Fence::of(env!("CARGO_BIN_EXE_gitdoor").as_ref(), caller).unwrap_err();
    assert!(refusal.to_string().ends_with("No permissions to create new namespace"), "{refusal}");
}
