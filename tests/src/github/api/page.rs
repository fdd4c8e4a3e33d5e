//! Pages of a list, and the `Link` header that leads from one to the next.

use serde_json::Value;

use super::Query;

/// Items on a page where the request does not say.
const DEFAULT: usize = 30;
/// Most items on a page.
const MOST: usize = 100;

/// The page that a request asks for, and the value of `Link` if there is more than one.
pub(crate) fn page(items: Vec<Value>, query: &Query, url: &str) -> (Vec<Value>, Option<String>) {
    let number = |name: &str| query.get(name).and_then(|value| value.parse::<usize>().ok()).filter(|n| *n > 0);
    let size = number("per_page").unwrap_or(DEFAULT).min(MOST);
    let page = number("page").unwrap_or(1);
    let last = items.len().div_ceil(size).max(1);
    let link = |number: usize, relation: &str| format!("<{}>; rel=\"{relation}\"", at_page(url, query, number));
    let mut links = Vec::new();
    if page > 1 {
        links.push(link((page - 1).min(last), "prev"));
    }
    if page < last {
        links.extend([link(page + 1, "next"), link(last, "last")]);
    }
    if page > 1 {
        links.push(link(1, "first"));
    }
    let items = items.into_iter().skip((page - 1) * size).take(size).collect();
    (items, (!links.is_empty()).then(|| links.join(", ")))
}

/// The request's own query with another page in it.
fn at_page(url: &str, query: &Query, page: usize) -> String {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    pairs.extend_pairs(query.0.iter().filter(|(name, _)| name != "page"));
    pairs.append_pair("page", &page.to_string());
    format!("{url}?{}", pairs.finish())
}
