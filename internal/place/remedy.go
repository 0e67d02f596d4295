package place

import (
	"crypto/tls"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentic-go/agentic/postgres"
	"github.com/agentic-go/agentic/sqlite"
)

// Remedy says what to do about a ledger, by what is the matter with it. Never to
// use another one: that one knows nothing of what was sent. Commands in it are
// quoted for a shell.
func Remedy(err error) string {
	remedy := "Mend this ledger and ask again."
	switch {
	case errors.Is(err, sqlite.ErrPlace):
		return "Look at its name: a ledger is a file in a folder that is there or can be made."
	case errors.Is(err, postgres.ErrNotMigrated):
		command := "agentic ledger migrate"
		if at, ok := errors.AsType[*Error](err); ok {
			command = at.Place.command(command)
		}
		return "Look whether it is the database that you mean. If it is, make its tables: " + command
	case errors.Is(err, sqlite.ErrNewer), errors.Is(err, postgres.ErrNewer):
		remedy = "Use the version of this program that wrote it, or a later one."
	case errors.Is(err, sqlite.ErrOlder):
		remedy = "Bring it forward with 'agentic ledger migrate' and the same --ledger; older versions of this program may not work on with it then."
	case errors.Is(err, sqlite.ErrCorrupt):
		remedy = "Look whether it is the file that you mean. If it is, restore it from a copy, and start none of its actions anew before a person has looked at what the service has."
	case errors.Is(err, sqlite.ErrFull):
		remedy = "Make room on its disk and ask again."
	case errors.Is(err, sqlite.ErrReadOnly):
		remedy = "Look whether you may write to the file and its folder, and ask again."
	case errors.Is(err, sqlite.ErrBusy):
		remedy = "Find out which program has it open, such as with fuser or lsof, and ask again when that has ended."
	default:
		if known := serverRemedy(err); known != "" {
			remedy = known
		}
	}
	return remedy + " Do not use another ledger for an action that may be in this one: it could be sent again."
}

// serverRemedy says what to do about an error of PostgreSQL or of the way to it, or
// nothing.
func serverRemedy(err error) string {
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch code := said.Code; {
		case code == "28P01", code == "28000":
			return "Look at the user in the URL, and give its password in PGPASSWORD or in a password file (PGPASSFILE)."
		case code == "3D000":
			return "Look at the name of the database in the URL; 'createdb' makes one."
		case code == "42501":
			return "Give this user the rights on the ledger's tables, or use the user that they belong to."
		case connecting && (code == "42704" || code == "22023"):
			return "Look at the parameters behind the ? of the URL: the server does not take one of them."
		case code == "53300":
			return "Give less connections to each program with pool_max_conns=N in the URL, or more to the server."
		case code == "25006":
			return "This server only reads: name the primary in the URL, or add target_session_attrs=read-write."
		case strings.HasPrefix(code, "53"):
			return "Make room on the server and ask again."
		case strings.HasPrefix(code, "57P"):
			return "The server starts or stops: ask again when it is up."
		}
		return ""
	}
	if !connecting {
		return ""
	}
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	refused := strings.Contains(err.Error(), "refused TLS connection") // also by what is no PostgreSQL
	if at, ok := errors.AsType[*Error](err); ok && refused && !at.Place.needsTLS() {
		return "Look whether it is a PostgreSQL server that listens at the host and port in the URL, and ask again."
	}
	if record || certificate || refused {
		return "Look at TLS: sslmode and sslrootcert in the URL have to fit the server and its certificate."
	}
	return "Look whether the server in the URL is up and can be reached from here, and is PostgreSQL, and ask again."
}

// needsTLS reports whether no attempt to connect goes without TLS.
func (p Place) needsTLS() bool {
	needs := p.config.ConnConfig.TLSConfig != nil
	for _, f := range p.config.ConnConfig.Fallbacks {
		needs = needs && f.TLSConfig != nil
	}
	return needs
}
