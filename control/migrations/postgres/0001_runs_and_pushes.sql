-- Times are microseconds since 1970. A repository_id is the forge's unsigned 64-bit id, kept as its signed twin.
CREATE TABLE runs (
    -- Ordered by its bytes, whatever the database's collation.
    run_id            text COLLATE "C" NOT NULL PRIMARY KEY,
    identity          text   NOT NULL CHECK (identity IN ('none', 'read', 'write')),
    -- The repository that the registration named, if it named one.
    asked_repository  text,
    budget            bigint NOT NULL,
    -- JSON, as text: it reads as it was written.
    options           text   NOT NULL,
    bearer_hash       bytea  NOT NULL CHECK (octet_length(bearer_hash) = 32),
    bearer_generation bigint NOT NULL,
    first_used_at     bigint,
    registered_at     bigint NOT NULL,
    expires_at        bigint NOT NULL,
    revoked_at        bigint,
    repository        text,
    repository_id     bigint,
    default_branch    text,
    -- A JSON array: every branch that was default at any time in the run.
    default_branches  text,
    bound_at          bigint,
    CHECK ((repository IS NULL) = (repository_id IS NULL)
       AND (repository IS NULL) = (default_branch IS NULL)
       AND (repository IS NULL) = (default_branches IS NULL)
       AND (repository IS NULL) = (bound_at IS NULL))
);

CREATE INDEX runs_by_expiry ON runs (expires_at);

CREATE TABLE pushes (
    push_id       bytea  NOT NULL PRIMARY KEY CHECK (octet_length(push_id) = 16),
    run_id        text COLLATE "C" NOT NULL REFERENCES runs (run_id),
    request_id    text   NOT NULL,
    repository    text   NOT NULL,
    -- SHA-256 of the ticket that may report the push's end.
    ticket_hash   bytea  CHECK (octet_length(ticket_hash) = 32),
    outcome       text   NOT NULL
        CHECK (outcome IN ('open', 'refused', 'done', 'refused-upstream', 'interrupted', 'unknown')),
    request_bytes bigint NOT NULL,
    opened_at     bigint NOT NULL,
    closed_at     bigint,
    CHECK ((outcome = 'open') = (closed_at IS NULL))
);

CREATE INDEX pushes_by_run ON pushes (run_id, opened_at);
CREATE INDEX pushes_open ON pushes (run_id) WHERE outcome = 'open';

CREATE TABLE pushed_refs (
    push_id  bytea  NOT NULL REFERENCES pushes (push_id) ON DELETE CASCADE,
    position bigint NOT NULL,
    ref_name bytea  NOT NULL,
    old_oid  text   NOT NULL,
    new_oid  text   NOT NULL,
    refusal  text,
    PRIMARY KEY (push_id, position)
);
