//! Releases and their assets.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::reply::hex;
use super::rest::Call;
use super::{Good, Refusal, views};
use crate::github::furnished::{ASSET, Ground};
use crate::github::shape::{merged, shape};
use crate::github::storage::{Blob, Content};

type Answer = Result<Good, Refusal>;

/// `GET .../releases`.
pub(crate) fn list(call: &Call<'_>) -> Answer {
    let releases = call.ground.furnishing().list("releases").iter().rev();
    Ok(Good::List(releases.map(|release| release_view(&call.ground, release)).collect()))
}

/// `GET .../releases/latest`.
pub(crate) fn latest(call: &Call<'_>) -> Answer {
    call.release("latest", &true.into()).map(Good::Json)
}

/// `GET .../releases/tags/{tag}`.
pub(crate) fn by_tag(call: &Call<'_>) -> Answer {
    call.release("tag", &call.path[2].into()).map(Good::Json)
}

/// `GET .../releases/{id}`.
pub(crate) fn by_id(call: &Call<'_>) -> Answer {
    call.release("release_id", &call.number(1)?.into()).map(Good::Json)
}

/// `GET .../releases/{id}/assets`.
pub(crate) fn assets(call: &Call<'_>) -> Answer {
    let release = call.release("release_id", &call.number(1)?.into())?;
    Ok(Good::List(release["assets"].as_array().cloned().unwrap_or_default()))
}

/// `GET .../releases/assets/{id}`: the bytes lie elsewhere.
pub(crate) fn asset(call: &Call<'_>) -> Answer {
    let id = call.number(2)?;
    let releases = call.ground.furnishing().list("releases").iter();
    let mut pairs = releases
        .flat_map(|release| release["assets"].as_array().into_iter().flatten().map(move |asset| (release, asset)));
    let (release, asset) = pairs.find(|(_, asset)| asset["asset_id"] == id).ok_or_else(Refusal::not_found)?;
    if !call.asked.accept().contains("octet-stream") {
        return Ok(Good::Json(asset_view(&call.ground, release, asset)));
    }
    let file_name = asset["asset"].as_str().unwrap_or_default().to_owned();
    let blob = Blob { file_name, media: "application/octet-stream", content: Content::Held(ASSET.into()) };
    Ok(call.elsewhere(&format!("asset-{id}"), blob))
}

impl Call<'_> {
    fn release(&self, field: &str, value: &Value) -> Result<Value, Refusal> {
        let found = self.ground.furnishing().find("releases", field, value).ok_or_else(Refusal::not_found)?;
        Ok(release_view(&self.ground, found))
    }
}

fn release_view(ground: &Ground, release: &Value) -> Value {
    let assets = release["assets"].as_array().into_iter().flatten();
    let assets: Value = assets.map(|asset| asset_view(ground, release, asset)).collect();
    let known = json!({ "assets_json": assets, "user": author(ground, release) });
    ground.fill(shape!("release"), &merged(release, &known))
}

fn asset_view(ground: &Ground, release: &Value, asset: &Value) -> Value {
    let known = json!({
        "size": ASSET.len(),
        "digest": format!("sha256:{}", hex(&Sha256::digest(ASSET))),
        "user": author(ground, release),
    });
    ground.fill(shape!("asset"), &merged(&merged(release, asset), &known))
}

fn author(ground: &Ground, release: &Value) -> Value {
    views::user(&ground.urls, release["author"].as_str().unwrap_or_default())
}
