package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// TestErrorsOfMySQLClusters: the texts are those of Galera, of group replication and of MySQL, as none of these clusters runs
// here. An error says what to do, where there is something to do.
func TestErrorsOfMySQLClusters(t *testing.T) {
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

// An error about an expired certificate says what to do, as deep as the driver may wrap it.
func TestAdviceOnExpiredCertificate(t *testing.T) {
	err := fmt.Errorf("tls: %w", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}})
	for name, advice := range map[string]string{"mysql": adviseOnMySQL(err), "postgres": adviseOnPostgres(err)} {
		if !strings.Contains(advice, "needs a new certificate") {
			t.Errorf("%s: %q", name, advice)
		}
	}
}
