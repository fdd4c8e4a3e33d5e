$ gh pr checks 43
> query PullRequestByNumber
> query PullRequestStatusChecks
new> query PullRequest_fields
new> query PullRequest_fields2
new| ci/deploy-preview	pass	0	https://preview.acme.test/43	The preview is up
old| ci/deploy-preview	pass	0	https://preview.acme.test/43

$ gh pr view 43 --json statusCheckRollup -q '.statusCheckRollup[] | .context + " " + .state'
> query PullRequestByNumber
ci/deploy-preview SUCCESS
