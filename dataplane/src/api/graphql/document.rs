//! The document of a request: what it defines, and which fields it selects.

use apollo_parser::cst::{CstNode as _, Field, Name, OperationDefinition};
use apollo_parser::{Error, Parser, SyntaxKind, SyntaxNode};

use super::{Excerpt, Unaskable, lexemes};

/// Most bytes of a document; what is long in a request are its variables. gh's largest has 1,600.
const MOST_DOCUMENT_BYTES: usize = 128 * 1024;
/// Most tokens of a document, blanks, commas and comments included. gh's largest has 500.
pub(super) const MOST_TOKENS: usize = 6_000;
/// Deepest nesting of selections, lists and objects. gh's deepest is 13.
const MOST_DEPTH: usize = 100;
/// Fields that hold a credential: a token to clone a repository with, URLs that open an archive of it to anyone. The
/// client names them in the answer as it likes, so they cannot be told apart there.
const CREDENTIALS: [&str; 3] = ["tempCloneToken", "tarballUrl", "zipballUrl"];

/// Judges everything in the document, whichever of its operations the request names.
pub(super) fn judge(document: &str) -> Result<(), Unaskable> {
    if document.len() > MOST_DOCUMENT_BYTES {
        return Err(Unaskable::TooLong);
    }
    lexemes::check(document)?;
    let tree = Parser::new(document).token_limit(MOST_TOKENS).recursion_limit(MOST_DEPTH).parse();
    // The parser recovers from errors, and the tree is then its guess.
    if let Some(error) = tree.errors().next() {
        return Err(unparseable(document, error));
    }
    let document = tree.document();
    judge_definitions(document.syntax())?;
    if document.syntax().descendants().filter_map(Field::cast).any(|field| is_credential(&field)) {
        return Err(Unaskable::Credential);
    }
    Ok(())
}

/// The error's words, and where it is.
pub(super) fn unparseable(document: &str, error: &Error) -> Unaskable {
    let before = document.bytes().take(error.index());
    let line = before.filter(|byte| *byte == b'\n').count() + 1;
    Unaskable::Unparseable { why: Excerpt::of(error.message()), line }
}

fn judge_definitions(document: &SyntaxNode) -> Result<(), Unaskable> {
    let mut asks = false;
    for definition in document.children() {
        let is_fragment = definition.kind() == SyntaxKind::FRAGMENT_DEFINITION;
        match OperationDefinition::cast(definition) {
            Some(operation) => judge_operation(&operation)?,
            None if is_fragment => continue,
            None => return Err(Unaskable::Definition),
        }
        asks = true;
    }
    if asks { Ok(()) } else { Err(Unaskable::NoQuery) }
}

fn judge_operation(operation: &OperationDefinition) -> Result<(), Unaskable> {
    let name = || operation.name().and_then(|name| text(&name)).map(|name| Excerpt::of(&name));
    match operation.operation_type() {
        // A selection set alone is a query.
        None => Ok(()),
        Some(kind) if kind.query_token().is_some() => Ok(()),
        Some(kind) if kind.subscription_token().is_some() => Err(Unaskable::Subscription(name())),
        Some(_) => Err(Unaskable::Mutation(name())),
    }
}

/// What the field selects is one, under whatever alias. A field whose name cannot be told counts as one.
fn is_credential(field: &Field) -> bool {
    field.name().and_then(|name| text(&name)).is_none_or(|name| CREDENTIALS.contains(&name.as_str()))
}

fn text(name: &Name) -> Option<String> {
    name.ident_token().map(|token| token.text().to_owned())
}
