-- Tokens that were handed to trusted hosts: that it happened, never the token.
CREATE TABLE mirror_tokens (
    mirror_token_id bytea  NOT NULL PRIMARY KEY CHECK (octet_length(mirror_token_id) = 16),
    repository      text   NOT NULL,
    repository_id   bigint NOT NULL,
    -- Names the token as the logs do.
    token_id        text   NOT NULL,
    -- The subject of the certificate of who asked, where it had one.
    asked_by        text,
    minted_at       bigint NOT NULL,
    handed_out_at   bigint NOT NULL,
    expires_at      bigint NOT NULL
);

CREATE INDEX mirror_tokens_by_time ON mirror_tokens (handed_out_at);
CREATE INDEX mirror_tokens_by_expiry ON mirror_tokens (expires_at);
