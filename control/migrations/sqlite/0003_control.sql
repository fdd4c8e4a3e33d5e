-- The process that answers for an open push.
ALTER TABLE pushes ADD COLUMN control BLOB CHECK (control IS NULL OR length(control) = 16);

CREATE INDEX runs_revoked ON runs (revoked_at) WHERE revoked_at IS NOT NULL;
