-- +goose Up

-- A publisher's document, once, however many requests name it. Digest is of the
-- canonical form; sum is the SHA-256 of body as it stands here.
CREATE TABLE ledger_snapshot (
    digest TEXT PRIMARY KEY,
    body   BLOB NOT NULL,
    sum    BLOB NOT NULL
) STRICT;

-- Times are microseconds of Unix time, UTC.
CREATE TABLE ledger_request (
    id             INTEGER PRIMARY KEY,
    principal      TEXT NOT NULL,
    environment    TEXT NOT NULL,
    request_id     TEXT NOT NULL,
    origin         TEXT NOT NULL,
    action_id      TEXT NOT NULL,
    profile_digest TEXT NOT NULL REFERENCES ledger_snapshot (digest),
    openapi_digest TEXT NOT NULL REFERENCES ledger_snapshot (digest),
    input_digest   TEXT NOT NULL,
    input          BLOB NOT NULL,
    input_sum      BLOB NOT NULL, -- SHA-256 of input
    state          TEXT NOT NULL CHECK (state IN ('prepared', 'attempted')),
    created_at     INTEGER NOT NULL,
    seen_at        INTEGER NOT NULL, -- highest time seen, never lower than before
    attempted_at   INTEGER CHECK ((state = 'attempted') = (attempted_at IS NOT NULL)),
    fence          INTEGER NOT NULL, -- of the last hold that may write
    entries        INTEGER NOT NULL, -- rows of ledger_entry
    outcome        TEXT,             -- of the last receipt
    UNIQUE (principal, environment, request_id)
) STRICT;

CREATE INDEX ledger_request_newest ON ledger_request (principal, environment, created_at);

-- One write of a hold: a JSON array of observations, and a receipt or none.
CREATE TABLE ledger_entry (
    id           INTEGER PRIMARY KEY,
    request      INTEGER NOT NULL REFERENCES ledger_request (id),
    seq          INTEGER NOT NULL, -- from 1
    observations TEXT NOT NULL,
    receipt      TEXT,
    UNIQUE (request, seq)
) STRICT;

-- What was saved is never changed, and an attempt is never taken back (section 6.3).
-- +goose StatementBegin
CREATE TRIGGER ledger_snapshot_stays BEFORE UPDATE ON ledger_snapshot
BEGIN SELECT RAISE (ABORT, 'a snapshot is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_entry_stays BEFORE UPDATE ON ledger_entry
BEGIN SELECT RAISE (ABORT, 'an observation or receipt is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_binding_stays BEFORE UPDATE OF id, principal, environment, request_id, origin, action_id,
    profile_digest, openapi_digest, input_digest, input, input_sum, created_at ON ledger_request
BEGIN SELECT RAISE (ABORT, 'a binding is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_attempt_stays BEFORE UPDATE OF state, attempted_at ON ledger_request
WHEN OLD.state = 'attempted' AND (NEW.state <> OLD.state OR NEW.attempted_at <> OLD.attempted_at)
BEGIN SELECT RAISE (ABORT, 'an attempt is never taken back'); END;
-- +goose StatementEnd
