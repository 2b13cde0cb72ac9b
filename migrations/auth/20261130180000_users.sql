-- Local accounts. Looked up by email (register, login) or by id (password change, refresh), one row at a time.
--
-- Two unique keys and hash partitioning do not go together: partitioned by id, the address would move into a table of its own
-- (email -> id), partitioned by email. Until then one table keeps registration a single insert.
CREATE TABLE auth.users (
    id uuid NOT NULL,
    email text COLLATE "C" NOT NULL,
    password_hash text COLLATE "C" NOT NULL,
    display_name text,
    scopes text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    disabled_at timestamptz,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_email_length CHECK (octet_length(email) BETWEEN 3 AND 254),
    CONSTRAINT users_password_hash_is_phc CHECK (password_hash LIKE '$%' AND octet_length(password_hash) <= 512),
    CONSTRAINT users_display_name_length CHECK (char_length(display_name) BETWEEN 1 AND 100),
    CONSTRAINT users_scopes_are_words CHECK (array_to_string(scopes, ' ', '') ~ '^([!#-[\]-~]+( [!#-[\]-~]+)*)?$')
) WITH (fillfactor = 90);

COMMENT ON TABLE auth.users IS 'Local accounts.';
COMMENT ON COLUMN auth.users.id IS 'UUIDv7; the sub of access tokens.';
COMMENT ON COLUMN auth.users.email IS
    'Canonical: trimmed, NFKC, lower case, domain in ASCII. Compared byte by byte, so that no collation makes two addresses one.';
COMMENT ON COLUMN auth.users.password_hash IS 'PHC string. Replaced when the password changes, and at login when the cost of new hashes has changed.';
COMMENT ON COLUMN auth.users.display_name IS 'As given at registration; travels as the name claim. Trimmed, NFC, 1 to 100 code points.';
COMMENT ON COLUMN auth.users.scopes IS 'Scopes beyond those that every user has, such as actors:read. Granted by operators.';
COMMENT ON COLUMN auth.users.created_at IS 'Registration.';
COMMENT ON COLUMN auth.users.disabled_at IS 'Set by operators: no login and no refresh from then on. Setting it ends every session.';
