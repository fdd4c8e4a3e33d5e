$ gh pr list
> query PullRequestList
new| 43	Greet in French	octocat:french	OPEN	2025-11-03T08:00:00Z
new| 42	Greet by name	feature-42	OPEN	2025-11-02T11:00:00Z
old| 43	Greet in French	octocat:french	OPEN	2025-11-03 08:00:00 +0000 UTC
old| 42	Greet by name	feature-42	OPEN	2025-11-02 11:00:00 +0000 UTC

$ gh pr list --state all --json number,title,headRefName,state
> query PullRequestList
[{"headRefName":"french","number":43,"state":"OPEN","title":"Greet in French"},{"headRefName":"feature-42","number":42,"state":"OPEN","title":"Greet by name"},{"headRefName":"fix-41","number":41,"state":"MERGED","title":"End the greeting with a dot"}]

$ gh pr view 42 --json number,title,body,headRefName,state
> query PullRequestByNumber
{"body":"The greeting now takes a name.\n\nSee `docs/greeting.md`.","headRefName":"feature-42","number":42,"state":"OPEN","title":"Greet by name"}

$ gh pr view 42 --json files,comments,reviews,statusCheckRollup -q '.files[].path, .comments[].body, .reviews[].state, (.statusCheckRollup[] | .name + " " + .conclusion)'
> query PullRequestByNumber
docs/greeting.md
src/lib.rs
Nice.
APPROVED
build SUCCESS
lint SUCCESS

$ gh pr view 99 --json title
> query PullRequestByNumber
= 1
! GraphQL: Could not resolve to a PullRequest with the number of 99. (repository.pullRequest)

$ gh pr diff 42
> GET /repos/acme/api/pulls/42
new> query PullRequestByNumber
diff --git a/docs/greeting.md b/docs/greeting.md
new file mode 100644
index 0000000..59881ca
--- /dev/null
+++ b/docs/greeting.md
@@ -0,0 +1,3 @@
+# Greeting
+
+Give it a name.
diff --git a/src/lib.rs b/src/lib.rs
index 44f6be4..cb0e386 100644
--- a/src/lib.rs
+++ b/src/lib.rs
@@ -1,4 +1,4 @@
-/// Greets.
-pub fn greeting() -> String {
-    "Hello, world.".to_owned()
+/// Greets somebody.
+pub fn greeting(name: &str) -> String {
+    format!("Hello, {name}.")
 }

$ gh pr diff 42 --name-only
> GET /repos/acme/api/pulls/42
new> query PullRequestByNumber
docs/greeting.md
src/lib.rs

$ gh pr checks 42
> query PullRequestByNumber
> query PullRequestStatusChecks
new> query PullRequest_fields
new> query PullRequest_fields2
build	pass	1m30s	https://github.com/acme/api/actions/runs/77/job/88
lint	pass	30s	https://github.com/acme/api/actions/runs/77/job/90

$ gh pr checks 43
> query PullRequestByNumber
> query PullRequestStatusChecks
new> query PullRequest_fields
new> query PullRequest_fields2
= 1
! GraphQL: Resource not accessible by integration (node.statusCheckRollup.nodes.0.commit.statusCheckRollup.contexts.nodes.0)

$ gh pr status
> query PullRequestStatus
> query UserCurrent
new> query PullRequest_fields
new> query PullRequest_fields2

Relevant pull requests in acme/api

Current branch
  There is no pull request associated with [main]

Created by you
  You have no open pull requests

Requesting a code review from you
  You have no pull requests to review

$ gh search prs greet
new> GET /meta
new> GET /search/issues?advanced_search=true&page=1&per_page=30&q=( greet ) type:pr
new> query SearchType_enumValues
old> GET /search/issues?page=1&per_page=30&q=greet type:pr
acme/api	43	open	Greet in French		2025-11-03T08:00:00Z
acme/api	42	open	Greet by name	enhancement	2025-11-02T13:00:00Z
acme/api	41	merged	End the greeting with a dot		2025-10-20T10:00:00Z
