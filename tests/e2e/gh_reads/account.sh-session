$ gh auth status
> GET /
old> query UserCurrent
old! git.door.test
old!   ✓ Logged in to git.door.test as acme-door[bot] ([..]/gh/hosts.yml)
old!   ✓ Git operations for git.door.test configured to use https protocol.
old!   ✓ Token: sbr_[..]*
new| git.door.test
new|   ✓ Logged in to git.door.test account x-access-token ([..]/gh/hosts.yml)
new|   - Active account: true
new|   - Git operations protocol: https
new|   - Token: *[..]*

$ gh api user -q .login
?> GET /user
= 1
! gh: Resource not accessible by integration (HTTP 403)
{"documentation_url":"https://docs.github.com/rest","message":"Resource not accessible by integration","status":"403"}
