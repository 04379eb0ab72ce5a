package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/secret"
)

// TestErrorsOfMySQLServers: the texts are those of Galera, of group replication, of MySQL and of MariaDB. An error says what to do, where there is something to do.
func TestErrorsOfMySQLServers(t *testing.T) {
	db, err := New("mysql://u:p@127.0.0.1:1/d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		number    uint16
		message   string
		wraps     error
		transient bool
		says      string // "": the text ends with the server's own words
	}{
		"a node without its cluster": {1047, "WSREP has not yet prepared node for application use", ErrUnreachable, false, "has lost the others"},
		"an unknown command":         {1047, "Unknown command", nil, false, ""},
		"a conflict in the group":    {3101, "Plugin instructed the server to rollback the current transaction.", nil, true, ""},
		"a replica":                  {1290, "The MySQL server is running with the --read-only option so it cannot execute this statement", ErrReadOnly, false, "takes writes"},
		"a replica for all":          {1290, "The MySQL server is running with the --super-read-only option so it cannot execute this statement", ErrReadOnly, false, "takes writes"},
		"another option":             {1290, "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement", nil, false, ""},
		"an expired password":        {1820, "You must SET PASSWORD before executing this statement", ErrUnreachable, false, "has expired"},
		"an expired password, MySQL": {1862, "Your password has expired. To log in you must change it using a client that supports expired passwords.", ErrUnreachable, false, "has expired"},
		"too many queries":           {1226, "User 'app' has exceeded the 'max_queries_per_hour' resource (current value: 30)", ErrUnreachable, false, "ALTER USER"},
		"an idle session":            {4031, "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.", ErrUnreachable, false, ""},
		"no such trigger, MariaDB":   {4031, "Referenced trigger 't' for the given action time and event type does not exist", nil, false, ""},
		"no such database, or right": {1044, "Access denied for user 'app'@'%' to database 'shpo'", ErrDenied, false, "there is no database of this name; this login lacks a right"},
		"no TLS":                     {3159, "Connections using insecure transport are prohibited while --require_secure_transport=ON.", ErrUnreachable, false, "ssl-mode=REQUIRED"},
	} {
		t.Run(name, func(t *testing.T) {
			told := db.Wrap("asking", &mysql.MySQLError{Number: c.number, Message: c.message})
			if c.wraps != nil && !errors.Is(told, c.wraps) || c.wraps == nil && (errors.Is(told, ErrUnreachable) || errors.Is(told, ErrReadOnly)) {
				t.Errorf("%v; wanted %v", told, c.wraps)
			}
			if got := db.e.Transient(told); got != c.transient {
				t.Errorf("transient: %v", got)
			}
			if c.says == "" && !strings.HasSuffix(told.Error(), c.message) || !strings.Contains(told.Error(), c.says) {
				t.Errorf("%v; wanted %q", told, c.says)
			}
		})
	}
}

// TestErrorsOfMySQLProxies: the texts are those of ProxySQL and of RDS Proxy, which keep the connection of the client while the
// server behind them is away. A routine of a job may give its own errors the same numbers.
func TestErrorsOfMySQLProxies(t *testing.T) {
	db, err := New("mysql://u:p@127.0.0.1:1/d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for number, message := range map[uint16]string{
		2006: "MySQL server has gone away",
		2013: "Lost connection to MySQL server during query",
		9001: "Max connect timeout reached while reaching hostgroup 0 after 10000ms",
		9002: "Max connect failure while reaching hostgroup 0",
		9501: "Timed-out waiting to acquire database connection",
	} {
		answer := &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte("HY000")), Message: message}
		told := db.Wrap("asking", answer)
		if !errors.Is(told, ErrUnreachable) || !db.e.Broken(told) || !errors.Is(db.inDoubt(told), ErrInDoubt) || !db.e.Transient(db.interrupted(t.Context(), told)) {
			t.Errorf("%v", told)
		}
		answer.SQLState = [5]byte([]byte("45000"))
		if told := db.Wrap("asking", answer); errors.Is(told, ErrUnreachable) || db.e.Broken(told) || !db.e.Refused(told) {
			t.Errorf("raised by a routine: %v", told)
		}
	}
}

// TestRoutineThatIsReplaced: MySQL tells another error where the right to call the routine was one on that routine alone.
func TestRoutineThatIsReplaced(t *testing.T) {
	for message, c := range map[string]struct {
		number uint16
		gone   bool
	}{
		"PROCEDURE shop.dbjobs_end_own does not exist":                                       {1305, true},
		"execute command denied to user 'ann'@'%' for routine 'shop.dbjobs_end_own'":         {1370, true},
		"SAVEPOINT dbjobs_0123456789abcdef does not exist":                                   {1305, false},
		"PROCEDURE shop.rollup does not exist":                                               {1305, false},
		"INSERT command denied to user 'ann'@'%' for table `shop`.`dbjobs_attempts_of_hers`": {1142, false},
	} {
		if got := mysqlEngine.RoutineGone(&mysql.MySQLError{Number: c.number, Message: message}); got != c.gone {
			t.Errorf("%s: %v", message, got)
		}
	}
}

// A password may be a word of the advice. The advice stays as it is, and the password is hidden in all else, however often the
// text is searched.
func TestAdviceStaysAsItIs(t *testing.T) {
	for _, password := range []string{"wrong", "password", "login"} {
		var known secret.Known
		known.AddURL("mysql://u:" + password + "@127.0.0.1:1/d")
		db, err := New("mysql://u:"+password+"@127.0.0.1:1/d", Options{Secrets: &known})
		if err != nil {
			t.Fatal(err)
		}
		told := db.Wrap("asking", &mysql.MySQLError{Number: 1045, Message: "no: " + password})
		if got, want := known.Hide(told.Error()), "no: [hidden]"+mysqlAdvice[1045]; !strings.HasSuffix(got, want) {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// What dbjobs needs in its own tables is no advice about the tables of another scheduler.
func TestErrorsOfWhatIsNotOurs(t *testing.T) {
	db, err := New("mysql://u:p@127.0.0.1:1/d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	denied := fmt.Errorf("see its events: %w", &mysql.MySQLError{Number: 1044, Message: "Access denied for user 'app'@'%' to database 'shop'"})
	told := db.WrapForeign("reading the events", denied)
	if !errors.Is(told, ErrDenied) || strings.Contains(told.Error(), "--print-grants") || !strings.HasSuffix(told.Error(), "where there is no database of this name") {
		t.Error(told)
	}
	told = db.WrapForeign("reading the events", connectError{denied})
	if !errors.Is(told, ErrUnreachable) || strings.Contains(told.Error(), "--print-grants") {
		t.Error(told)
	}
	told = (&Sessions{e: db.e}).advised(connectError{denied}) // those of a target
	if strings.Contains(told.Error(), "--print-grants") || !strings.HasSuffix(told.Error(), "where there is no database of this name") {
		t.Error(told)
	}
	if told := db.WrapForeign("reading the events", nil); told != nil {
		t.Error(told)
	}
}

// TestErrorsOfAFullDisk: the texts are those of MariaDB 10.11 and MySQL 9.7, whose data or tmpdir was on a full disk. Such an error may pass,
// and ends with the exit code of a database that takes no writes.
func TestErrorsOfAFullDisk(t *testing.T) {
	db, err := New("mysql://u:p@127.0.0.1:1/d", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for message, c := range map[string]struct {
		number uint16
		full   bool
	}{
		`Disk got full writing '.(temporary)' (Errcode: 28 "No space left on device")`:               {1021, true},
		"The table 'dbjobs_runs' is full":                                                            {1114, true},
		`Error writing file '/tmp/#sql/fd=70' (Errcode: 28 "No space left on device")`:               {3, true},
		`Error writing file '/tmp/#sql/fd=70' (Errcode: 5 "Input/output error")`:                     {3, false},
		"Error writing file '/tmp/MLfd=41' (OS errno 28 - No space left on device)":                  {3, true},
		`Error writing file 'binlog' (errno: 28 "No space left on device")`:                          {1026, true},
		`Got error 28 "No space left on device" from storage engine InnoDB`:                          {1030, true},
		"Got error 28 - 'No space left on device' from storage engine":                               {1030, true},
		`Got error 122 "Internal (unspecified) error in handler" from storage engine InnoDB`:         {1030, false},
		"Can't create table `app`.`dbjobs_runs` (errno: 135 \"No more room in record file\")":        {1005, true},
		"Can't create table `app`.`t` (errno: 150 \"Foreign key constraint is incorrectly formed\")": {1005, false},
		"Table '(temporary)' is marked as crashed and should be repaired":                            {1194, true},
		"Table 'words' is marked as crashed and should be repaired":                                  {1194, false},
		"Index for table '/tmp/#sql_1_0.MAI' is corrupt; try to repair it":                           {1034, true},
	} {
		told := db.Wrap("asking", &mysql.MySQLError{Number: c.number, Message: message})
		if errors.Is(told, ErrReadOnly) != c.full || strings.Contains(told.Error(), "the disk is full") != c.full {
			t.Errorf("%v; full: %v", told, c.full)
		}
	}
}

// An error about an expired certificate says what to do, as deep as the driver may wrap it.
func TestAdviceOnExpiredCertificate(t *testing.T) {
	err := fmt.Errorf("tls: %w", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}})
	for name, advice := range map[string]string{"mysql": adviseOnMySQL(err), "postgres": adviseOnPostgres(err)} {
		if !strings.Contains(advice, "needs a new certificate") {
			t.Errorf("%s: %q", name, advice)
		}
	}
}
