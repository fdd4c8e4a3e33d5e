//! Rewrites of GitHub's URLs that lead past the door. Of two that fit, git takes the longer; of two of one length, the one
//! that it read first: a file's, before those of the environment.

use super::Findings;
use super::git_config::{self, Setting};
use super::surroundings::Surroundings;
use crate::env::FORGE;

/// Looks whether there are some, where the environment leads to a door.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for (forge, setting) in astray(surroundings.settings_in_force()) {
        let file = setting.file.as_ref().map(|file| format!(", in {}", file.display())).unwrap_or_default();
        let key = git_config::shown(&setting.key);
        findings.lead_astray(format!("git is led past the door with {forge}..., by {key}{file}"));
    }
}

/// Those that win over the door's, each with what they are for.
fn astray(settings: &[Setting]) -> Vec<(&'static str, &Setting)> {
    let of_environment = settings.iter().filter(|setting| setting.file.is_none());
    let doors: Vec<_> = of_environment.filter_map(|setting| Some((rewrite(setting)?, setting))).collect();
    let door = doors.into_iter().find(|((_, is_push), setting)| !is_push && FORGE.contains(&&*setting.value));
    let Some(((door, _), _)) = door else { return Vec::new() };
    let others = settings.iter().filter(|setting| setting.file.is_some());
    others
        .filter_map(|setting| {
            let (base, is_push) = rewrite(setting).filter(|(base, _)| !base.starts_with(door))?;
            // The door has no rule for pushes alone: there any wins.
            let wins = |forge: &str| {
                setting.value.starts_with(forge) || (is_push && forge.starts_with(setting.value.as_str()))
            };
            let forge = FORGE.into_iter().find(|forge| !base.is_empty() && wins(forge))?;
            Some((forge, setting))
        })
        .collect()
}

/// Where a rewrite leads, and whether it is for pushes alone.
fn rewrite(setting: &Setting) -> Option<(&str, bool)> {
    let (base, name) = setting.key.strip_prefix("url.")?.rsplit_once('.')?;
    match name {
        "insteadof" => Some((base, false)),
        "pushinsteadof" => Some((base, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewrite_that_git_takes_before_the_doors_leads_past_it() {
        let setting = |file: Option<&str>, key: &str, value: &str| Setting {
            file: file.map(Into::into),
            key: key.into(),
            value: value.into(),
        };
        let door = setting(None, "url.https://door/.insteadof", "https://github.com/");
        for (key, value, leads) in [
            ("url.git@github.com:.insteadof", "https://github.com/", true),
            ("url.git@github.com:.insteadof", "https://github.com/acme/", true),
            ("url.git@github.com:.pushinsteadof", "https://github.com/", true),
            ("url.git@github.com:.pushinsteadof", "https://", true),
            ("url.https://github.com/.insteadof", "git@github.com:", true),
            ("url.git@github.com:.insteadof", "https://", false),
            ("url.git@github.com:.insteadof", "gh:", false),
            ("url.https://door/.insteadof", "https://github.com/", false),
            ("url.https://door/acme/.insteadof", "https://github.com/acme/", false),
            ("remote.origin.url", "https://github.com/", false),
        ] {
            let settings = [setting(Some("/h/.gitconfig"), key, value), door.clone()];
            assert_eq!(astray(&settings).len(), usize::from(leads), "{key} {value}");
            // Without a door, nothing leads past it.
            assert_eq!(astray(&settings[..1]), [], "{key} {value}");
        }
    }
}
