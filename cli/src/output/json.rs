//! Answers as JSON: one object on one line, times in RFC 3339, `null` for what is absent.

use serde::Serialize;
use serde_json::json;

use crate::answer::mirror::{Minted, MirrorToken};
use crate::answer::{Issued, Run, Shown};

/// A run and its new bearer.
pub(super) fn issued(issued: &Issued) -> String {
    let Issued { run, bearer } = issued;
    line(&json!({
        "run_id": run.run_id,
        "bearer": bearer.expose(),
        "expires_at": run.expires_at,
        "repository": run.repository,
    }))
}

/// A run.
pub(super) fn run(run: &Run) -> String {
    line(run)
}

/// A run and its pushes.
pub(super) fn shown(shown: &Shown) -> String {
    line(shown)
}

/// All runs.
pub(super) fn listed(runs: &[Run]) -> String {
    #[derive(Serialize)]
    struct Listed<'a> {
        runs: &'a [Run],
    }
    line(&Listed { runs })
}

/// A token for a mirror.
pub(super) fn minted(minted: &Minted) -> String {
    line(&json!({
        "token": minted.expose(),
        "expires_at": minted.row.expires_at,
        "repository": minted.row.repository,
    }))
}

/// The tokens for mirrors that were handed out.
pub(super) fn mirror_tokens(rows: &[MirrorToken]) -> String {
    #[derive(Serialize)]
    struct Listed<'a> {
        mirror_tokens: &'a [MirrorToken],
    }
    line(&Listed { mirror_tokens: rows })
}

/// A value on a line of its own.
#[expect(clippy::expect_used, reason = "the values have string keys and no fallible serializer of their own")]
pub(super) fn line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).expect("a plain value is JSON");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use gitdoor_proto::v1;
    use serde_json::Value;

    use super::*;
    use crate::answer::mirror::tests as mirror;
    use crate::answer::tests::{at, run as message};

    fn keys(line: &str) -> Vec<String> {
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let Value::Object(object) = serde_json::from_str(line).unwrap() else { panic!("no object: {line}") };
        let mut keys: Vec<String> = object.keys().cloned().collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_registration_is_these_four_fields() {
        let bearer = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
        let line = issued(&Issued::read(Some(message()), bearer, "r1").unwrap());
        assert_eq!(keys(&line), ["bearer", "expires_at", "repository", "run_id"]);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["bearer"], bearer);
        assert_eq!(value["expires_at"], "2027-01-15T08:50:00Z");
        assert_eq!(value["repository"], "acme/api");
    }

    #[test]
    fn a_run_is_shown_with_its_pushes_and_null_for_what_is_absent() {
        let pushed = v1::PushedRef { ref_name: b"refs/heads/\xff".to_vec(), ..Default::default() };
        let push = v1::Push {
            push_id: "p1".into(),
            outcome: v1::PushOutcome::Open.into(),
            request_bytes: 7,
            opened_at: at(1_800_000_100),
            refs: vec![pushed],
            ..Default::default()
        };
        let unbound = v1::Run { binding: None, ..message() };
        let line = shown(&Shown::read(v1::GetRunResponse { run: Some(unbound), pushes: vec![push] }).unwrap());
        assert_eq!(
            line,
            "{\"run_id\":\"r1\",\"identity\":\"write\",\"state\":\"live\",\"repository\":null,\
             \"repository_id\":null,\"default_branch\":null,\"expires_at\":\"2027-01-15T08:50:00Z\",\"adopted_at\":null,\"pushes\":[\
             {\"push_id\":\"p1\",\"request_id\":\"\",\"repository\":\"\",\"outcome\":\"open\",\"request_bytes\":7,\
             \"opened_at\":\"2027-01-15T08:01:40Z\",\"closed_at\":null,\"refs\":[{\"ref_name\":\"refs/heads/\u{fffd}\",\
             \"old_oid\":\"\",\"new_oid\":\"\",\"refusal\":null}]}]}\n"
        );
    }

    #[test]
    fn a_mirrors_token_is_these_three_fields_and_a_row_of_the_ledger_these_eight() {
        let asked = gitdoor_proto::RepositoryName::parse("acme/api").unwrap();
        let line = minted(&Minted::read(mirror::minted(), &asked).unwrap());
        assert_eq!(
            line,
            "{\"expires_at\":\"2027-01-15T09:00:00Z\",\"repository\":\"acme/api\",\"token\":\"ghs_hush\"}\n"
        );
        assert_eq!(
            mirror_tokens(&[MirrorToken::read(mirror::row()).unwrap()]),
            "{\"mirror_tokens\":[{\"mirror_token_id\":\"m1\",\"repository\":\"acme/api\",\"repository_id\":42,\
             \"token_id\":\"0123456789abcdef\",\"asked_by\":null,\"minted_at\":\"2027-01-15T08:00:00Z\",\
             \"handed_out_at\":\"2027-01-15T08:01:40Z\",\"expires_at\":\"2027-01-15T09:00:00Z\"}]}\n"
        );
    }

    #[test]
    fn a_list_is_one_object() {
        assert_eq!(listed(&[]), "{\"runs\":[]}\n");
        let value: Value = serde_json::from_str(&listed(&[Run::read(Some(message())).unwrap()])).unwrap();
        assert_eq!(value["runs"][0]["repository_id"], 42);
        assert_eq!(value["runs"][0].as_object().unwrap().len(), 8);
    }
}
