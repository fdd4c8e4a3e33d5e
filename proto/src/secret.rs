//! `Debug` for the messages that carry a secret: it never shows one.

use std::fmt;

use crate::v1;

impl fmt::Debug for v1::RegisterRunResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisterRunResponse").field("run", &self.run).finish_non_exhaustive()
    }
}

impl fmt::Debug for v1::RotateBearerResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotateBearerResponse").field("run", &self.run).finish_non_exhaustive()
    }
}

impl fmt::Debug for v1::MintMirrorTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MintMirrorTokenResponse").field("mirror_token", &self.mirror_token).finish_non_exhaustive()
    }
}

impl fmt::Debug for v1::AuthorizeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizeRequest")
            .field("run_id", &self.run_id)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for v1::Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("id", &self.id).field("age", &self.age).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_message_shows_its_secret() {
        let shown = format!(
            "{:?} {:?} {:?} {:?} {:?}",
            v1::RegisterRunResponse { run: None, bearer: "hush".into() },
            v1::RotateBearerResponse { run: None, bearer: "hush".into() },
            v1::MintMirrorTokenResponse { token: "hush".into(), mirror_token: None },
            v1::AuthorizeRequest { secret: "hush".into(), ..Default::default() },
            v1::SessionResponse {
                id: 1,
                answer: Some(v1::session_response::Answer::ReplaceToken(v1::ReplaceTokenResponse {
                    verdict: Some(v1::replace_token_response::Verdict::Token(v1::Token {
                        value: "hush".into(),
                        ..Default::default()
                    })),
                })),
            },
        );
        assert!(!shown.contains("hush"), "{shown}");
    }
}
