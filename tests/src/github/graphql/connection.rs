//! Connections: a list, what the arguments leave of it, and a page of that with cursors.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::document::{Field, Selection};
use super::schema::SCHEMA;

/// Most nodes of one page.
const MOST: u64 = 100;

/// What is wrong with the arguments, if anything is: a page must have a size, and not too large a one.
pub(crate) fn misused(field: &Field) -> Option<(&'static str, String)> {
    let Field { name, arguments, selections, .. } = field;
    let size = |name: &str| arguments.get(name).and_then(Value::as_u64);
    let paged = ["nodes", "edges"].iter().any(|wanted| selects(selections, wanted));
    match (size("first"), size("last")) {
        (None, None) if paged => Some((
            "MISSING_PAGINATION_BOUNDARIES",
            format!("You must provide a `first` or `last` value to properly paginate the `{name}` connection."),
        )),
        (Some(asked), _) | (None, Some(asked)) if asked > MOST => {
            let which = if size("first").is_some() { "first" } else { "last" };
            Some((
                "EXCESSIVE_PAGINATION",
                format!(
                    "Requesting {asked} records on the `{name}` connection exceeds the `{which}` limit of 100 records."
                ),
            ))
        }
        (Some(_) | None, Some(_) | None) => None,
    }
}

fn selects(selections: &[Selection], name: &str) -> bool {
    selections.iter().any(|selection| match selection {
        Selection::Field(field) => field.name == name,
        Selection::Fragment(_, inside) => selects(inside, name),
    })
}

/// The connection that a list becomes.
pub(crate) fn page(items: &[Value], arguments: &Map<String, Value>) -> Value {
    let mut fitting: Vec<&Value> = items.iter().filter(|item| fits(item, arguments)).collect();
    order(&mut fitting, &arguments.get("orderBy").cloned().unwrap_or_default());
    let total = fitting.len();
    let size = |name: &str| arguments.get(name).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let place = |name: &str| arguments.get(name).and_then(Value::as_str).and_then(index_of);
    let mut from = place("after").map_or(0, |index| (index + 1).min(total));
    let mut to = place("before").map_or(total, |index| index.min(total)).max(from);
    if let Some(first) = size("first") {
        to = to.min(from + first);
    } else if let Some(last) = size("last") {
        from = from.max(to.saturating_sub(last));
    }
    let shown = &fitting[from..to];
    let cursors = (from..to).map(cursor).collect::<Vec<_>>();
    let edges = shown.iter().zip(&cursors).map(|(node, cursor)| json!({ "node": node, "cursor": cursor }));
    json!({
        "nodes": shown,
        "edges": edges.collect::<Vec<_>>(),
        "totalCount": total,
        "issueCount": total,
        "repositoryCount": total,
        "pageInfo": {
            "startCursor": cursors.first(),
            "endCursor": cursors.last(),
            "hasNextPage": to < total,
            "hasPreviousPage": from > 0,
        },
        "checkRunCount": count(items, "CheckRun"),
        "statusContextCount": count(items, "StatusContext"),
        "checkRunCountsByState": by_state(items, "CheckRun", "conclusion", "CheckRunState"),
        "statusContextCountsByState": by_state(items, "StatusContext", "state", "StatusState"),
    })
}

fn count(items: &[Value], of: &str) -> usize {
    items.iter().filter(|item| item["__typename"] == of).count()
}

/// Every state has a count, also one that nothing is in: gh takes a missing one for an older server.
fn by_state(items: &[Value], of: &str, field: &str, states: &str) -> Value {
    let states = SCHEMA.0.get(states).map_or(&[][..], |known| known.values.as_slice());
    let in_state =
        |state: &str| items.iter().filter(|item| item["__typename"] == of && item[field] == state).count();
    states.iter().map(|state| json!({ "state": state, "count": in_state(state) })).collect()
}

/// Whether the arguments leave an item in.
fn fits(item: &Value, arguments: &Map<String, Value>) -> bool {
    let filters = arguments.get("filterBy").cloned().unwrap_or_default();
    let argument = |name: &str| arguments.get(name).filter(|value| !value.is_null());
    let among = |wanted: &Value, field: &str| {
        wanted.as_array().map_or_else(|| item[field] == *wanted, |several| several.contains(&item[field]))
    };
    let same = |name: &str, field: &str| argument(name).is_none_or(|wanted| among(wanted, field));
    let by = |name: &str, login: &Value| filters[name].is_null() || filters[name] == *login;
    same("states", "state")
        && same("headRefName", "headRefName")
        && same("baseRefName", "baseRefName")
        && same("privacy", "visibility")
        && same("visibility", "visibility")
        && same("isFork", "isFork")
        && by("createdBy", &item["author"]["login"])
        && by("assignee", &Value::Null)
        && by("mentioned", &Value::Null)
        && labelled(item, argument("labels").unwrap_or(&filters["labels"]))
        && (item["__typename"] != "Label" || named(item, argument("query")))
}

/// Labels may be asked for by a part of their name.
fn named(item: &Value, query: Option<&Value>) -> bool {
    let query = query.and_then(Value::as_str).unwrap_or_default();
    item["name"].as_str().is_some_and(|name| name.contains(query))
}

fn labelled(item: &Value, wanted: &Value) -> bool {
    let has =
        |name: &Value| item["labels"].as_array().is_some_and(|of| of.iter().any(|label| label["name"] == *name));
    wanted.as_array().is_none_or(|wanted| wanted.iter().all(has))
}

/// Without an order the items stay as they are: the oldest first.
fn order(items: &mut [&Value], order: &Value) {
    let field = match order["field"].as_str() {
        Some("CREATED_AT") => "createdAt",
        Some("UPDATED_AT") => "updatedAt",
        Some("PUSHED_AT") => "pushedAt",
        Some("NAME") => "name",
        Some(_) | None => return,
    };
    items.sort_by(|one, other| one[field].as_str().cmp(&other[field].as_str()));
    if order["direction"] == "DESC" {
        items.reverse();
    }
}

fn cursor(index: usize) -> String {
    STANDARD.encode(format!("cursor:v2:{index}"))
}

fn index_of(cursor: &str) -> Option<usize> {
    let text = String::from_utf8(STANDARD.decode(cursor).ok()?).ok()?;
    text.strip_prefix("cursor:v2:")?.parse().ok()
}
