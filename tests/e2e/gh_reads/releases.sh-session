$ gh release list
> query RepositoryReleaseList
new> query Release_fields
The first one	Latest	v1.0.0	2025-10-25T10:05:00Z
Nearly there	Pre-release	v0.9.0	2025-10-10T10:05:00Z

$ gh release view
> GET /repos/acme/api/releases/latest
title:	The first one
tag:	v1.0.0
draft:	false
prerelease:	false
new| immutable:	false
author:	octocat
created:	2025-10-25T10:00:00Z
published:	2025-10-25T10:05:00Z
url:	https://github.com/acme/api/releases/tag/v1.0.0
asset:	tool.tar.gz
--
It greets.

$ gh release view v1.0.0
> GET /repos/acme/api/releases/tags/v1.0.0
?> query RepositoryReleaseByTag
title:	The first one
tag:	v1.0.0
draft:	false
prerelease:	false
new| immutable:	false
author:	octocat
created:	2025-10-25T10:00:00Z
published:	2025-10-25T10:05:00Z
url:	https://github.com/acme/api/releases/tag/v1.0.0
asset:	tool.tar.gz
--
It greets.

$ gh release download v1.0.0
> GET /repos/acme/api/releases/assets/5
> GET /repos/acme/api/releases/tags/v1.0.0
?> query RepositoryReleaseByTag
> storage GET /blob/8100017-asset-5

$ gh release download v1.0.0 -A tar.gz --dir archive && tar -xzf archive/* -C archive && cat archive/*/src/lib.rs && ls archive
> GET /repos/acme/api/releases/tags/v1.0.0
> GET /repos/acme/api/tarball/v1.0.0
> storage GET /blob/8100017-acme-api-ffde1f0
?> query RepositoryReleaseByTag
/// Greets.
pub fn greeting() -> String {
    "Hello, world.".to_owned()
}
acme-api-ffde1f0
acme-api-ffde1f0.tar.gz
