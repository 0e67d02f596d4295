package ticket

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// Tests of single sentences of section 5. docs/SPEC-MAP.md names them.

// rawFile is the service's database as somebody else sees it.
func rawFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Ticket and request are one transaction (D21): whichever of the two writes fails,
// neither is there, the answer is 500, nothing is claimed of the request, and the
// key is free for the same input afterwards.
func TestTicketAndRequestAreOneWrite(t *testing.T) {
	for _, table := range []string{"ticket", "agentic_request"} {
		t.Run(table, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.db")
			s := start(t, Config{Path: path})
			db := rawFile(t, path)
			exec := func(query string) {
				t.Helper()
				if _, err := db.Exec(query); err != nil {
					t.Fatal(err)
				}
			}
			exec("CREATE TRIGGER broken AFTER INSERT ON " + table + " BEGIN SELECT RAISE(ABORT, 'broken'); END")
			wantProblem(t, s.post("k", subject), 500, "status")
			equal(t, "status", s.get("/requests/k").body, `{"request_id":"k","status":"unknown","resource_id":null}`+"\n")
			s.wantState(State{Posts: 1, Reads: 1})
			exec("DROP TRIGGER broken")
			equal(t, "the same again", s.post("k", subject).code, 201)
			s.wantState(State{Posts: 2, Tickets: 1, Requests: 1, Reads: 1})
		})
	}
}

// A repeat gets the original outcome, whatever that was, and makes nothing; other
// input is refused and changes nothing (D20, D22).
func TestRepeatsOfEveryOutcome(t *testing.T) {
	for _, c := range []struct {
		fault         Fault
		input, equal  string
		other         string
		first, repeat int
		status        string
		tickets       int
	}{
		{Normal, subject, "{\"subject\":\t\"\\u0050rinter on fire\"}", `{"subject":"printer on fire"}`, 201, 200, "succeeded", 1},
		{"pending", subject, " " + subject, `{"subject":"x"}`, 202, 202, "pending", 0},
		{"failed", subject, subject + "\n", `{"subject":"x"}`, 422, 422, "failed", 0},
		{Normal, `{"subject":1,"x":[]}`, `{"x":[],"subject":1.0}`, `{"subject":1.5,"x":[]}`, 422, 422, "failed", 0},
		{Normal, `{"subject":9007199254740993}`, `{"subject":90071992547409930e-1}`, `{"subject":9007199254740992}`, 422, 422, "failed", 0},
	} {
		t.Run(fmt.Sprintf("%s %d", c.fault, c.first), func(t *testing.T) {
			s := start(t, Config{Fault: c.fault})
			first := s.post("k", c.input)
			equal(t, "first", first.code, c.first)
			for range 2 {
				again := s.post("k", c.equal)
				equal(t, "repeat", []any{again.code, again.body}, []any{c.repeat, first.body})
				wantProblem(t, s.post("k", c.other), 409, "other input")
			}
			equal(t, "status", s.get("/requests/k").member("status"), c.status)
			s.wantState(State{Posts: 5, Tickets: c.tickets, Requests: 1, Reads: 1})
		})
	}
}

// What tracks a request holds no input: of a refused one nothing of it, of a ticket
// the answer alone, and a tombstone not even that (D23).
func TestTrackingHoldsNoInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	secrets := func() (rows, secret int) {
		const whole = "request_id || principal || action || fingerprint || resource_id || coalesce(body, '')"
		err := rawFile(t, path).QueryRow("SELECT count(*), sum(instr("+whole+", 'secret') > 0) FROM agentic_request").Scan(&rows, &secret)
		equal(t, "error", err, nil)
		return rows, secret
	}
	t.Run("inside the window", func(t *testing.T) {
		s := start(t, Config{Path: path, Retention: time.Minute})
		s.post("refused", `{"subject":"a secret of somebody","more":"a secret of somebody"}`)
		rows, secret := secrets()
		equal(t, "of a refusal", []int{rows, secret}, []int{1, 0})
		s.post("made", `{"subject":"a secret of somebody"}`)
		rows, secret = secrets()
		equal(t, "answers", []int{rows, secret}, []int{2, 1})
	})
	// Opening sweeps.
	start(t, Config{Path: path, Retention: time.Minute, Clock: func() time.Time { return time.Now().Add(time.Hour) }})
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		rows, secret := secrets()
		if equal(t, "tombstones", rows, 2); secret == 0 {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("the records past their window still hold an answer")
		}
	}
}
