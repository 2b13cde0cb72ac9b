-- Sessions: a family of refresh tokens begins with a login and ends as a whole.
--
-- No foreign keys: each table is read by its own key and can be partitioned by it, and a check of the other table on every
-- insert would buy nothing. One statement writes a family with its first token, every read joins both, and the sweep removes
-- each table's rows by their own expiry.
CREATE TABLE auth.refresh_families (
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    revoke_reason text,
    CONSTRAINT refresh_families_pkey PRIMARY KEY (id),
    CONSTRAINT refresh_families_expires_after_created CHECK (expires_at > created_at),
    CONSTRAINT refresh_families_revoked_for_a_reason CHECK ((revoked_at IS NULL) = (revoke_reason IS NULL)),
    CONSTRAINT refresh_families_reason_known
        CHECK (revoke_reason IN ('logout', 'reuse', 'password_changed', 'user_disabled'))
) WITH (fillfactor = 90);

-- Ending all the sessions of a user looks for those that still live.
CREATE INDEX refresh_families_live_user_id_idx ON auth.refresh_families (user_id) WHERE revoked_at IS NULL;
CREATE INDEX refresh_families_expires_at_idx ON auth.refresh_families (expires_at);

COMMENT ON TABLE auth.refresh_families IS 'Sessions: one row a login.';
COMMENT ON COLUMN auth.refresh_families.id IS 'UUIDv7.';
COMMENT ON COLUMN auth.refresh_families.user_id IS 'users.id.';
COMMENT ON COLUMN auth.refresh_families.created_at IS 'The login.';
COMMENT ON COLUMN auth.refresh_families.expires_at IS 'End of the session, however often it is refreshed.';
COMMENT ON COLUMN auth.refresh_families.revoked_at IS 'Earlier end: no token of the family is accepted from then on.';
COMMENT ON COLUMN auth.refresh_families.revoke_reason IS 'Why it ended early: logout, reuse, password_changed or user_disabled.';

CREATE TABLE auth.refresh_tokens (
    token_hash bytea NOT NULL,
    family_id uuid NOT NULL,
    parent_hash bytea,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    first_used_at timestamptz,
    CONSTRAINT refresh_tokens_pkey PRIMARY KEY (token_hash),
    CONSTRAINT refresh_tokens_token_hash_is_sha256 CHECK (octet_length(token_hash) = 32),
    CONSTRAINT refresh_tokens_parent_hash_is_sha256 CHECK (octet_length(parent_hash) = 32)
    -- Used once in its life: the free space lets that update stay on its page (HOT), and indexes untouched.
) WITH (fillfactor = 85);

CREATE INDEX refresh_tokens_expires_at_idx ON auth.refresh_tokens (expires_at);

COMMENT ON TABLE auth.refresh_tokens IS 'Every refresh token of a session until it expires, used ones included: a used one that comes back is a sign of theft.';
COMMENT ON COLUMN auth.refresh_tokens.token_hash IS 'SHA-256 of the token. Tokens are 256 random bits, so that no salt and no slow hash is needed. The hash-partition key.';
COMMENT ON COLUMN auth.refresh_tokens.family_id IS 'refresh_families.id.';
COMMENT ON COLUMN auth.refresh_tokens.parent_hash IS 'The token that this one was given for; null for the first of a family.';
COMMENT ON COLUMN auth.refresh_tokens.created_at IS 'When it was issued.';
COMMENT ON COLUMN auth.refresh_tokens.expires_at IS 'Its family''s, for the sweep. Whether a session has ended is read from the family.';
COMMENT ON COLUMN auth.refresh_tokens.first_used_at IS 'When it was first exchanged for a child. Within the grace period after it, it may be used again.';

-- Whoever disables an account, and however: its sessions end in the same transaction, and do not come back with the account.
CREATE FUNCTION auth.end_sessions_of_disabled_user() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE auth.refresh_families
       SET revoked_at = NEW.disabled_at, revoke_reason = 'user_disabled'
     WHERE user_id = NEW.id AND revoked_at IS NULL;
    RETURN NULL;
END
$$;

COMMENT ON FUNCTION auth.end_sessions_of_disabled_user() IS 'Ends all sessions of a user whose disabled_at has been set.';

CREATE TRIGGER users_end_sessions_when_disabled
AFTER UPDATE OF disabled_at ON auth.users
FOR EACH ROW WHEN (OLD.disabled_at IS NULL AND NEW.disabled_at IS NOT NULL)
EXECUTE FUNCTION auth.end_sessions_of_disabled_user();
