$ gh api repos/acme/api
> GET /repos/acme/api
{[..]"clone_url":"https://github.com/acme/api.git"[..]"full_name":"acme/api"[..]"issues_url":"https://git.door.test/api/v3/repos/acme/api/issues{/number}"[..]"temp_clone_token":""[..]}

$ gh api repos/acme/api -q .full_name
> GET /repos/acme/api
acme/api

$ gh api --paginate 'repos/acme/api/issues?per_page=100&state=all' -q '.[].number' >numbers && seq 252 -1 1 | cmp - numbers
> GET /repos/acme/api/issues?per_page=100&state=all
> GET /repositories/8100017/issues?page=2&per_page=100&state=all
> GET /repositories/8100017/issues?page=3&per_page=100&state=all

$ gh api repos/acme/api/pulls/42/files -q '.[] | .filename + " " + .status'
> GET /repos/acme/api/pulls/42/files
docs/greeting.md added
src/lib.rs modified

$ gh api repos/acme/api/contents/src/lib.rs -H 'Accept: application/vnd.github.raw+json'
> GET /repos/acme/api/contents/src/lib.rs
/// Greets.
pub fn greeting() -> String {
    "Hello, world.".to_owned()
}

$ gh api repos/acme/api/pulls/99
> GET /repos/acme/api/pulls/99
= 1
! gh: Not Found (HTTP 404)
{"documentation_url":"https://docs.github.com/rest","message":"Not Found","status":"404"}

$ gh api graphql -f query='query { repository(owner: "acme", name: "api") { name description } }'
> query
{"data":{"repository":{"description":"An API that greets","name":"api"}}}

$ gh api graphql -F number=42 -f query='query Title($number: Int!) { repository(owner: "acme", name: "api") { pullRequest(number: $number) { title } } }' -q .data.repository.pullRequest.title
> query Title
Greet by name

$ gh api graphql --paginate -f query='query Numbers($endCursor: String) { repository(owner: "acme", name: "api") { issues(first: 100, after: $endCursor) { nodes { number } pageInfo { hasNextPage endCursor } } } }' -q '.data.repository.issues.nodes[].number' >numbers && seq 252 | grep -vx '4[123]' | cmp - numbers
> query Numbers
> query Numbers
> query Numbers

$ gh api gitdoor/run -q '.identity, .api.methods[]'
write
GET
HEAD
