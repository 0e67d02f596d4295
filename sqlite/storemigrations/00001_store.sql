-- +goose Up

-- What is tracked of one request, beside the publisher's own tables. It never
-- holds the input. Text compares by bytes, so keys that differ in case differ
-- (D19). Times are microseconds of Unix time, UTC.
CREATE TABLE agentic_request (
    id           INTEGER PRIMARY KEY,
    principal    TEXT NOT NULL,
    action       TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    fingerprint  TEXT NOT NULL,
    state        TEXT NOT NULL, -- claimed, done, refused, pending or expired
    resource_id  TEXT NOT NULL DEFAULT '',
    status       INTEGER NOT NULL DEFAULT 0,
    body_omitted INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    swept        INTEGER NOT NULL DEFAULT 0, -- state is 'expired'; apart, so that a settlement changes no index
    body         BLOB, -- last: SQLite reads all that stands before a column
    UNIQUE (request_id, principal, action)
) STRICT;

CREATE INDEX agentic_request_due ON agentic_request (swept, expires_at);

-- What a key was bound to is never changed, only deleted.
-- +goose StatementBegin
CREATE TRIGGER agentic_request_stays BEFORE UPDATE OF id, principal, action, request_id, fingerprint, created_at, expires_at ON agentic_request
BEGIN SELECT RAISE (ABORT, 'what a request is bound to is never changed'); END;
-- +goose StatementEnd
