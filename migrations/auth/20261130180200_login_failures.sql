-- Failed logins by account and address, so that guessing is slowed down on all tasks together.
--
-- Unlogged: every login writes here before its hash, and what is kept for a quarter of an hour is not worth a flush of the
-- write-ahead log. After a crash of the database counting begins anew; a standby has none of it.
CREATE UNLOGGED TABLE auth.login_failures (
    key bytea NOT NULL,
    failures integer NOT NULL,
    window_started_at timestamptz NOT NULL,
    blocked_until timestamptz,
    CONSTRAINT login_failures_pkey PRIMARY KEY (key),
    CONSTRAINT login_failures_key_is_sha256 CHECK (octet_length(key) = 32),
    CONSTRAINT login_failures_failures_not_negative CHECK (failures >= 0)
) WITH (fillfactor = 70);

CREATE INDEX login_failures_window_started_at_idx ON auth.login_failures (window_started_at);

COMMENT ON TABLE auth.login_failures IS 'Attempts that have not been proven right, by (account, client address).';
COMMENT ON COLUMN auth.login_failures.key IS 'SHA-256 of the canonical email, a zero byte, and the client address (IPv6 by /64): neither is kept. The hash-partition key.';
COMMENT ON COLUMN auth.login_failures.failures IS 'Attempts in this window; counted before the password is looked at, removed by a success.';
COMMENT ON COLUMN auth.login_failures.window_started_at IS 'The first of these attempts. Counting begins anew when the window has passed.';
COMMENT ON COLUMN auth.login_failures.blocked_until IS 'No attempt is admitted before; null after an admitted one.';
