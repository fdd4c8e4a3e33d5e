$ gh run list
> GET /repos/acme/api/actions/runs?exclude_pull_requests=true&per_page=20
> GET /repos/acme/api/actions/workflows?page=1&per_page=100
new| completed	failure	Merge pull request #41	CI	main	push	78	1m0s	2025-11-02T12:10:00Z
new| completed	success	Greet by name	CI	feature-42	push	77	1m40s	2025-11-02T12:00:00Z
old| completed	failure	Merge pull request #41	CI	main	push	78	1m0s	Nov  2, 2025
old| completed	success	Greet by name	CI	feature-42	push	77	1m40s	Nov  2, 2025

$ gh run view 77
> GET /repos/acme/api/actions/runs/77/artifacts?per_page=100
> GET /repos/acme/api/actions/runs/77?exclude_pull_requests=true
> GET /repos/acme/api/actions/workflows/9
> GET /repos/acme/api/check-runs/88/annotations
> query PullRequestForRun
new> GET /repos/acme/api/actions/runs/77/jobs?per_page=100
old> GET /repos/acme/api/actions/runs/77/jobs

new| ✓ feature-42 CI acme/api#42 · 77
old| ✓ feature-42 CI #42 · 77
Triggered via push about [..] ago

JOBS
✓ build in 1m30s (ID 88)

ARTIFACTS
report

For more information about the job, try: gh run view --job=88
View this run on GitHub: https://github.com/acme/api/actions/runs/77

$ gh run view 77 --log
> GET /repos/acme/api/actions/runs/77/logs
> GET /repos/acme/api/actions/runs/77?exclude_pull_requests=true
> GET /repos/acme/api/actions/workflows/9
> storage GET /blob/8100017-logs-77
new> GET /repos/acme/api/actions/runs/77/jobs?per_page=100
old> GET /repos/acme/api/actions/runs/77/jobs
build	Set up job	2025-11-02T12:00:10.0000000Z Current runner version: '2.329.0'
build	Set up job	2025-11-02T12:00:10.0000000Z Prepare workflow directory
build	Run tests	2025-11-02T12:00:12.0000000Z running 2 tests
build	Run tests	2025-11-02T12:00:12.0000000Z test greets ... ok
build	Run tests	2025-11-02T12:00:12.0000000Z test greets_by_name ... ok
build	Complete job	2025-11-02T12:01:38.0000000Z Cleaning up orphan processes

$ gh run view 78
> GET /repos/acme/api/actions/runs/78/artifacts?per_page=100
> GET /repos/acme/api/actions/runs/78?exclude_pull_requests=true
> GET /repos/acme/api/actions/workflows/9
> GET /repos/acme/api/check-runs/89/annotations
> query PullRequestForRun
new> GET /repos/acme/api/actions/runs/78/jobs?per_page=100
old> GET /repos/acme/api/actions/runs/78/jobs

X main CI · 78
Triggered via push about [..] ago

JOBS
X build in 50s (ID 89)
  ✓ Set up job
  X Run tests

ANNOTATIONS
X the greeting does not greet
build: src/lib.rs#3


To see what failed, try: gh run view 78 --log-failed
View this run on GitHub: https://github.com/acme/api/actions/runs/78

$ gh run view 78 --log-failed
> GET /repos/acme/api/actions/runs/78/logs
> GET /repos/acme/api/actions/runs/78?exclude_pull_requests=true
> GET /repos/acme/api/actions/workflows/9
> storage GET /blob/8100017-logs-78
new> GET /repos/acme/api/actions/runs/78/jobs?per_page=100
old> GET /repos/acme/api/actions/runs/78/jobs
build	Run tests	2025-11-02T12:10:12.0000000Z test greets ... FAILED
build	Run tests	2025-11-02T12:10:12.0000000Z ##[error]Process completed with exit code 101.

$ gh run download 77 && cat report/report.txt
> GET /repos/acme/api/actions/artifacts/4/zip
> GET /repos/acme/api/actions/runs/77/artifacts?per_page=100
> storage GET /blob/8100017-artifact-4
2 tests passed

$ gh workflow list
> GET /repos/acme/api/actions/workflows?page=1&per_page=50
CI	active	9

$ gh workflow view CI
> GET /repos/acme/api/actions/workflows/9/runs?exclude_pull_requests=true&per_page=5
> GET /repos/acme/api/actions/workflows?page=1&per_page=100
CI - ci.yml
ID: 9

Total runs 2
Recent runs
completed	failure	Merge pull request #41	CI	main	push	1m0s	78
completed	success	Greet by name	CI	feature-42	push	1m40s	77

To see more runs for this workflow, try: gh run list --workflow ci.yml
To see the YAML for this workflow, try: gh workflow view ci.yml --yaml

new$ gh cache list
> GET /repos/acme/api/actions/caches?direction=desc&per_page=30&sort=last_accessed_at
31	cargo-main-1	1.00 KiB	2025-11-01T09:00:00Z	2025-11-02T12:10:12Z
32	cargo-feature-42-1	2.00 KiB	2025-11-02T12:00:12Z	2025-11-02T12:00:12Z
33	node-main-1	3.00 KiB	2025-11-01T09:00:00Z	2025-11-01T09:00:00Z
