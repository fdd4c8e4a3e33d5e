//! What kinds of credentials come in answers.

/// A credential in an answer of the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// A `temp_clone_token`, which comes empty.
    CloneToken,
    /// The query of a `download_url`, which goes.
    DownloadUrl,
    /// The token that the request went up with: the answer is cut.
    OwnToken,
    /// What has the shape of a token, and passes.
    TokenShaped,
}

impl Credential {
    pub(super) const ALL: [Self; 4] = [Self::CloneToken, Self::DownloadUrl, Self::OwnToken, Self::TokenShaped];

    /// The label, and the field of a log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CloneToken => "clone-token",
            Self::DownloadUrl => "download-url",
            Self::OwnToken => "own-token",
            Self::TokenShaped => "token-shaped",
        }
    }
}
