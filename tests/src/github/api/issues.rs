//! Issues, their comments, labels.

use serde_json::Value;

use super::rest::Call;
use super::{Good, Refusal, views};

type Answer = Result<Good, Refusal>;

/// `GET .../issues`: pull requests are among them, as GitHub has it. Open ones, unless `state` says otherwise.
pub(crate) fn list(call: &Call<'_>) -> Answer {
    let state = call.asked.query.get("state").unwrap_or("open");
    let labels = call.asked.query.get("labels").unwrap_or_default();
    let labelled = |issue: &Value| {
        let has = |label: &str| issue["labels"].as_array().is_some_and(|of| of.iter().any(|one| one == label));
        labels.is_empty() || labels.split(',').all(has)
    };
    let creator = |issue: &Value| call.wanted("creator", issue["author"].as_str().unwrap_or_default());
    let issues = call.ground.furnishing().list("issues").iter();
    let fitting = issues.filter(|issue| state == "all" || issue["state"] == state);
    let fitting = fitting.filter(|issue| labelled(issue) && creator(issue));
    Ok(Good::List(fitting.map(|issue| views::issue(&call.ground, issue)).collect()))
}

/// `GET .../issues/{number}`.
pub(crate) fn one(call: &Call<'_>) -> Answer {
    Ok(Good::Json(views::issue(&call.ground, call.issue()?)))
}

/// `GET .../issues/{number}/comments`.
pub(crate) fn comments(call: &Call<'_>) -> Answer {
    let issue = call.issue()?;
    let comments = issue["comments"].as_array().into_iter().flatten();
    Ok(Good::List(comments.map(|comment| views::comment(&call.ground, issue, comment)).collect()))
}

/// `GET .../issues/{number}/labels`.
pub(crate) fn labels_of(call: &Call<'_>) -> Answer {
    let labels = views::labels(&call.ground, call.issue()?);
    Ok(Good::List(labels.as_array().cloned().unwrap_or_default()))
}

/// `GET .../labels`.
pub(crate) fn labels(call: &Call<'_>) -> Answer {
    let labels = call.ground.furnishing().list("labels").iter();
    Ok(Good::List(labels.map(|label| views::label(&call.ground, &label["label"])).collect()))
}

impl Call<'_> {
    fn issue(&self) -> Result<&Value, Refusal> {
        let number = self.number(1)?.into();
        self.ground.furnishing().find("issues", "number", &number).ok_or_else(Refusal::not_found)
    }
}
