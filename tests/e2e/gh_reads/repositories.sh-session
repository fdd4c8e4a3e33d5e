$ gh repo list acme
> query RepositoryList
> query Repository_fields
acme/web		private	2025-11-03T09:00:00Z
acme/api	An API that greets	private	2025-11-03T09:00:00Z

$ gh repo view acme/api
> GET /repos/acme/api/readme
> query RepositoryInfo
name:	acme/api
description:	An API that greets
--
# acme/api

Edition 3.

$ gh repo view --json nameWithOwner,description,defaultBranchRef,isPrivate
> query RepositoryInfo
{"defaultBranchRef":{"name":"main"},"description":"An API that greets","isPrivate":true,"nameWithOwner":"acme/api"}

$ gh repo clone acme/api ../fresh && cat ../fresh/README.md && git -C ../fresh remote -v
> git GET /acme/api.git/info/refs?service=git-upload-pack
> git POST /acme/api.git/git-upload-pack
> git POST /acme/api.git/git-upload-pack
> query RepositoryInfo
! Cloning into '../fresh'...
# acme/api

Edition 3.
origin	https://git.door.test/acme/api.git (fetch)
origin	https://git.door.test/acme/api.git (push)

new$ gh search code greeting
> GET /search/code?page=1&per_page=30&q=greeting
acme/api:src/lib.rs: pub fn greeting() -> String {

$ gh search repos api --owner acme
> GET /search/repositories?page=1&per_page=30&q=api user:acme
acme/api	An API that greets	private	2025-11-03T10:00:00Z

$ gh browse -n
new> HEAD /repos/acme/api
https://git.door.test/acme/api

$ gh browse src/lib.rs:2 -n
> query RepositoryInfo
new> HEAD /repos/acme/api
https://git.door.test/acme/api/blob/main/src/lib.rs?plain=1#L2
