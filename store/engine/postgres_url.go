package engine

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/nearest"
)

// ofPostgresDriver are the options of a postgres:// URL that are about the connection. The driver sends all others to
// the server, as parameters of the session.
var ofPostgresDriver = []string{"channel_binding", "connect_timeout", "database", "dbname", "default_query_exec_mode", "description_cache_capacity", "host",
	"krbspn", "krbsrvname", "max_protocol_version", "min_protocol_version", "passfile", "password", "port", "require_auth", "service", "servicefile", "sslcert",
	"sslcertmode", "sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "sslsni", "statement_cache_capacity", "target_session_attrs", "user"}

// checkPostgresOptions refuses an option whose name is nearly that of an option about the connection, such as sslmod.
// The server would refuse it too, but only after a connection without that option. No parameter of a server has such a
// name.
func checkPostgresOptions(options url.Values) error {
	folded := func(name string) string {
		return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
	}
	for name := range options {
		if slices.Contains(ofPostgresDriver, name) || strings.Contains(name, ".") { // an extension's parameter has a dot
			continue
		}
		meant := nearest.To(name, ofPostgresDriver)
		for _, k := range ofPostgresDriver { // such as sslMode and ssl-mode
			if folded(k) == folded(name) {
				meant = k
			}
		}
		if meant != "" {
			return &URLError{fmt.Sprintf("options after ?: there is no %.40q; is %s meant?", name, meant)}
		}
	}
	return nil
}
