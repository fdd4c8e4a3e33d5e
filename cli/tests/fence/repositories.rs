//! git inside: it works, and what it runs or obeys outside stays as it is.

use gitdoor::fence::Plan;

use crate::Place;

const MADE: &str = "git init -q && git commit -q --allow-empty -m first";

#[test]
fn who_commits_is_who_called() {
    let place = Place::new();
    place.outside(MADE);
    assert_eq!(place.inside(&place.plan("echo a >a && git add a && git commit -q -m second")), "");
    assert_eq!(place.outside("git log -1 --format='%an, %ae'"), "A \"B\" C, a@example.com\n");
    // And may be another.
    assert_eq!(place.inside(&place.plan("git config --global user.name D && git config user.name")), "D\n");
}

#[test]
fn what_git_runs_or_obeys_outside_cannot_be_changed() {
    let place = Place::new();
    place.outside(MADE);
    place.write("work/settings", "[alias]\n\tx = status\n");
    place.outside("git config include.path ../settings && mkdir hooks && git config core.hooksPath hooks");
    for line in [
        "echo >>.git/config",
        "git config core.fsmonitor /bin/false",
        "mv .git/config .git/other",
        "mv .git moved",
        "touch .git/hooks/pre-commit",
        "rm -r .git/hooks",
        "echo >>settings",
        "touch hooks/pre-commit",
    ] {
        let plan = place.plan(&format!("{line} 2>/dev/null && echo changed || true"));
        assert_eq!(place.inside(&plan), "", "{line}");
        assert_eq!(place.inside(&Plan { writable_git_config: true, ..place.plan("git config a.b c") }), "");
    }
    assert_eq!(place.outside("git config a.b"), "c\n", "where it is asked for, it can");
}

#[test]
fn what_git_obeys_in_a_folder_below_cannot_be_exchanged_with_the_folder() {
    let place = Place::new();
    place.outside(MADE);
    place.write("work/settings/git", "[alias]\n\tx = status\n");
    place.outside(
        "git config include.path ../settings/git && git config includeIf.onbranch:later.path ../later/git
         git config core.hooksPath tools/hooks",
    );
    for line in [
        "mv settings moved",
        "mv tools moved",
        "touch tools/hooks/pre-commit",
        "mv later moved",
        "echo '[core] fsmonitor = x' >later/git",
    ] {
        let plan = place.plan(&format!("({line}) 2>/dev/null && echo changed || true"));
        assert_eq!(place.inside(&plan), "", "{line}");
    }
}

#[test]
fn a_link_in_the_place_of_settings_or_hooks_is_refused() {
    for (make, link) in [
        ("mv .git/config .git/other && ln -s other .git/config", "work/.git/config"),
        ("rm -rf .git/hooks && mkdir hooks && ln -s ../hooks .git/hooks", "work/.git/hooks"),
        ("mkdir a && ln -s a b && git config core.hooksPath b/hooks", "work/b"),
    ] {
        let place = Place::new();
        place.outside(&format!("{MADE} && {make}"));
        let refusal = place.refusal(&place.plan("true")).to_string();
        assert!(refusal.starts_with(&format!("{} is a symbolic link", place.path(link).display())), "{refusal}");
        place.inside(&Plan { writable_git_config: true, ..place.plan("true") });
    }
}

#[test]
fn a_link_in_the_place_of_a_repository_opens_nothing() {
    let place = Place::new();
    place.write("home/.config/autostart/agent", "x");
    std::os::unix::fs::symlink(place.path("home/.config"), place.path("work/.git")).unwrap();
    let refusal = place.refusal(&place.plan("true")).to_string();
    assert!(refusal.contains("does not lead back"), "{refusal}");
}

#[test]
fn a_folder_of_work_that_calls_itself_a_worktree_opens_nothing_above_it() {
    let place = Place::new();
    place.write("home/projects/other/diary", "x");
    for (name, text) in [(".git", "gitdir: .\n"), ("commondir", "../..\n"), ("gitdir", ".git\n")] {
        place.write(&format!("home/projects/worktrees/mine/{name}"), text);
    }
    let refusal = place.refusal(&Plan { work: place.path("home/projects/worktrees/mine"), ..place.plan("true") });
    assert!(refusal.to_string().contains("does not lead back"), "{refusal}");
}

#[test]
fn another_worktree_is_not_led_to_other_settings() {
    let place = Place::new();
    place.outside(&format!("{MADE} && git worktree add -q ~/tree"));
    for line in ["echo x >.git/worktrees/tree/commondir", "mv .git/worktrees/tree moved", "mv .git/worktrees moved"]
    {
        let plan = place.plan(&format!("({line}) 2>/dev/null && echo changed || true"));
        assert_eq!(place.inside(&plan), "", "{line}");
    }
    place.inside(&place.plan("git worktree add -q another"));
    let of_tree = Plan { work: place.path("home/tree"), ..place.plan("") };
    let line = "mv \"$(git rev-parse --git-dir)\" moved 2>/dev/null && echo changed || true";
    assert_eq!(place.inside(&Plan { command: place.plan(line).command, ..of_tree }), "");
}

#[test]
fn a_branch_is_made_and_pushed_with_its_upstream() {
    let place = Place::new();
    place.outside(MADE);
    place.outside("git init -q --bare up.git && git remote add origin ./up.git && git push -q origin main:dev");
    place
        .inside(&place.plan(
            "git checkout -q -b topic && git push -q -u origin topic && git fetch -q && git checkout -q dev",
        ));
    assert_eq!(place.outside("git -C up.git branch --list topic").trim(), "topic");
}

#[test]
fn a_worktree_has_its_repository_beside_it() {
    let place = Place::new();
    let main = place.path("home/main");
    std::fs::create_dir(&main).unwrap();
    place.outside(&format!("cd {main} && {MADE} && git worktree add -q ../tree", main = crate::quoted(&main)));
    let plan = Plan { work: place.path("home/tree"), ..place.plan("git commit -q --allow-empty -m second") };
    place.inside(&plan);
    assert_eq!(place.outside("git -C \"$HOME/main\" log -1 --format=%s tree"), "second\n");
    let changes =
        ["echo x >.git", "cd ../main/.git && echo x >>config", "echo x >\"$(git rev-parse --git-dir)/commondir\""];
    for line in changes {
        let line = format!("({line}) 2>/dev/null && echo changed || true");
        assert_eq!(place.inside(&Plan { command: place.plan(&line).command, ..plan.clone() }), "", "{line}");
    }
}

#[test]
fn a_file_that_leads_anywhere_opens_nothing() {
    let place = Place::new();
    place.write("home/.ssh/id_ed25519", "x");
    std::fs::create_dir(place.path("home/main")).unwrap();
    place.outside(&format!("cd ~/main && {MADE} && git worktree add -q ../tree"));
    for leads in ["home/.ssh", "home/main/.git", "home/main/.git/worktrees/tree"] {
        place.write("work/.git", &format!("gitdir: {}\n", place.path(leads).display()));
        let refusal = place.refusal(&place.plan("true")).to_string();
        assert!(refusal.contains("does not lead back"), "{leads}: {refusal}");
    }
}

#[test]
fn a_part_of_a_repository_is_refused_by_the_name_of_its_top() {
    let place = Place::new();
    place.outside(MADE);
    let part = place.path("work/part");
    std::fs::create_dir(&part).unwrap();
    let refusal = place.refusal(&Plan { work: part, ..place.plan("true") }).to_string();
    assert!(refusal.contains(&format!("the repository {}:", place.path("work").display())), "{refusal}");
}
