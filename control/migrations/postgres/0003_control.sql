-- The control that answers for an open push: that opened it, took it over or claimed it.
ALTER TABLE pushes ADD COLUMN control bytea CHECK (octet_length(control) = 16);

-- The controls that share this store, each with when it was last seen, by this server's clock.
CREATE TABLE controls (
    control_id bytea       NOT NULL PRIMARY KEY CHECK (octet_length(control_id) = 16),
    seen_at    timestamptz NOT NULL
);

CREATE INDEX runs_revoked ON runs (revoked_at) WHERE revoked_at IS NOT NULL;
