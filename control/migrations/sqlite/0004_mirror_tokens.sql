-- Tokens that were handed to trusted hosts: that it happened, never the token.
CREATE TABLE mirror_tokens (
    mirror_token_id BLOB    NOT NULL PRIMARY KEY CHECK (length(mirror_token_id) = 16),
    repository      TEXT    NOT NULL,
    repository_id   INTEGER NOT NULL,
    -- Names the token as the logs do.
    token_id        TEXT    NOT NULL,
    -- The subject of the certificate of who asked, where it had one.
    asked_by        TEXT,
    minted_at       INTEGER NOT NULL,
    handed_out_at   INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX mirror_tokens_by_time ON mirror_tokens (handed_out_at);
CREATE INDEX mirror_tokens_by_expiry ON mirror_tokens (expires_at);
