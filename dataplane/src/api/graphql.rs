//! What a GraphQL request of a run may ask: queries. The API is read-only for a run.
//!
//! The forge reads the same bytes with parsers of its own, so a request is let through only where any two parsers
//! would find the same operations in it; every doubt refuses. Grammar: <https://spec.graphql.org/September2025/>.

mod body;
mod document;
mod excerpt;
mod lexemes;

pub use excerpt::Excerpt;
pub use lexemes::Ambiguity;

use super::refusal::READ_ONLY;

/// Most bytes of a request's body. The largest that gh sends is two kilobytes; variables may be long.
pub const MOST_BYTES: usize = 1024 * 1024;

/// Judges the body of a request. One that may be asked goes up unchanged.
///
/// The body is the caller's to bound, by [`MOST_BYTES`], and the only part of the request that may carry a query:
/// a server may take one from the URL as well.
pub fn judge(body: &[u8]) -> Result<(), Unaskable> {
    document::judge(&body::document(body)?)
}

/// Why a request is not one that a run may make. The words are for the client: one printable line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    /// The body is not text.
    #[error("the request is not UTF-8; send one JSON object in UTF-8")]
    NotUtf8,
    /// The body begins with a byte order mark, which JSON may not.
    #[error("the request begins with a byte order mark; send the JSON object without it")]
    ByteOrderMark,
    /// The body is a list of requests.
    #[error("one request at a time: send one JSON object, not a list of them")]
    Batch,
    /// The body is no JSON object with the members of a request, each once.
    #[error(
        "the request cannot be read: {0}; send one JSON object with query, a string, and with variables, an object, \
         and operationName, a string, where they are needed"
    )]
    Body(Excerpt),
    /// The request names a query that is stored elsewhere.
    #[error("a stored query cannot be read here; send the whole text as query, with no id and no extensions")]
    Stored,
    /// The document is longer than any that is read.
    #[error("the query is longer than 128 KiB; ask for less at once, and pass long values as variables")]
    TooLong,
    /// The document does not parse, or has too many tokens or too deep a nesting.
    #[error(
        "the query cannot be read: {why} (line {line}); send one whole GraphQL document of queries and fragments"
    )]
    Unparseable {
        /// The parser's words.
        why: Excerpt,
        /// Counted from one.
        line: usize,
    },
    /// The document parses, and another parser may read it as another document.
    #[error("{0}")]
    Ambiguous(#[from] Ambiguity),
    /// A mutation, under this name.
    #[error("the {} is not let through; {READ_ONLY}", operation("mutation", .0.as_ref()))]
    Mutation(Option<Excerpt>),
    /// A subscription, under this name.
    #[error("the {} is not let through; {READ_ONLY}", operation("subscription", .0.as_ref()))]
    Subscription(Option<Excerpt>),
    /// A definition of a schema.
    #[error("a document holds queries and the fragments they use; leave every other definition out")]
    Definition,
    /// Fragments alone.
    #[error("the document asks nothing; send a query beside its fragments")]
    NoQuery,
    /// A field whose value is a credential.
    #[error(
        "no credential leaves through the API: leave tempCloneToken, tarballUrl and zipballUrl out, and clone from \
         this host, or GET /repos/OWNER/REPO/tarball/REF"
    )]
    Credential,
}

fn operation(kind: &str, name: Option<&Excerpt>) -> String {
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"))
}

impl Unaskable {
    /// The stable code: a metric's label and the value of `X-Gitdoor-Reason`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotUtf8 | Self::ByteOrderMark | Self::Batch | Self::Body(_) => "graphql-malformed",
            Self::Stored => "graphql-persisted",
            Self::TooLong | Self::Unparseable { .. } | Self::Ambiguous(_) => "graphql-unparseable",
            Self::Mutation(_) => "graphql-mutation",
            Self::Subscription(_) => "graphql-subscription",
            Self::Definition | Self::NoQuery => "graphql-definition",
            Self::Credential => "graphql-credential",
        }
    }

    /// Whether it was a request, and one that is not allowed: said in GraphQL's own `errors`, not by a status.
    #[must_use]
    pub fn is_policy(&self) -> bool {
        match self {
            Self::NotUtf8 | Self::ByteOrderMark | Self::Batch | Self::Body(_) => false,
            Self::Stored
            | Self::TooLong
            | Self::Unparseable { .. }
            | Self::Ambiguous(_)
            | Self::Mutation(_)
            | Self::Subscription(_)
            | Self::Definition
            | Self::NoQuery
            | Self::Credential => true,
        }
    }
}

#[cfg(test)]
mod tests;
