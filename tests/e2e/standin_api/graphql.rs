//! GraphQL: pages, errors, permissions and what gh probes for.

use gitdoor_tests::github::BOT;
use gitdoor_tests::raw::Request;
use serde_json::{Value, json};

use super::{Ground, Json as _, READ};

#[tokio::test]
async fn graphql_pages_a_connection_by_its_cursors() {
    let ground = Ground::new();
    let query = "query($first: Int, $after: String) { repository(owner: \"acme\", name: \"api\") {
        issues(first: $first, after: $after, states: [OPEN], orderBy: {field: CREATED_AT, direction: DESC}) {
            totalCount nodes { number ...Title } pageInfo { hasNextPage endCursor } } } }
        fragment Title on Issue { title }";
    let (mut numbers, mut after) = (Vec::new(), Value::Null);
    loop {
        let answer = ground.graphql(query, json!({ "first": 100, "after": after })).await;
        let issues = &answer["data"]["repository"]["issues"];
        assert_eq!(issues["totalCount"], 248);
        numbers.extend(issues["nodes"].as_array().unwrap().iter().map(|issue| issue["number"].as_u64().unwrap()));
        after = issues["pageInfo"]["endCursor"].clone();
        if issues["pageInfo"]["hasNextPage"] == false {
            break;
        }
    }
    assert_eq!((numbers.len(), numbers[0], numbers[247]), (248, 252, 1));
    for (first, said) in [(json!(101), "exceeds the `first` limit"), (Value::Null, "You must provide a `first`")] {
        let answer = ground.graphql(query, json!({ "first": first })).await;
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
}

#[tokio::test]
async fn graphql_says_what_is_wrong_with_a_document_as_github_does() {
    let ground = Ground::new();
    for (query, said) in [
        (
            "{ repository(owner: \"acme\", name: \"api\") { nope } }",
            "Field 'nope' doesn't exist on type 'Repository'",
        ),
        ("{ nope }", "Field 'nope' doesn't exist on type 'Query'"),
        ("{ viewer }", "Field must have selections"),
        ("{ viewer { login { x } } }", "Selections can't be made on scalars"),
        ("{ viewer { ... on Nope { login } } }", "No such type Nope"),
        ("{ viewer { ...Nope } }", "Fragment Nope was used, but not defined"),
        ("{ viewer { ...A } } fragment A on User { ...A }", "spreads itself"),
        ("{ viewer { login }", "Parse error"),
        (
            "{ repository(owner: \"acme\", name: \"none\") { name } }",
            "Could not resolve to a Repository with the name 'acme/none'.",
        ),
        (
            "{ repository(owner: \"acme\", name: \"api\") { pullRequest(number: 999) { title } } }",
            "Could not resolve to a PullRequest with the number of 999.",
        ),
        (
            "{ repository(owner: \"acme\", name: \"api\") { issue(number: 3) { projectCards(first: 1) { totalCount } } } }",
            "Projects (classic) is being deprecated",
        ),
    ] {
        let answer = ground.graphql(query, Value::Null).await;
        let message = answer["errors"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{query}: {answer}");
    }
    let broken = ground.send_as(&ground.token, Request::post("/graphql").body("{\"query\":")).await;
    assert_eq!((broken.status, broken.message().as_str()), (400, "Problems parsing JSON"));
}

#[tokio::test]
async fn graphql_gives_null_and_an_error_for_what_a_token_may_not_read() {
    let ground = Ground::new();
    let without = READ.iter().filter(|(name, _)| !["statuses", "issues"].contains(name)).copied();
    let token = ground.github.token(&without.collect::<Vec<_>>(), None);
    let query = "{ repository(owner: \"acme\", name: \"api\") { name issues(first: 1) { totalCount }
        pullRequest(number: 43) { commits(last: 1) { nodes { commit { statusCheckRollup {
            contexts(first: 9) { nodes { __typename ... on CheckRun { name } } } } } } } } } }";
    let answer = ground.graphql_as(&token, query, Value::Null).await;
    let repository = &answer["data"]["repository"];
    assert_eq!((&repository["name"], &repository["issues"]), (&json!("api"), &Value::Null));
    let rollup = &repository["pullRequest"]["commits"]["nodes"][0]["commit"]["statusCheckRollup"];
    assert_eq!(rollup["contexts"]["nodes"], json!([null]));
    let paths = answer["errors"].as_array().unwrap().iter().map(|error| error["path"].to_string());
    let paths = paths.collect::<Vec<_>>();
    assert_eq!(paths[0], "[\"repository\",\"issues\"]");
    assert!(paths[1].ends_with("\"contexts\",\"nodes\",0]"), "{paths:?}");
    assert_eq!(answer["errors"][1]["type"], "FORBIDDEN");
}

#[tokio::test]
async fn graphql_answers_what_gh_probes_for() {
    let ground = Ground::new();
    let query = "{ viewer { login } PullRequest: __type(name: \"PullRequest\") { fields { name } }
        SearchType: __type(name: \"SearchType\") { enumValues { name } } none: __type(name: \"Nope\") { name } }";
    let data = &ground.graphql(query, Value::Null).await["data"];
    assert_eq!(data["viewer"]["login"], BOT);
    let has = |list: &Value, name: &str| list.as_array().unwrap().contains(&json!({ "name": name }));
    for name in ["isInMergeQueue", "isMergeQueueEnabled", "statusCheckRollup"] {
        assert!(has(&data["PullRequest"]["fields"], name), "{name}");
    }
    assert!(has(&data["SearchType"]["enumValues"], "ISSUE_ADVANCED"));
    assert_eq!(data["none"], Value::Null);
    assert_eq!(ground.get("/meta").await.json().get("installed_version"), None);
}

#[tokio::test]
async fn graphql_has_classic_projects_only_where_a_test_asks_for_an_older_github() {
    let ground = Ground::new();
    let query = "{ repository(owner: \"acme\", name: \"api\") { pullRequest(number: 42) {
        title projectCards(first: 1) { totalCount } } } }";
    let answer = ground.graphql(query, Value::Null).await;
    let pull = &answer["data"]["repository"]["pullRequest"];
    assert_eq!(*pull, json!({ "title": "Greet by name", "projectCards": null }));
    assert_eq!(answer["errors"][0]["path"], json!(["repository", "pullRequest", "projectCards"]));
    ground.github.set_classic_projects(true);
    let answer = ground.graphql(query, Value::Null).await;
    assert_eq!(answer["data"]["repository"]["pullRequest"]["projectCards"], json!({ "totalCount": 0 }));
    assert_eq!(answer.get("errors"), None);
}

#[tokio::test]
async fn a_pull_request_that_a_test_opens_is_one_like_the_others() {
    let ground = Ground::new();
    ground.github.git("acme/api", &["branch", "topic", "feature-42"]);
    let number = ground.github.open_pull("acme/api", "topic", "Greet twice");
    assert_eq!(number, 253);
    let query = "{ repository(owner: \"acme\", name: \"api\") { pullRequests(last: 1, headRefName: \"topic\") {
        nodes { number title state headRefOid changedFiles author { login } } } } }";
    let answer = ground.graphql(query, Value::Null).await;
    let head = ground.github.ref_of("acme/api", "refs/heads/topic").unwrap();
    assert_eq!(ground.github.ref_of("acme/api", "refs/pull/253/head").as_ref(), Some(&head));
    let shown = &answer["data"]["repository"]["pullRequests"]["nodes"][0];
    assert_eq!(
        *shown,
        json!({ "number": 253, "title": "Greet twice", "state": "OPEN", "headRefOid": head, "changedFiles": 2,
            "author": { "login": "octocat" } })
    );
    let first = &ground.get("/repos/acme/api/issues?per_page=1").await.json()[0];
    assert_eq!((&first["number"], &first["title"]), (&json!(253), &json!("Greet twice")));
    assert_eq!(ground.get("/repos/acme/api/pulls/253").await.json()["head"]["ref"], "topic");
}
