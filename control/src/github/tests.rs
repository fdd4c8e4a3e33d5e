//! The client against a stand-in for GitHub's API, over real HTTP on loopback.

mod answers;
mod asking;
mod keeping;
mod plain;
mod recording;
mod refusals;
mod settings;

use gitdoor_proto::RepositoryName;

use super::GitHub;
use super::stand_in::{API, now};
use crate::forge::{Forge as _, MintError, Minted, ReadScope, Target};

fn name(text: &str) -> RepositoryName {
    RepositoryName::parse(text).unwrap()
}

fn named(text: &str) -> Target {
    Target::Named(name(text))
}

fn bound() -> Target {
    Target::Bound { id: API, name: name("acme/api") }
}

fn only(names: &[&str]) -> ReadScope {
    ReadScope::Repositories(names.iter().map(|text| name(text)).collect())
}

async fn write(github: &GitHub) -> Result<Minted, MintError> {
    github.write_token(&named("acme/api"), true, now()).await
}
