package tick_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// onSQLServer runs one job with a step in a database of SQL Server, and returns the pass and the job's run.
func onSQLServer(t *testing.T, url string, step func(*store.Step), list ...executor.Statement) (tick.Report, store.RunDetail) {
	t.Helper()
	d := storetest.Open(t, "sqlite", store.Options{})
	st := on("shop", "s", list...)
	if step != nil {
		step(&st)
	}
	ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{{Name: "j", Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{st}}}})
	ticktest.DecideOnly(t, d)
	d.Clock.Add(5 * time.Minute)
	r := ticktest.Pass(t, withTargets(t, d, map[string]string{"shop": url}))
	return r, ticktest.LastRun(t, d, "j")
}

func joined(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// depth is the answer to the question whether a transaction is open.
func depth(n int) []byte {
	return joined(storetest.Row([]string{""}, n), storetest.Done(1))
}

// The attempt keeps the messages that SQL Server sends beside its rows, in their order: the texts of PRINT, and of
// RAISERROR below level 11. Counts are the numbers of changed rows. Arguments are the server's own @p1, or ?, and
// instants have their type.
func TestSQLServerTells(t *testing.T) {
	s := storetest.NewSQLServer(t, func(text string) []byte {
		if strings.Contains(text, "@@TRANCOUNT") {
			return depth(0)
		}
		return joined(storetest.Message(5701, 2, 0, "", 1, "Changed database context to 'shop'."), storetest.Message(0, 1, 0, "", 1, "begins"), storetest.Then(3),
			storetest.Row([]string{"n", "id", "at"}, 7, [16]byte{0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 8, 9, 10, 11, 12, 13, 14, 15},
				time.Date(2026, 1, 5, 8, 5, 0, 123456700, time.UTC)), storetest.Then(1),
			storetest.Message(8153, 1, 10, "", 3, "Null value is eliminated."), storetest.Done(2))
	})
	r, run := onSQLServer(t, s.URL, nil, executor.Statement{Text: "UPDATE a SET b = ? WHERE c = '?' AND d > ?", Args: []any{"${run_id}", json.Number("7")}},
		executor.Statement{Text: "UPDATE a SET b = @p1, c = @p2", Args: []any{true, "${scheduled_for}"}})
	if r.Succeeded != 1 {
		t.Fatalf("%+v", r)
	}
	attempt := run.Tries[0]
	want := "INFO: begins\n" + `{"n": 7, "id": "00112233-4455-6677-0809-0A0B0C0D0E0F", "at": "2026-01-05 08:05:00.1234567"}` + "\nINFO: Null value is eliminated. (8153)"
	if attempt.Output != want+"\n"+want || attempt.Rows == nil || *attempt.Rows != 10 {
		t.Errorf("told %s, %v rows", attempt.Output, attempt.Rows)
	}
	texts, _ := s.Texts()
	if len(texts) != 3 || !strings.Contains(texts[0], "SET b = @p1 WHERE c = '?' AND d > @p2") || !strings.Contains(texts[0], "@p2 bigint") || !strings.Contains(texts[0], run.ID) ||
		!strings.Contains(texts[1], "@p1 bit,@p2 datetimeoffset(7)") || texts[2] != "SELECT @@TRANCOUNT" {
		t.Errorf("sent %q", texts)
	}
}

// An error has the number, level, state, line and procedure of the server. The errors that follow are kept, too. A text
// that leaves a transaction open has failed.
func TestSQLServerFails(t *testing.T) {
	t.Parallel()
	twice := joined(storetest.Message(2627, 1, 14, "", 3, "Violation of a key."), storetest.Then(0), storetest.Message(50000, 7, 16, "dbo.load", 12, "no"), storetest.Failed())
	for _, c := range []struct {
		name           string
		answer, asked  []byte
		state          string
		code, severity string
		line           int
		detail, err    string
	}{
		{"two errors", twice, depth(0), store.Failed, "2627", "14", 3, "state 1", "Msg 2627, Level 14, State 1, Line 3: Violation of a key.; then Msg 50000, Level 16, State 7, Procedure dbo.load, Line 12: no"},
		{"in a procedure", joined(storetest.Message(50000, 7, 16, "dbo.load", 12, "no"), storetest.Failed()), depth(0), store.Failed, "50000", "16", 0, "state 7; procedure dbo.load, line 12", "Msg 50000"},
		{"open transaction", storetest.Done(1), depth(1), store.Failed, "", "", 0, "", "left a transaction open"},
		{"wire", storetest.Hangup, nil, store.Failed, "", "", 0, "", "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := storetest.NewSQLServer(t, func(text string) []byte {
				if strings.Contains(text, "@@TRANCOUNT") {
					return c.asked
				}
				return c.answer
			})
			_, run := onSQLServer(t, s.URL, nil, executor.Statement{Text: "INSERT INTO a SELECT 1"})
			a := run.Tries[0]
			if run.State != c.state || a.Code != c.code || a.Severity != c.severity || a.Line != c.line || a.Detail != c.detail || !strings.Contains(a.Error, c.err) {
				t.Errorf("%s %q %q %d %q: %s", run.State, a.Code, a.Severity, a.Line, a.Detail, a.Error)
			}
		})
	}
}

// The end of a step's time stops its statement on the server. A server that accepts a connection and sends nothing is
// waited for only as long as its URL says.
func TestSQLServerIsStopped(t *testing.T) {
	t.Parallel()
	s := storetest.NewSQLServer(t, func(string) []byte { return storetest.Silence })
	for _, limit := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} { // it may end before the statement is sent
		r, run := onSQLServer(t, s.URL, func(st *store.Step) { st.Timeout = store.Duration(limit) }, executor.Statement{Text: "WAITFOR DELAY '1:00'"})
		texts, stops := s.Texts()
		if r.Failed != 1 || stops != len(texts) || !strings.Contains(run.Error, "timeout after "+store.Duration(limit).String()) {
			t.Errorf("%d texts, stopped %d times: %s", len(texts), stops, run.Error)
		}
		if stops > 0 {
			break
		}
	}
	if _, stops := s.Texts(); stops != 1 {
		t.Errorf("stopped %d times", stops)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, run := onSQLServer(t, "sqlserver://ann:geheimnis@"+silent.Addr().String()+"?database=shop&dial+timeout=1", nil, executor.Statement{Text: "SELECT 1"})
	if !strings.Contains(run.Error, "the server did not answer within 1s") || strings.Contains(run.Error, "geheimnis") {
		t.Error(run.Error)
	}
}

// A script for sqlcmd is refused before anything is sent.
func TestSQLServerRefusesGO(t *testing.T) {
	_, run := onSQLServer(t, "sqlserver://ann:geheimnis@127.0.0.1:1?database=shop", nil, executor.Statement{Text: "CREATE TABLE a (n int)\r\nGO\r\nSELECT 1"})
	if !strings.Contains(run.Error, "GO is a word of sqlcmd") {
		t.Error(run.Error)
	}
}
