//! Roles and calls.

use tonic::Code;

use crate::authority::Authority;
use crate::control::{Control, call};

/// Each call, at which listener, and who may make it.
const CALLS: &[(&str, &str, &[&str])] = &[
    ("runs", "/gitdoor.v1.Runs/RegisterRun", &["bot"]),
    ("runs", "/gitdoor.v1.Runs/RotateBearer", &["bot"]),
    ("runs", "/gitdoor.v1.Runs/RevokeRun", &["bot", "ops"]),
    ("runs", "/gitdoor.v1.Runs/GetRun", &["bot", "ops"]),
    ("runs", "/gitdoor.v1.Runs/ListRuns", &["bot", "ops"]),
    ("runs", "/gitdoor.v1.Runs/NoSuchCall", &[]),
    ("runs", "/gitdoor.v1.Tokens/MintMirrorToken", &["mirror"]),
    ("runs", "/gitdoor.v1.Gate/Authorize", &[]),
    ("runs", "/grpc.health.v1.Health/Check", &["bot", "ops", "mirror"]),
    ("gate", "/gitdoor.v1.Gate/Authorize", &["dataplane"]),
    ("gate", "/gitdoor.v1.Gate/Session", &["dataplane"]),
    ("gate", "/gitdoor.v1.Runs/ListRuns", &[]),
    ("gate", "/grpc.health.v1.Health/Check", &["dataplane"]),
];

#[tokio::test]
async fn each_role_may_make_its_calls_and_no_other() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    let nothing: &[&str] = &[];
    for (role, uris) in [
        ("bot", ["gitdoor:bot"].as_slice()),
        ("ops", &["https://example.com/x", "gitdoor:ops"]),
        ("mirror", &["gitdoor:mirror"]),
        ("dataplane", &["gitdoor:dataplane"]),
        ("none", nothing),
        ("none", &["gitdoor:root", "GITDOOR:bot", "gitdoor:bot/x", "https://gitdoor:bot"]),
    ] {
        let files = authority.client("client", uris);
        for (side, path, may) in CALLS {
            let channel = control.channel(side, &files).await.unwrap();
            let code = call(&channel, path).await.err().map_or(Code::Ok, |status| status.code());
            let denied = code == Code::PermissionDenied;
            assert_eq!(denied, !may.contains(&role), "{uris:?} {side} {path}: {code}\n{}", control.log());
            assert!(denied || code != Code::Unavailable, "{uris:?} {path}: {}", control.log());
        }
    }
    let refused = |side, role| {
        control.metric(&format!("gitdoor_control_calls_refused_total{{listener=\"{side}\",role=\"{role}\"}}"))
    };
    assert_eq!(refused("runs", "dataplane"), Some(9.0));
    assert_eq!(refused("gate", "bot"), Some(4.0));
    assert_eq!(refused("runs", "none"), Some(18.0));
}

#[tokio::test]
async fn a_refusal_says_which_role_is_needed() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    let channel = control.channel("runs", &authority.client("client", &["gitdoor:ops"])).await.unwrap();
    let status = call(&channel, "/gitdoor.v1.Runs/RegisterRun").await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("gitdoor:bot") && status.message().contains("gitdoor:ops"), "{status}");
}

#[tokio::test]
async fn a_certificate_with_two_roles_may_do_what_either_may() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    let files = authority.client("client", &["gitdoor:ops", "gitdoor:dataplane"]);
    let runs = control.channel("runs", &files).await.unwrap();
    call(&runs, "/gitdoor.v1.Runs/ListRuns").await.unwrap();
    assert_eq!(call(&runs, "/gitdoor.v1.Gate/Authorize").await.unwrap_err().code(), Code::PermissionDenied);
    let gate = control.channel("gate", &files).await.unwrap();
    let answered = call(&gate, "/gitdoor.v1.Gate/Authorize").await.err().map(|status| status.code());
    assert!(!matches!(answered, Some(Code::PermissionDenied | Code::Unavailable)), "{answered:?}");
}
