package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/agentic-go/agentic/internal/privatefile"
)

// LedgerVersion is the version of the tables of a ledger that Open has opened.
const LedgerVersion = schemaVersion

// Level says how much a Finding matters.
type Level string

// With a problem the ledger may forget what it said, or be read by others.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelProblem Level = "problem"
)

// Finding is one thing that CheckLedger looked at.
type Finding struct {
	Name   string
	Level  Level
	Value  string
	Detail string // why it matters, with another level than ok
	Remedy string
}

// CheckLedger looks at a ledger that is there: its schema, its journal, what a
// writing connection has to be told to keep (section 6.2: before sending), whether
// the file is whole, and who may read it. It changes nothing and reads the whole
// file once. The error is that of a ledger that cannot be opened.
func CheckLedger(ctx context.Context, path string) (_ []Finding, err error) {
	defer func() { err = ledgerError("check", err) }()
	_ = chooseSystemCalls() // Open warns, and nothing is written here
	if path, err = privatefile.Place(path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	version, err := inspect(ctx, path)
	if err != nil {
		return nil, err
	}
	db, how, err := look(ctx, path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found := []Finding{schemaFinding(version)}
	journal, err := pragma(ctx, db, "journal_mode")
	if err != nil {
		return nil, err
	}
	if how == standsStill { // such a connection has a mode of its own
		found = append(found, unknownFinding("journal_mode"), unknownFinding("synchronous"))
	} else {
		found = append(found, journalFinding(journal))
	}
	if journal == "wal" { // else a connection of the ledger would change the file
		f, err := synchronousFinding(ctx, path)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	whole, err := pragma(ctx, db, "quick_check(1)")
	if err != nil && reasonOf(err) != ErrCorrupt {
		return nil, err
	}
	if err != nil {
		whole = err.Error()
	}
	found = append(found, wholeFinding(whole))
	rights, err := rightsFindings(path)
	return append(found, rights...), err
}

func pragma(ctx context.Context, db *sql.DB, name string) (value string, err error) {
	err = db.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value)
	return value, err
}

func schemaFinding(version int64) Finding {
	f := Finding{Name: "schema", Level: LevelOK, Value: fmt.Sprint(version)}
	if version < schemaVersion {
		f.Level, f.Detail = LevelWarning, fmt.Sprintf("this program's is %d", schemaVersion)
		f.Remedy = "It is brought forward when it is next opened for writing, such as by 'agentic ledger migrate'."
	}
	return f
}

func journalFinding(mode string) Finding {
	f := Finding{Name: "journal_mode", Level: LevelOK, Value: mode}
	if mode != "wal" {
		f.Level, f.Detail = LevelWarning, "another program has changed it; the ledger needs wal"
		f.Remedy = "It is set when the ledger is next opened for writing."
	}
	return f
}

func unknownFinding(name string) Finding {
	return Finding{Name: name, Level: LevelWarning, Value: "not known", Detail: "this user may not write to the file or its folder",
		Remedy: "Check it as the user that runs the actions."}
}

// synchronousFinding reads the setting back from a connection as the ledger makes
// them: it belongs to a connection, not to the file.
func synchronousFinding(ctx context.Context, path string) (Finding, error) {
	f := Finding{Name: "synchronous", Level: LevelOK, Value: "full"}
	db, err := sql.Open("sqlite", dsn(path, reads))
	if err != nil {
		return f, err
	}
	defer db.Close()
	value, err := pragma(ctx, db, "synchronous")
	if reasonOf(err) == ErrReadOnly {
		return unknownFinding(f.Name), nil
	}
	if err == nil && value != "2" {
		f.Level, f.Value, f.Detail = LevelProblem, value, "the last commit can be lost with the power"
		f.Remedy = "Use a build of this program with SQLite as it comes."
	}
	return f, err
}

func wholeFinding(said string) Finding {
	f := Finding{Name: "quick_check", Level: LevelOK, Value: said}
	if said != "ok" {
		f.Level, f.Value, f.Detail = LevelProblem, "damaged", said
		f.Remedy = "Restore the file from a copy, and start none of its actions anew before a person has looked at what the service has."
	}
	return f
}

// rightsFindings tell who else may read or write the file and what stands beside it.
func rightsFindings(path string) (found []Finding, err error) {
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		name := "rights"
		if suffix != "" {
			name += " of " + suffix
		}
		info, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue // made when it is needed
		}
		if err != nil {
			return nil, err
		}
		f := Finding{Name: name, Level: LevelOK, Value: fmt.Sprintf("%04o", info.Mode().Perm())}
		switch {
		case !info.Mode().IsRegular():
			f.Level, f.Detail = LevelProblem, "it is not a regular file"
			f.Remedy = "Find out which program made it; a lock that is no file keeps nobody apart."
		case runtime.GOOS == "windows":
			f.Value = "by the folder's access list"
		case info.Mode().Perm()&0o077 != 0:
			f.Level, f.Detail = LevelProblem, "others on this machine may use it, and it holds inputs and receipts"
			f.Remedy = "Take the rights of others away: chmod 600, for each file that is named after the ledger."
		}
		found = append(found, f)
	}
	return found, nil
}
