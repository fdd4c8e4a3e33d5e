//! Workflows, their runs, jobs, logs, artifacts and caches.

use std::io::{Cursor, Write as _};

use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::rest::Call;
use super::{Good, Refusal, views};
use crate::github::shape::merged;
use crate::github::storage::{Blob, Content};

type Answer = Result<Good, Refusal>;

/// `GET .../actions/workflows`.
pub(crate) fn workflows(call: &Call<'_>) -> Answer {
    let workflows = call.ground.furnishing().list("workflows").iter();
    Ok(Good::Counted("workflows", workflows.map(|workflow| views::workflow(&call.ground, workflow)).collect()))
}

/// `GET .../actions/workflows/{id or file}`.
pub(crate) fn workflow(call: &Call<'_>) -> Answer {
    Ok(Good::Json(views::workflow(&call.ground, call.workflow(call.path[2])?)))
}

/// `GET .../actions/runs` and `.../actions/workflows/{id or file}/runs`.
pub(crate) fn runs(call: &Call<'_>) -> Answer {
    let workflow = match call.path.as_slice() {
        ["actions", "workflows", named, ..] => Some(call.workflow(named)?["workflow_id"].clone()),
        _ => None,
    };
    let text = |run: &Value, name: &str| run[name].as_str().unwrap_or_default().to_owned();
    let runs = call.ground.furnishing().list("runs").iter().rev();
    let fitting = runs.filter(|run| {
        workflow.as_ref().is_none_or(|id| run["workflow_id"] == *id)
            && call.wanted("branch", &text(run, "head_branch"))
            && call.wanted("event", &text(run, "event"))
            && call.wanted("actor", &text(run, "author"))
            && call.wanted("head_sha", &text(run, "head_sha"))
            && (call.wanted("status", &text(run, "conclusion")) || call.wanted("status", "completed"))
    });
    Ok(Good::Counted("workflow_runs", fitting.map(|run| views::run(&call.ground, run)).collect()))
}

/// `GET .../actions/runs/{id}`.
pub(crate) fn run(call: &Call<'_>) -> Answer {
    Ok(Good::Json(views::run(&call.ground, call.run()?)))
}

/// `GET .../actions/runs/{id}/jobs`.
pub(crate) fn jobs(call: &Call<'_>) -> Answer {
    let run = call.run()?;
    let jobs = call.jobs_of(run).into_iter().map(|job| views::job(&call.ground, run, job));
    Ok(Good::Counted("jobs", jobs.collect()))
}

/// `GET .../actions/jobs/{id}`.
pub(crate) fn job(call: &Call<'_>) -> Answer {
    let (run, job) = call.job()?;
    Ok(Good::Json(views::job(&call.ground, run, job)))
}

/// `GET .../check-runs/{id}/annotations`.
pub(crate) fn annotations(call: &Call<'_>) -> Answer {
    let id = call.number(1)?.into();
    let furnishing = call.ground.furnishing();
    let job = furnishing.find("jobs", "job_id", &id);
    let job = job.or_else(|| furnishing.find("checks", "check_id", &id)).ok_or_else(Refusal::not_found)?;
    let annotation = |facts: &Value| {
        let rest = json!({
            "end_line": facts["start_line"],
            "start_column": null,
            "end_column": null,
            "raw_details": "",
            "blob_href": format!("{}/{}/blob/main/src/lib.rs", call.ground.urls.git, call.repository.name),
        });
        merged(facts, &rest)
    };
    Ok(Good::List(job["annotations"].as_array().into_iter().flatten().map(annotation).collect()))
}

/// `GET .../actions/runs/{id}/logs`: a zip with a file for each job and one for each of its steps.
pub(crate) fn logs(call: &Call<'_>) -> Answer {
    let run = call.run()?;
    let mut files = Vec::new();
    for (index, job) in call.jobs_of(run).into_iter().enumerate() {
        let name = job["job"].as_str().unwrap_or_default();
        files.push((format!("{index}_{name}.txt"), job_text(job)));
        for (number, step) in job["steps"].as_array().into_iter().flatten().enumerate() {
            let step_name = step["step"].as_str().unwrap_or_default();
            files.push((format!("{name}/{}_{step_name}.txt", number + 1), step_text(step)));
        }
    }
    Ok(call.zip(&format!("logs-{}", run["run_id"]), &format!("logs_{}", run["run_id"]), &files))
}

/// `GET .../actions/jobs/{id}/logs`.
pub(crate) fn job_log(call: &Call<'_>) -> Answer {
    let (_, job) = call.job()?;
    let content = Content::Held(job_text(job).into());
    let blob = Blob { file_name: format!("{}.txt", job["job_id"]), media: "text/plain; charset=utf-8", content };
    Ok(call.elsewhere(&format!("job-{}", job["job_id"]), blob))
}

/// `GET .../actions/artifacts` and `.../actions/runs/{id}/artifacts`.
pub(crate) fn artifacts(call: &Call<'_>) -> Answer {
    let run = match call.path.as_slice() {
        ["actions", "runs", ..] => Some(call.run()?["run_id"].clone()),
        _ => None,
    };
    let artifacts = call.ground.furnishing().list("artifacts").iter();
    let fitting = artifacts.filter(|artifact| run.as_ref().is_none_or(|id| artifact["run_id"] == *id));
    let fitting = fitting.filter(|artifact| call.wanted("name", artifact["artifact"].as_str().unwrap_or_default()));
    Ok(Good::Counted("artifacts", fitting.map(|artifact| call.shown(artifact)).collect()))
}

/// `GET .../actions/artifacts/{id}`.
pub(crate) fn artifact(call: &Call<'_>) -> Answer {
    Ok(Good::Json(call.shown(call.artifact()?)))
}

/// `GET .../actions/artifacts/{id}/zip`.
pub(crate) fn artifact_zip(call: &Call<'_>) -> Answer {
    let artifact = call.artifact()?;
    let id = format!("artifact-{}", artifact["artifact_id"]);
    let name = artifact["artifact"].as_str().unwrap_or_default();
    if let Some(length) = artifact["made"].as_u64() {
        let content = Content::Made(length);
        return Ok(
            call.elsewhere(&id, Blob { file_name: format!("{name}.zip"), media: "application/zip", content })
        );
    }
    Ok(call.zip(&id, name, &files_of(artifact)))
}

/// `GET .../actions/caches`.
pub(crate) fn caches(call: &Call<'_>) -> Answer {
    let text = |cache: &Value, name: &str| cache[name].as_str().unwrap_or_default().to_owned();
    let caches = call.ground.furnishing().list("caches").iter();
    let mut fitting: Vec<Value> = caches
        .filter(|cache| {
            let prefix = call.asked.query.get("key").unwrap_or_default();
            text(cache, "key").starts_with(prefix) && call.wanted("ref", &text(cache, "ref"))
        })
        .cloned()
        .collect();
    let by = call.asked.query.get("sort").unwrap_or("last_accessed_at").to_owned();
    fitting.sort_by_key(|cache| (text(cache, &by), cache[&by].as_u64()));
    if call.asked.query.get("direction") != Some("asc") {
        fitting.reverse();
    }
    Ok(Good::Counted("actions_caches", fitting))
}

fn job_text(job: &Value) -> String {
    job["steps"].as_array().into_iter().flatten().map(step_text).collect()
}

/// Each line with the time that GitHub puts before it.
fn step_text(step: &Value) -> String {
    let time = step["started_at"].as_str().unwrap_or_default().trim_end_matches('Z');
    let lines = step["log"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.flat_map(|line| [time, ".0000000Z ", line, "\n"]).collect()
}

fn files_of(artifact: &Value) -> Vec<(String, String)> {
    let files = artifact["files"].as_object().into_iter().flatten();
    files.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned())).collect()
}

fn zip(files: &[(String, String)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, text) in files {
        writer.start_file(name.as_str(), options).expect("memory");
        writer.write_all(text.as_bytes()).expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}

/// `GET .../actions/secrets/public-key`.
pub(crate) fn key_of_secrets(_: &Call<'_>) -> Answer {
    Ok(Good::Json(
        json!({ "key_id": "3380189982652154440", "key": "EyvzKzsIabQvrAqKqPEoOqzVrKpIdAcPXGo3PNHUxgI=" }),
    ))
}

impl Call<'_> {
    /// By id or by the name of its file.
    fn workflow(&self, named: &str) -> Result<&Value, Refusal> {
        let workflows = self.ground.furnishing().list("workflows").iter();
        let file = |workflow: &Value| workflow["workflow_path"].as_str().unwrap_or_default().to_owned();
        let mut fitting = workflows.filter(|workflow| {
            workflow["workflow_id"].as_u64() == named.parse().ok()
                || file(workflow).rsplit('/').next() == Some(named)
        });
        fitting.next().ok_or_else(Refusal::not_found)
    }

    fn run(&self) -> Result<&Value, Refusal> {
        let id = self.number(2)?.into();
        self.ground.furnishing().find("runs", "run_id", &id).ok_or_else(Refusal::not_found)
    }

    fn jobs_of(&self, run: &Value) -> Vec<&Value> {
        let ids = run["jobs"].as_array().into_iter().flatten();
        ids.filter_map(|id| self.ground.furnishing().find("jobs", "job_id", id)).collect()
    }

    /// A job and its run.
    fn job(&self) -> Result<(&Value, &Value), Refusal> {
        let id = self.number(2)?;
        let runs = self.ground.furnishing().list("runs").iter();
        let mut pairs = runs.flat_map(|run| self.jobs_of(run).into_iter().map(move |job| (run, job)));
        pairs.find(|(_, job)| job["job_id"] == id).ok_or_else(Refusal::not_found)
    }

    fn artifact(&self) -> Result<&Value, Refusal> {
        let id = self.number(2)?.into();
        self.ground.furnishing().find("artifacts", "artifact_id", &id).ok_or_else(Refusal::not_found)
    }

    fn shown(&self, artifact: &Value) -> Value {
        let size = artifact["made"].as_u64().unwrap_or_else(|| zip(&files_of(artifact)).len() as u64);
        views::artifact(&self.ground, artifact, size)
    }

    fn zip(&self, id: &str, name: &str, files: &[(String, String)]) -> Good {
        let content = Content::Held(zip(files).into());
        self.elsewhere(id, Blob { file_name: format!("{name}.zip"), media: "application/zip", content })
    }
}
