$ gh issue list --limit 3
> query IssueList
old> query Issue_fields
new| 252	OPEN	Issue 252		2025-10-11T12:00:00Z
new| 251	OPEN	Issue 251		2025-10-11T11:00:00Z
new| 250	OPEN	Issue 250		2025-10-11T10:00:00Z
old| 252	OPEN	Issue 252		2025-10-11 12:00:00 +0000 UTC
old| 251	OPEN	Issue 251		2025-10-11 11:00:00 +0000 UTC
old| 250	OPEN	Issue 250		2025-10-11 10:00:00 +0000 UTC

$ gh issue list --label enhancement --state all
> query IssueSearch
new> GET /meta
new> query SearchType_enumValues
old> query Issue_fields
new| 3	OPEN	Greet in more languages	enhancement, good first issue	2025-10-01T03:00:00Z
old| 3	OPEN	Greet in more languages	enhancement, good first issue	2025-10-01 03:00:00 +0000 UTC

$ gh issue view 3 --json number,title,body,labels,state
> query IssueByNumber
{"body":"Today it greets in English only.\n\nFrench and German would do.","labels":[{"id":"LA_kwDO502","name":"enhancement","description":"A new feature or request","color":"a2eeef"},{"id":"LA_kwDO503","name":"good first issue","description":"Good for newcomers","color":"7057ff"}],"number":3,"state":"OPEN","title":"Greet in more languages"}

$ gh issue view 3 --json comments -q '.comments[] | .author.login + ": " + .body'
> query IssueByNumber
old> query CommentsForIssue
hubot: I can do the German part.
octocat: Please do.

$ gh search issues greet --repo acme/api
new> GET /meta
new> GET /search/issues?advanced_search=true&page=1&per_page=30&q=( greet ) repo:acme/api type:issue
new> query SearchType_enumValues
old> GET /search/issues?page=1&per_page=30&q=greet repo:acme/api type:issue
acme/api	3	open	Greet in more languages	enhancement, good first issue	2025-10-01T03:00:00Z
acme/api	2	closed	The greeting ends without a dot		2025-10-01T02:00:00Z

$ gh label list
> query LabelList
bug	Something is not working	#d73a4a
enhancement	A new feature or request	#a2eeef
good first issue	Good for newcomers	#7057ff
