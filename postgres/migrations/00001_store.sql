-- A table without rows. A reference to it cannot hold, but is looked at only at
-- the end of a transaction: so a claim ends there, settled or never made, whatever
-- the program does. A trigger in PL/pgSQL would cost ten times as much.
CREATE TABLE {schema}.unsettled (open boolean PRIMARY KEY CHECK (false));

-- What is tracked of a request (section 5). The input is not kept, only its
-- digest. Strings of the request are bytea: any bytes, compared as such. Checks of
-- values would be a tenth of the server's work on a submission; the program makes them.
CREATE TABLE {schema}.tracked_request (
    key          bytea PRIMARY KEY, -- SHA-256 of principal, action and request ID
    principal    bytea NOT NULL,
    action       bytea NOT NULL,
    request_id   bytea NOT NULL,
    fingerprint  text COLLATE "C" NOT NULL, -- digest of the input
    state        text COLLATE "C" NOT NULL, -- claimed, done, refused, pending or expired
    open         boolean CONSTRAINT claim_is_settled REFERENCES {schema}.unsettled DEFERRABLE INITIALLY DEFERRED, -- true or NULL
    resource_id  bytea NOT NULL DEFAULT '',
    status       integer NOT NULL DEFAULT 0,
    body         bytea,
    body_omitted boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    swept        boolean NOT NULL DEFAULT false -- expired, in a column that no answer changes: indexes have it
) WITH (fillfactor = 80); -- room on the page for the answer

CREATE INDEX tracked_request_window ON {schema}.tracked_request (expires_at) WHERE NOT swept;
CREATE INDEX tracked_request_tombstone ON {schema}.tracked_request (expires_at) WHERE swept;
