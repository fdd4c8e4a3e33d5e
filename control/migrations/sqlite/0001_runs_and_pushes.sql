-- Times are microseconds since 1970. A repository_id is the forge's unsigned 64-bit id, kept as its signed twin.
CREATE TABLE runs (
    run_id            TEXT    NOT NULL PRIMARY KEY,
    identity          TEXT    NOT NULL CHECK (identity IN ('none', 'read', 'write')),
    -- The repository that the registration named, if it named one.
    asked_repository  TEXT,
    budget            INTEGER NOT NULL,
    options           TEXT    NOT NULL CHECK (json_valid(options)),
    bearer_hash       BLOB    NOT NULL CHECK (length(bearer_hash) = 32),
    bearer_generation INTEGER NOT NULL,
    first_used_at     INTEGER,
    registered_at     INTEGER NOT NULL,
    expires_at        INTEGER NOT NULL,
    revoked_at        INTEGER,
    repository        TEXT,
    repository_id     INTEGER,
    default_branch    TEXT,
    -- A JSON array: every branch that was default at any time in the run.
    default_branches  TEXT CHECK (default_branches IS NULL OR json_valid(default_branches)),
    bound_at          INTEGER,
    CHECK ((repository IS NULL) = (repository_id IS NULL)
       AND (repository IS NULL) = (default_branch IS NULL)
       AND (repository IS NULL) = (default_branches IS NULL)
       AND (repository IS NULL) = (bound_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_expiry ON runs (expires_at);

CREATE TABLE pushes (
    push_id       BLOB    NOT NULL PRIMARY KEY CHECK (length(push_id) = 16),
    run_id        TEXT    NOT NULL REFERENCES runs (run_id),
    request_id    TEXT    NOT NULL,
    repository    TEXT    NOT NULL,
    -- SHA-256 of the ticket that may report the push's end.
    ticket_hash   BLOB    CHECK (ticket_hash IS NULL OR length(ticket_hash) = 32),
    outcome       TEXT    NOT NULL
        CHECK (outcome IN ('open', 'refused', 'done', 'refused-upstream', 'interrupted', 'unknown')),
    request_bytes INTEGER NOT NULL,
    opened_at     INTEGER NOT NULL,
    closed_at     INTEGER,
    CHECK ((outcome = 'open') = (closed_at IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX pushes_by_run ON pushes (run_id, opened_at);
CREATE INDEX pushes_open ON pushes (run_id) WHERE outcome = 'open';

CREATE TABLE pushed_refs (
    push_id  BLOB    NOT NULL REFERENCES pushes (push_id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    ref_name BLOB    NOT NULL,
    old_oid  TEXT    NOT NULL,
    new_oid  TEXT    NOT NULL,
    refusal  TEXT,
    PRIMARY KEY (push_id, position)
) STRICT, WITHOUT ROWID;
