-- +goose Up

-- Durations are microseconds. intent is client.Binding.Intent64; NULL is a request
-- of version 1 for which nobody has worked out intent, window and term yet.
ALTER TABLE ledger_request ADD COLUMN window_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger_request ADD COLUMN term_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger_request ADD COLUMN supersedes TEXT NOT NULL DEFAULT '';
ALTER TABLE ledger_request ADD COLUMN intent INTEGER;
ALTER TABLE ledger_request ADD COLUMN next_check INTEGER; -- when a worker looks at it next
ALTER TABLE ledger_request ADD COLUMN settled TEXT;       -- verb of the last note that settles
ALTER TABLE ledger_request ADD COLUMN purged_at INTEGER;  -- of a tombstone

CREATE INDEX ledger_request_intent ON ledger_request (intent);
CREATE INDEX ledger_request_due ON ledger_request (next_check) WHERE next_check IS NOT NULL;

-- What one person did about a request, and why.
CREATE TABLE ledger_note (
    id          INTEGER PRIMARY KEY,
    request     INTEGER NOT NULL REFERENCES ledger_request (id),
    seq         INTEGER NOT NULL, -- from 1
    at          INTEGER NOT NULL CHECK (at >= 0),
    by          TEXT NOT NULL,
    verb        TEXT NOT NULL,
    reason      TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    new_id      TEXT NOT NULL,
    UNIQUE (request, seq)
) STRICT;

-- The document of those who have none any more; sum is the SHA-256 of nothing.
INSERT INTO ledger_snapshot (digest, body, sum)
VALUES ('', x'', x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');

-- A binding changes once: when what is not open is purged, and then only as far as
-- that takes documents and input away. Nothing of a tombstone changes, and no
-- request is deleted: its ID stays used for ever.
DROP TRIGGER ledger_binding_stays;
-- +goose StatementBegin
CREATE TRIGGER ledger_binding_stays BEFORE UPDATE OF id, principal, environment, request_id, origin, action_id,
    profile_digest, openapi_digest, input_digest, input, input_sum, created_at, supersedes, purged_at ON ledger_request
WHEN NOT (OLD.purged_at IS NULL AND NEW.purged_at IS NOT NULL
    AND (OLD.outcome IN ('succeeded', 'failed') OR OLD.settled IS NOT NULL)
    AND NEW.id = OLD.id AND NEW.principal = OLD.principal AND NEW.environment = OLD.environment
    AND NEW.request_id = OLD.request_id AND NEW.origin = OLD.origin AND NEW.action_id = OLD.action_id
    AND NEW.input_digest = OLD.input_digest AND NEW.created_at = OLD.created_at AND NEW.supersedes = OLD.supersedes
    AND NEW.profile_digest = '' AND NEW.openapi_digest = '' AND NEW.input = x'')
BEGIN SELECT RAISE (ABORT, 'a binding is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_limits_stay BEFORE UPDATE OF window_us, term_us, intent ON ledger_request WHEN OLD.intent IS NOT NULL
BEGIN SELECT RAISE (ABORT, 'a binding is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_tombstone_stays BEFORE UPDATE ON ledger_request WHEN OLD.purged_at IS NOT NULL
BEGIN SELECT RAISE (ABORT, 'a tombstone is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_request_stays BEFORE DELETE ON ledger_request
BEGIN SELECT RAISE (ABORT, 'a request ID stays used for ever'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_entry_kept BEFORE DELETE ON ledger_entry
WHEN (SELECT purged_at FROM ledger_request WHERE id = OLD.request) IS NULL
BEGIN SELECT RAISE (ABORT, 'an observation or receipt goes with its request only'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_note_stays BEFORE UPDATE ON ledger_note
BEGIN SELECT RAISE (ABORT, 'a note is never changed'); END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_note_kept BEFORE DELETE ON ledger_note
WHEN (SELECT purged_at FROM ledger_request WHERE id = OLD.request) IS NULL
BEGIN SELECT RAISE (ABORT, 'a note goes with its request only'); END;
-- +goose StatementEnd
