$ gh pr checkout 42
> git GET /acme/api.git/info/refs?service=git-upload-pack
> git POST /acme/api.git/git-upload-pack
> query PullRequestByNumber
! Switched to a new branch 'feature-42'
branch 'feature-42' set up to track 'origin/feature-42'.

$ gh pr status
> query PullRequestStatus
> query UserCurrent
new> query PullRequest_fields
new> query PullRequest_fields2

Relevant pull requests in acme/api

Current branch
  #42  Greet by name [feature-42]
  ✓ Checks passing ✓ 1 Approved

Created by you
  You have no open pull requests

Requesting a code review from you
  You have no pull requests to review

$ echo 'Please.' >>docs/greeting.md && git commit --quiet --all --message 'Be polite' && git push --quiet
> write GET /repositories/8100017
> write git GET /acme/api.git/info/refs?service=git-receive-pack
> write git POST /acme/api.git/git-receive-pack

$ gh pr checkout 43
> git GET /acme/api.git/info/refs?service=git-upload-pack
> git POST /acme/api.git/git-upload-pack
> git POST /acme/api.git/git-upload-pack
> query PullRequestByNumber
> query RepositoryInfo
! From https://git.door.test/acme/api
!  * [new ref]         refs/pull/43/head -> french
! Switched to branch 'french'

$ git push --quiet
= 128
! remote: gitdoor: this run is bound to acme/api and may push nowhere else; push there, not to octocat/api
! remote: gitdoor: request [..]
! fatal: unable to access 'https://git.door.test/octocat/api.git/': The requested URL returned error: 403
