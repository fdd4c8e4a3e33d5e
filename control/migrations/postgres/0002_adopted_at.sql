-- When the run was last adopted.
ALTER TABLE runs ADD COLUMN adopted_at bigint;
