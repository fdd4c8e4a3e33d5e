//! The repository itself, its files, branches, commits and archives. All of it is read by real git.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::rest::Call;
use super::{Good, Refusal, views};
use crate::github::objects::{self, Entry, blob, commit_id, entries, log};
use crate::github::shape::{merged, shape};
use crate::github::storage::{Blob, Content};

type Answer = Result<Good, Refusal>;

/// `GET /repos/{owner}/{repo}`.
pub(crate) fn repository(call: &Call<'_>) -> Answer {
    let token = call.asked.token;
    let reads = call.repository.private && token.may("contents", "read");
    let secret = reads.then(|| call.secret("temp_clone_token"));
    let mut shown = views::repository(&call.ground, secret.as_deref());
    shown["permissions"] = json!({
        "admin": false,
        "maintain": false,
        "push": token.may("contents", "write"),
        "triage": false,
        "pull": token.may("contents", "read"),
    });
    Ok(Good::Json(shown))
}

/// `GET .../readme`.
pub(crate) fn readme(call: &Call<'_>) -> Answer {
    file(call, "README.md")
}

/// `GET .../license`.
pub(crate) fn license(call: &Call<'_>) -> Answer {
    let mit = json!({
        "key": "mit",
        "name": "MIT License",
        "spdx_id": "MIT",
        "url": format!("{}/licenses/mit", call.ground.urls.api),
        "node_id": "MDc6TGljZW5zZTEz",
    });
    let found = file(call, "LICENSE")?;
    let Good::Json(file) = &found else { return Ok(found) };
    Ok(Good::Json(merged(file, &json!({ "license": mit }))))
}

/// `GET .../contents/{path}`.
pub(crate) fn contents(call: &Call<'_>) -> Answer {
    file(call, &call.path[1..].join("/"))
}

fn file(call: &Call<'_>, path: &str) -> Answer {
    let folder = &call.repository.folder;
    let revision = call.asked.query.get("ref").unwrap_or(&call.repository.default_branch);
    let commit = commit_id(folder, revision).ok_or_else(Refusal::not_found)?;
    let (entry, inside) = entries(folder, &commit, path).ok_or_else(Refusal::not_found)?;
    if entry.kind == "tree" {
        return Ok(Good::List(inside.iter().map(|entry| call.content(entry, revision)).collect()));
    }
    let bytes = blob(folder, &entry.id).ok_or_else(Refusal::not_found)?;
    if call.asked.accept().contains("raw") {
        return Ok(Good::Bytes("application/vnd.github.v3.raw; charset=utf-8".to_owned(), bytes.into()));
    }
    let mut shown = call.content(&entry, revision);
    // As GitHub does, in lines of 60 characters.
    let coded = STANDARD.encode(&bytes);
    let lines = coded.as_bytes().chunks(60).map(|line| format!("{}\n", String::from_utf8_lossy(line)));
    shown["content"] = lines.collect::<String>().into();
    shown["encoding"] = "base64".into();
    Ok(Good::Json(shown))
}

/// `GET .../branches`.
pub(crate) fn branches(call: &Call<'_>) -> Answer {
    let listed =
        objects::read(&call.repository.folder, &["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"]);
    let listed = String::from_utf8(listed.unwrap_or_default()).unwrap_or_default();
    let shown = listed.lines().filter_map(|name| call.branch(name)).map(|(mut branch, commit)| {
        branch["commit"] = json!({ "sha": commit["sha"], "url": commit["url"] });
        branch
    });
    Ok(Good::List(shown.collect()))
}

/// `GET .../branches/{branch}`.
pub(crate) fn branch(call: &Call<'_>) -> Answer {
    let (mut branch, commit) = call.branch(&call.path[1..].join("/")).ok_or_else(Refusal::not_found)?;
    branch["commit"] = commit;
    Ok(Good::Json(branch))
}

/// `GET .../commits`.
pub(crate) fn commits(call: &Call<'_>) -> Answer {
    let revision = call.asked.query.get("sha").unwrap_or(&call.repository.default_branch);
    let commit = commit_id(&call.repository.folder, revision).ok_or_else(Refusal::not_found)?;
    let path = call.asked.query.get("path").unwrap_or(".");
    let listed = log(&call.repository.folder, &[&commit, "--", path]);
    Ok(Good::List(listed.iter().map(|facts| views::commit(&call.ground, facts)).collect()))
}

/// `GET .../commits/{ref}`.
pub(crate) fn commit(call: &Call<'_>) -> Answer {
    let folder = &call.repository.folder;
    let commit = commit_id(folder, call.path[1])
        .ok_or_else(|| Refusal::new(422, &format!("No commit found for SHA: {}", call.path[1])))?;
    let facts = log(folder, &["-1", &commit]).pop().ok_or_else(Refusal::not_found)?;
    let mut shown = views::commit(&call.ground, &facts);
    if let Some(parent) = facts["parent_ids"][0].as_str() {
        let files = objects::changed_files(folder, parent, &commit);
        let sum = |name: &str| files.iter().filter_map(|file| file[name].as_u64()).sum::<u64>();
        shown["stats"] = json!({
            "additions": sum("additions"),
            "deletions": sum("deletions"),
            "total": sum("changes"),
        });
        shown["files"] = files.into();
    }
    Ok(Good::Json(shown))
}

/// `GET .../tarball/{ref}` and `.../zipball/{ref}`.
pub(crate) fn archive(call: &Call<'_>) -> Answer {
    let (format, extension, media) = match call.path[0] {
        "zipball" => ("zip", "zip", "application/zip"),
        _ => ("tar.gz", "tar.gz", "application/x-gzip"),
    };
    let folder = &call.repository.folder;
    let given = call.path[1..].join("/");
    let revision = if given.is_empty() { &call.repository.default_branch } else { &given };
    let commit = commit_id(folder, revision).ok_or_else(Refusal::not_found)?;
    let name = format!("{}-{}", call.repository.name.replace('/', "-"), commit.get(..7).unwrap_or_default());
    let format = format!("--format={format}");
    let bytes = objects::read(folder, &["archive", &format, &format!("--prefix={name}/"), &commit]);
    let bytes = bytes.ok_or_else(Refusal::not_found)?;
    let content = Content::Held(bytes.into());
    Ok(call.elsewhere(&name, Blob { file_name: format!("{name}.{extension}"), media, content }))
}

impl Call<'_> {
    /// The secret of this repository for a purpose.
    fn secret(&self, purpose: &str) -> String {
        self.asked.state.secrets.of(&format!("{purpose} of {}", self.repository.id))
    }

    /// A redirect to a blob.
    pub(crate) fn elsewhere(&self, id: &str, blob: Blob) -> Good {
        Good::Elsewhere(self.asked.state.signed_link(&format!("{}-{id}", self.repository.id), blob))
    }

    /// A file or a folder, as `contents` shows it.
    fn content(&self, entry: &Entry, revision: &str) -> Value {
        let Entry { kind, id, size, path } = entry;
        let file = kind == "blob";
        let raw = format!("https://raw.githubusercontent.com/{}/{revision}/{path}", self.repository.name);
        let token = || self.secret(&format!("download of {path}"));
        let download = match (file, self.repository.private) {
            (false, _) => None,
            (true, false) => Some(raw),
            (true, true) => Some(format!("{raw}?token={}", token())),
        };
        let facts = json!({
            "file_name": path.rsplit('/').next(),
            "path": path,
            "sha": id,
            "size": size,
            "ref": revision,
            "object": kind,
            "objects": format!("{kind}s"),
            "type": if file { "file" } else { "dir" },
            "download_url": download,
        });
        self.ground.fill(shape!("content"), &facts)
    }

    /// A branch without its commit, and that commit.
    fn branch(&self, name: &str) -> Option<(Value, Value)> {
        let commit = commit_id(&self.repository.folder, &format!("refs/heads/{name}"))?;
        let facts = log(&self.repository.folder, &["-1", &commit]).pop()?;
        let protected = name == self.repository.default_branch;
        Some((json!({ "name": name, "protected": protected }), views::commit(&self.ground, &facts)))
    }
}
