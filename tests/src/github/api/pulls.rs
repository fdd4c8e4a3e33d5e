//! Pull requests, and the checks of their heads.

use serde_json::{Value, json};

use super::rest::Call;
use super::{Good, Refusal, views};
use crate::github::objects::{self, commit_id};

type Answer = Result<Good, Refusal>;

/// `GET .../pulls`.
pub(crate) fn list(call: &Call<'_>) -> Answer {
    let state = call.asked.query.get("state").unwrap_or("open");
    let pulls = call.ground.furnishing().list("pulls").iter().rev();
    let fitting = pulls.filter(|pull| state == "all" || pull["state"] == state).filter(|pull| {
        let text = |name: &str| pull[name].as_str();
        let head =
            format!("{}:{}", text("head_fork").unwrap_or(call.ground.owner()), text("head_ref").unwrap_or(""));
        call.wanted("head", &head) && call.wanted("base", text("base_ref").unwrap_or_default())
    });
    Ok(Good::List(fitting.map(|pull| views::pull(&call.ground, pull)).collect()))
}

/// `GET .../pulls/{number}`, also as a diff or a patch.
pub(crate) fn one(call: &Call<'_>) -> Answer {
    let pull = call.pull()?;
    let sha = |name: &str| pull[name].as_str().unwrap_or_default();
    let (base, head) = (sha("base_sha"), sha("head_sha"));
    let (range, commits) = (format!("{base}...{head}"), format!("{base}..{head}"));
    let folder = &call.repository.folder;
    let bytes = |arguments: &[&str]| objects::read(folder, arguments).unwrap_or_default().into();
    let media = |format: &str| format!("application/vnd.github.v3.{format}; charset=utf-8");
    let accept = call.asked.accept();
    Ok(if accept.contains("diff") {
        Good::Bytes(media("diff"), bytes(&["diff", &range]))
    } else if accept.contains("patch") {
        Good::Bytes(media("patch"), bytes(&["format-patch", "--stdout", &commits]))
    } else {
        Good::Json(views::pull_detail(&call.ground, pull))
    })
}

/// `GET .../pulls/{number}/commits`.
pub(crate) fn commits(call: &Call<'_>) -> Answer {
    let commits = call.pull()?["commit_list"].as_array().into_iter().flatten();
    Ok(Good::List(commits.map(|commit| views::commit(&call.ground, commit)).collect()))
}

/// `GET .../pulls/{number}/files`.
pub(crate) fn files(call: &Call<'_>) -> Answer {
    let pull = call.pull()?;
    let (api, repository) = (&call.ground.urls.api, &call.repository.name);
    let head = pull["head_sha"].as_str().unwrap_or_default();
    let file = |file: &Value| {
        let mut file = file.clone();
        let path = file["filename"].as_str().unwrap_or_default();
        file["contents_url"] = format!("{api}/repos/{repository}/contents/{path}?ref={head}").into();
        file
    };
    Ok(Good::List(pull["file_list"].as_array().into_iter().flatten().map(file).collect()))
}

/// `GET .../pulls/{number}/reviews`.
pub(crate) fn reviews(call: &Call<'_>) -> Answer {
    let pull = call.pull()?;
    let reviews = pull["reviews"].as_array().into_iter().flatten();
    Ok(Good::List(reviews.map(|review| views::review(&call.ground, pull, review)).collect()))
}

/// `GET .../pulls/{number}/comments`: nobody has written beside a line.
pub(crate) fn no_comments(call: &Call<'_>) -> Answer {
    call.pull().map(|_pull| Good::List(Vec::new()))
}

/// `GET .../commits/{ref}/check-runs`.
pub(crate) fn check_runs(call: &Call<'_>) -> Answer {
    let commit = call.commit()?;
    let runs = call.ground.furnishing().list("checks").iter().filter(|check| check["head_sha"] == commit);
    Ok(Good::Counted("check_runs", runs.map(|check| views::check_run(&call.ground, check)).collect()))
}

/// `GET .../check-runs/{id}`.
pub(crate) fn check_run(call: &Call<'_>) -> Answer {
    let found = call.ground.furnishing().find("checks", "check_id", &call.number(1)?.into());
    let check = found.ok_or_else(Refusal::not_found)?;
    Ok(Good::Json(views::check_run(&call.ground, check)))
}

/// `GET .../commits/{ref}/statuses`.
pub(crate) fn statuses(call: &Call<'_>) -> Answer {
    Ok(Good::List(call.statuses()?))
}

/// `GET .../commits/{ref}/status`.
pub(crate) fn combined_status(call: &Call<'_>) -> Answer {
    let statuses = call.statuses()?;
    let state = if statuses.is_empty() { "pending" } else { "success" };
    Ok(Good::Json(json!({
        "state": state,
        "sha": call.commit()?,
        "total_count": statuses.len(),
        "statuses": statuses,
        "repository": views::repository(&call.ground, None),
    })))
}

impl Call<'_> {
    fn pull(&self) -> Result<&Value, Refusal> {
        let number = self.number(1)?.into();
        self.ground.furnishing().find("pulls", "number", &number).ok_or_else(Refusal::not_found)
    }

    fn commit(&self) -> Result<String, Refusal> {
        commit_id(&self.repository.folder, self.path[1]).ok_or_else(Refusal::not_found)
    }

    fn statuses(&self) -> Result<Vec<Value>, Refusal> {
        let commit = self.commit()?;
        let statuses = self.ground.furnishing().list("statuses").iter();
        let of_it = statuses.filter(|status| status["head_sha"] == commit);
        Ok(of_it.map(|status| views::status(&self.ground, status)).collect())
    }
}
