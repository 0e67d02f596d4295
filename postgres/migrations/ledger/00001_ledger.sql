-- The memory of agent hosts (section 6). Whatever a host chooses freely is bytea:
-- any bytes, compared as such. Durations are microseconds.

-- A publisher's document, once, however many requests name it. No foreign key
-- leads here: the statement that binds a request looks itself.
CREATE TABLE {schema}.ledger_snapshot (
    digest    text COLLATE "C" PRIMARY KEY,
    body      bytea NOT NULL,
    sum       bytea NOT NULL, -- SHA-256 of body
    condemned boolean NOT NULL DEFAULT false -- a purge is about to remove it: no new request relies on it
);

-- One request. A request is prepared while attempted_at is NULL. It is held while
-- lease_until is to come, by the clock of this database, and only by who knows
-- fence and holder.
CREATE TABLE {schema}.ledger_request (
    key            bytea PRIMARY KEY, -- SHA-256 of principal, environment and request ID
    id             bigint GENERATED ALWAYS AS IDENTITY, -- order of making, and what entries and notes name
    intent         bigint NOT NULL, -- of scope, origin, action and input: what a guard looks for
    window_us      bigint NOT NULL,
    term_us        bigint NOT NULL,
    created_at     timestamptz NOT NULL,
    window_ends    timestamptz NOT NULL,
    seen_at        timestamptz NOT NULL,
    attempted_at   timestamptz,
    attempted_by   bigint, -- holder that made it attempted: the only one that may submit
    next_check     timestamptz, -- when a worker looks at it next
    queued_for     bigint NOT NULL DEFAULT -1, -- number of entries for which a job was made
    fence          bigint NOT NULL,
    holder         bigint NOT NULL, -- random, of a hold
    lease_until    timestamptz,
    entries        bigint NOT NULL DEFAULT 0,
    notes          bigint NOT NULL DEFAULT 0,
    purged_at      timestamptz, -- of a tombstone
    outcome        text COLLATE "C", -- of the last receipt
    settled        text COLLATE "C", -- verb of the last note that settles
    principal      bytea NOT NULL,
    environment    bytea NOT NULL,
    request_id     text COLLATE "C" NOT NULL,
    origin         text COLLATE "C" NOT NULL,
    action_id      text COLLATE "C" NOT NULL,
    supersedes     text COLLATE "C" NOT NULL,
    input_digest   text COLLATE "C" NOT NULL,
    profile_digest text COLLATE "C", -- these four are NULL in a tombstone
    openapi_digest text COLLATE "C",
    input          bytea,
    input_sum      bytea -- SHA-256 of input
) WITH (fillfactor = 85); -- room on the page for leases and the end

CREATE INDEX ledger_request_intent ON {schema}.ledger_request (intent);
CREATE INDEX ledger_request_created ON {schema}.ledger_request (created_at);
CREATE INDEX ledger_request_open ON {schema}.ledger_request (next_check)
    WHERE (outcome IS NULL OR outcome NOT IN ('succeeded', 'failed')) AND settled IS NULL AND purged_at IS NULL;

-- What one write of a hold appended.
CREATE TABLE {schema}.ledger_entry (
    request      bigint NOT NULL,
    seq          bigint NOT NULL, -- from 1
    holder       bigint NOT NULL,
    observations text NOT NULL, -- a JSON array
    receipt      text,
    PRIMARY KEY (request, seq)
);

-- What a person did about a request.
CREATE TABLE {schema}.ledger_note (
    request bigint NOT NULL,
    seq     bigint NOT NULL, -- from 1
    note    text NOT NULL, -- a JSON array of one
    PRIMARY KEY (request, seq)
);

-- What never changes, whoever writes here. No statement that binds, holds, renews
-- or finishes a request names these columns, so it does not pay for them.
CREATE FUNCTION {schema}.ledger_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE TRIGGER ledger_binding_stays BEFORE UPDATE OF key, intent, window_us, term_us, created_at, window_ends,
    principal, environment, request_id, origin, action_id, supersedes, input_digest ON {schema}.ledger_request
    FOR EACH ROW EXECUTE FUNCTION {schema}.ledger_stays('a binding is never changed');
CREATE TRIGGER ledger_binding_goes_whole BEFORE UPDATE OF profile_digest, openapi_digest, input, input_sum, purged_at ON {schema}.ledger_request
    FOR EACH ROW WHEN (NOT (OLD.purged_at IS NULL AND NEW.purged_at IS NOT NULL
        AND (OLD.outcome IN ('succeeded', 'failed') OR OLD.settled IS NOT NULL)
        AND NEW.profile_digest IS NULL AND NEW.openapi_digest IS NULL AND NEW.input IS NULL AND NEW.input_sum IS NULL))
    EXECUTE FUNCTION {schema}.ledger_stays('a binding goes when what is not open is purged, and only whole');
CREATE TRIGGER ledger_attempt_stays BEFORE UPDATE OF attempted_at, attempted_by ON {schema}.ledger_request
    FOR EACH ROW WHEN (OLD.attempted_at IS NOT NULL
        AND (NEW.attempted_at IS DISTINCT FROM OLD.attempted_at OR NEW.attempted_by IS DISTINCT FROM OLD.attempted_by))
    EXECUTE FUNCTION {schema}.ledger_stays('an attempt is never taken back');
CREATE TRIGGER ledger_request_stays BEFORE DELETE ON {schema}.ledger_request
    FOR EACH ROW EXECUTE FUNCTION {schema}.ledger_stays('a request ID stays used for ever');
CREATE TRIGGER ledger_entry_stays BEFORE UPDATE ON {schema}.ledger_entry
    FOR EACH ROW EXECUTE FUNCTION {schema}.ledger_stays('observations and receipts are never changed');
CREATE TRIGGER ledger_note_stays BEFORE UPDATE ON {schema}.ledger_note
    FOR EACH ROW EXECUTE FUNCTION {schema}.ledger_stays('a note is never changed');
