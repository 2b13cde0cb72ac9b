-- Metadata of documents; their bytes lie in the object store under documents/<owner_id>/<id>.
--
-- A row goes pending -> stored -> deleting -> gone. Only stored rows are visible. An object may be deleted only after its row
-- has left `stored` for good, so that no crash at any point loses an acknowledged document; what a crash leaves behind is
-- found by state and age, and removed.
--
-- Every query of a request names the owner, so that the table can be partitioned by hash of owner_id (or moved to a
-- distributed PostgreSQL by it) without a change to a query. The primary key also serves the list: one owner's documents by
-- id, backwards, because a UUIDv7 sorts by the time of its making.
CREATE TABLE document.documents (
    owner_id uuid NOT NULL,
    id uuid NOT NULL,
    state text NOT NULL,
    name text NOT NULL,
    content_type text NOT NULL,
    size_bytes bigint,
    sha256 bytea,
    created_at timestamptz NOT NULL,
    state_changed_at timestamptz NOT NULL,
    CONSTRAINT documents_pkey PRIMARY KEY (owner_id, id),
    CONSTRAINT documents_state_known CHECK (state IN ('pending', 'stored', 'deleting')),
    CONSTRAINT documents_name_length CHECK (octet_length(name) BETWEEN 1 AND 255),
    CONSTRAINT documents_content_type_length CHECK (octet_length(content_type) BETWEEN 1 AND 255),
    CONSTRAINT documents_size_not_negative CHECK (size_bytes >= 0),
    CONSTRAINT documents_sha256_length CHECK (octet_length(sha256) = 32),
    CONSTRAINT documents_stored_is_measured CHECK (state <> 'stored' OR (size_bytes IS NOT NULL AND sha256 IS NOT NULL))
);

-- What the sweeper looks for. Almost every row is stored, so that this index stays tiny.
CREATE INDEX documents_unfinished ON document.documents (state_changed_at) WHERE state <> 'stored';

COMMENT ON TABLE document.documents IS 'One row a document. The bytes lie in the object store.';
COMMENT ON COLUMN document.documents.owner_id IS 'The sub of the token that uploaded it. The hash-partition key.';
COMMENT ON COLUMN document.documents.id IS 'UUIDv7, made by the service.';
COMMENT ON COLUMN document.documents.state IS
    'pending: bytes are on their way; stored: visible; deleting: no longer visible, the object is being removed.';
COMMENT ON COLUMN document.documents.name IS 'What the client calls it: a file name without a path, NFC. Shown only.';
COMMENT ON COLUMN document.documents.content_type IS 'As declared by the client; says nothing about the bytes.';
COMMENT ON COLUMN document.documents.size_bytes IS 'Counted while the bytes arrived; null until stored.';
COMMENT ON COLUMN document.documents.sha256 IS 'Computed while the bytes arrived; null until stored. The ETag is made of it.';
COMMENT ON COLUMN document.documents.created_at IS 'When the upload began, in whole milliseconds: the time that is in the id.';
COMMENT ON COLUMN document.documents.state_changed_at IS
    'When the state was entered, or a sweeper last took the row on: leftovers are found by it.';
