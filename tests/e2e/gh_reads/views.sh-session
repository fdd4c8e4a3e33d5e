$ gh pr view 42
> query PullRequestByNumber
new> GET /meta
new> query PullRequestProjectItems
old= 1
old! GraphQL: Projects (classic) is being deprecated in favor of the new Projects experience, see: https://github.blog/changelog/2024-05-23-sunset-notice-projects-classic/. (repository.pullRequest.projectCards)
new| title:	Greet by name
new| state:	OPEN
new| author:	octocat (The Octocat)
new| labels:	enhancement
new| assignees:
new| reviewers:	hubot (Approved)
new| projects:
new| milestone:
new| number:	42
new| url:	https://github.com/acme/api/pull/42
new| additions:	6
new| deletions:	3
new| auto-merge:	disabled
new| --
new| The greeting now takes a name.
new| 
new| See `docs/greeting.md`.

$ gh issue view 3
> query IssueByNumber
> query Issue_fields
new> GET /meta
new> query IssueProjectItems
old= 1
old! GraphQL: Projects (classic) is being deprecated in favor of the new Projects experience, see: https://github.blog/changelog/2024-05-23-sunset-notice-projects-classic/. (repository.issue.projectCards)
new| title:	Greet in more languages
new| state:	OPEN
new| author:	octocat (The Octocat)
new| labels:	enhancement, good first issue
new| comments:	2
new| assignees:
new| projects:
new| milestone:
new| issue-type:
new| parent:
new| sub-issues:
new| sub-issues-completed:
new| blocked-by:
new| blocking:
new| number:	3
new| --
new| Today it greets in English only.
new| 
new| French and German would do.

$ gh issue view 3 --comments
> query IssueByNumber
> query Issue_fields
new> GET /meta
new> query IssueProjectItems
old= 1
old! GraphQL: Projects (classic) is being deprecated in favor of the new Projects experience, see: https://github.blog/changelog/2024-05-23-sunset-notice-projects-classic/. (repository.issue.projectCards)
new| author:	hubot
new| association:	member
new| edited:	false
new| status:	none
new| --
new| I can do the German part.
new| --
new| author:	octocat
new| association:	member
new| edited:	false
new| status:	none
new| --
new| Please do.
new| --

$ gh pr view 42 --json title -q .title
> query PullRequestByNumber
Greet by name
