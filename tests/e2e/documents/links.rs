//! What a page names of this repository is there: links, files, and parts of other pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::ROOT;

/// Text that looks like a file of the repository and is none.
const NO_FILES: [&str; 2] = ["deploy/cloudflare/node_modules", ".proto"];

/// What is kept in the repository: each file, and each folder of one.
struct Kept {
    files: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

impl Kept {
    fn read() -> Self {
        let mut command = Command::new("git");
        // Whoever runs this need not own the checkout.
        let listed = command.args(["-c", "safe.directory=*", "-C", ROOT, "ls-files", "-z"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let files: BTreeSet<PathBuf> = listed.split_terminator('\0').map(PathBuf::from).collect();
        let folders = files.iter().flat_map(|file| file.ancestors().skip(1)).map(Path::to_owned).collect();
        assert!(files.len() > 100, "what is here is not known to git");
        Self { files, folders }
    }

    /// Pages, with their text.
    fn pages(&self) -> Vec<(&Path, String)> {
        let pages = self.files.iter().filter(|file| is_page(file));
        pages
            .filter_map(|page| Some((page.as_path(), fs::read_to_string(Path::new(ROOT).join(page)).ok()?)))
            .collect()
    }

    /// What a page means by a path: something beside it, or from the top.
    fn named(&self, page: &Path, path: &str) -> Option<PathBuf> {
        let beside = page.parent().unwrap().join(path);
        [beside, PathBuf::from(path)].iter().filter_map(|path| plain(path)).find(|path| self.has(path))
    }

    fn has(&self, path: &Path) -> bool {
        self.files.contains(path) || self.folders.contains(path)
    }

    /// Whether some file's path ends like this: where a page names several, the later ones are short.
    fn has_end(&self, path: &str) -> bool {
        self.files.iter().chain(&self.folders).any(|kept| kept.ends_with(path))
    }

    /// Whether this text is meant as one of our files.
    fn is_meant(&self, text: &str) -> bool {
        let is_path = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
        let first = text.split('/').next().unwrap_or_default();
        let of_ours = text.contains('/') && !first.is_empty() && self.folders.contains(Path::new(first));
        let ends = [".md", ".rs", ".proto", ".cfg", ".jsonc"].iter().any(|end| text.ends_with(end));
        is_path && (of_ours || ends || text.starts_with("../")) && !NO_FILES.contains(&text)
    }
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

/// Without `..`; none for what leads out.
fn plain(path: &Path) -> Option<PathBuf> {
    path.components().try_fold(PathBuf::new(), |mut path, part| match part {
        Component::Normal(name) => Some(path.join(name)),
        Component::CurDir => Some(path),
        Component::ParentDir => path.pop().then_some(path),
        Component::RootDir | Component::Prefix(_) => None,
    })
}

/// The text without its blocks of commands.
fn prose(text: &str) -> String {
    let mut is_block = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Where the relative links lead.
fn links(prose: &str) -> impl Iterator<Item = &str> {
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://"))
}

/// What stands in backticks, with what is before and behind it.
fn quoted(prose: &str) -> Vec<(&str, &str, &str)> {
    let parts: Vec<&str> = prose.split('`').collect();
    parts.windows(3).step_by(2).map(|parts| (parts[0], parts[1], parts[2])).collect()
}

/// The part of a page that is named beside it: `page.md` ("Part"), or "Part" in `page.md`.
fn part<'a>(before: &'a str, behind: &'a str) -> Option<&'a str> {
    let after = behind.trim_start().strip_prefix("(\"").and_then(|rest| rest.split('"').next());
    let named = || before.trim_end().strip_suffix("\" in")?.rsplit('"').next();
    after.or_else(named)
}

/// Whether a page has a part of this name: a heading, or a paragraph that begins with it.
fn has_part(text: &str, name: &str) -> bool {
    let name = name.replace('\n', " ");
    text.lines().any(|line| {
        let heading = line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim());
        heading.is_some_and(|heading| heading == name) || line.contains(&format!("**{name}"))
    })
}

#[test]
fn every_link_and_every_file_and_part_that_a_page_names_is_there() {
    let kept = Kept::read();
    let (mut wrong, mut parts) = (Vec::new(), 0);
    for (page, text) in kept.pages() {
        let prose = prose(&text);
        let dead = links(&prose).filter(|link| kept.named(page, link.split('#').next().unwrap()).is_none());
        wrong.extend(dead.map(|link| format!("{}: a link to {link}", page.display())));
        for (before, name, behind) in quoted(&prose) {
            if !kept.is_meant(name) {
                continue;
            }
            let Some(file) = kept.named(page, name) else {
                if is_page(Path::new(name)) || !kept.has_end(name) {
                    wrong.push(format!("{}: {name}", page.display()));
                }
                continue;
            };
            let Some(part) = part(before, behind).filter(|_| is_page(Path::new(name))) else { continue };
            parts += 1;
            if !has_part(&fs::read_to_string(Path::new(ROOT).join(&file)).unwrap(), part) {
                wrong.push(format!("{}: \"{part}\" in {name}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "not there: {wrong:#?}");
    assert!(parts > 5, "{parts}");
}

#[test]
fn every_page_is_named_by_another() {
    let kept = Kept::read();
    let pages = kept.pages();
    for (page, _) in pages.iter().filter(|(page, _)| page.components().count() > 1) {
        let is_named = pages.iter().filter(|(other, _)| other != page).any(|(other, text)| {
            let prose = prose(text);
            let names: Vec<&str> =
                quoted(&prose).into_iter().map(|(_, name, _)| name).chain(links(&prose)).collect();
            names.iter().any(|name| kept.named(other, name).is_some_and(|named| named == *page))
        });
        assert!(is_named, "no page names {}", page.display());
    }
}

#[test]
fn what_is_not_there_is_seen() {
    let kept = Kept::read();
    let page = Path::new("docs/shim.md");
    for name in ["operate.md", "../README.md", "deploy/nginx/gitdoor.conf", "backends", "docs/shim.md"] {
        assert!(kept.named(page, name).is_some(), "{name}");
    }
    for name in ["nowhere.md", "../operate.md", "../../README.md", "deploy/nginx/nowhere.conf", "/etc/passwd"] {
        assert!(kept.named(page, name).is_none(), "{name}");
    }
    assert!(kept.is_meant("nowhere.md") && kept.is_meant("deploy/nowhere") && !kept.is_meant("hosts.yml"));
    assert!(has_part("# A page\n\n## A part\n", "A part") && !has_part("## A part\n", "A"));
    assert_eq!(part("see \"A part\" in ", ""), Some("A part"));
    assert_eq!(part("", " (\"A part\")"), Some("A part"));
    assert_eq!(links(&prose("[a](b)\n```\n[c](d)\n```\n[e](https://f)")).collect::<Vec<_>>(), ["b"]);
}
