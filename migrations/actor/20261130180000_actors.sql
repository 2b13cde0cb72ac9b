-- Who has been seen: one row a person, made from the verified claims of the first token that arrives.
--
-- Everything is looked up by id alone and nothing refers to the table, so that it can be partitioned by hash of its key
-- (or moved to a distributed PostgreSQL by it) without a change to a query. For the same reason there is no unique email
-- here: the identity provider decides who owns an address.
CREATE TABLE actor.actors (
    id uuid NOT NULL,
    email text,
    email_issued_at timestamptz,
    display_name text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    CONSTRAINT actors_pkey PRIMARY KEY (id),
    CONSTRAINT actors_email_length CHECK (octet_length(email) BETWEEN 1 AND 254),
    CONSTRAINT actors_email_has_issue_time CHECK ((email IS NULL) = (email_issued_at IS NULL)),
    CONSTRAINT actors_display_name_length CHECK (char_length(display_name) BETWEEN 1 AND 100),
    CONSTRAINT actors_updated_after_created CHECK (updated_at >= created_at),
    CONSTRAINT actors_revision_positive CHECK (revision >= 1)
);

COMMENT ON TABLE actor.actors IS 'A person as the services know them; made on first sight of a verified access token.';
COMMENT ON COLUMN actor.actors.id IS 'The token''s sub. The hash-partition key.';
COMMENT ON COLUMN actor.actors.email IS 'Canonical email as the newest token states it; null while no token has stated one.';
COMMENT ON COLUMN actor.actors.email_issued_at IS
    'When the token was issued (iat) that email was taken from: an older token does not bring an older address back.';
COMMENT ON COLUMN actor.actors.display_name IS 'Chosen by the person; first taken from the name claim. Trimmed, NFC, 1 to 100 code points.';
COMMENT ON COLUMN actor.actors.created_at IS 'First sight.';
COMMENT ON COLUMN actor.actors.updated_at IS 'Last change of anything that a client can see.';
COMMENT ON COLUMN actor.actors.revision IS 'Grows by one with each change; the ETag is made of it.';
