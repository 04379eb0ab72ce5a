package storetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Pooler is a PgBouncer in front of a PostgreSQL server. It pools transactions.
type Pooler struct {
	Root   string // see Server
	Server string // the URL of one of its databases, with the account that may log in
	Size   int    // the number of sessions that all clients of a database share
	TLS    bool   // clients have to use it; between the pooler and the server nothing is encrypted
	More   string // lines of its file that come last, and so replace earlier ones
}

// Through returns the URL that leads to the same database through the pooler.
type Through func(direct string) (pooled string)

// Start starts the pooler. It runs until the test ends.
func (p Pooler) Start(t testing.TB) Through {
	t.Helper()
	through, server, err := p.prepare(t.TempDir(), FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	server.Start(t)
	return through
}

// prepare writes the pooler's files.
func (p Pooler) prepare(dir, port string) (Through, Server, error) {
	u, err := url.Parse(p.Server)
	if err != nil {
		return nil, Server{}, errors.New("the server has no URL")
	}
	password, _ := u.User.Password()
	files := map[string][]byte{"users": fmt.Appendf(nil, "%q %q\n", u.User.Username(), password)}
	ini := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\n"+
		"auth_type = scram-sha-256\nauth_file = %s\npool_mode = transaction\ndefault_pool_size = %d\nmax_client_conn = 500\n",
		u.Hostname(), u.Port(), port, filepath.Join(dir, "users"), p.Size)
	if p.TLS {
		if files["pem"], files["key"], err = certificateOf("127.0.0.1"); err != nil {
			return nil, Server{}, err
		}
		ini += fmt.Sprintf("client_tls_sslmode = require\nclient_tls_cert_file = %s\nclient_tls_key_file = %s\n", filepath.Join(dir, "pem"), filepath.Join(dir, "key"))
	}
	files["ini"] = []byte(ini + p.More + "\n")
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, Server{}, err
		}
	}
	address := net.JoinHostPort("127.0.0.1", port)
	server := Server{Root: p.Root, Program: "usr/sbin/pgbouncer", Args: []string{filepath.Join(dir, "ini")}, Address: address}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		server.Args = append(server.Args, "-u", "nobody")
	}
	return func(direct string) string {
		u, err := url.Parse(direct)
		if err != nil {
			return direct // it fails where it is used
		}
		u.Host = address
		if q := u.Query(); p.TLS {
			q.Set("sslmode", "verify-full")
			q.Set("sslrootcert", filepath.Join(dir, "pem"))
			u.RawQuery = q.Encode()
		}
		return u.String()
	}, server, nil
}

// certificateOf makes a self-signed certificate for an address, and its key.
func certificateOf(address string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(0, 0, 7), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(address)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

// pooledSessions is the number of server sessions that a database has behind the pooler of all tests.
const pooledSessions = 2

// poolerOfAll is the pooler that the tests of the engine pgbouncer share. It ends with this process.
var poolerOfAll = sync.OnceValues(func() (Through, error) {
	root, direct := os.Getenv("DBJOBS_TEST_PGBOUNCER_STABLE"), os.Getenv("DBJOBS_TEST_POSTGRES")
	if root == "" || direct == "" {
		return nil, errors.New("DBJOBS_TEST_PGBOUNCER_STABLE or DBJOBS_TEST_POSTGRES is not set: `make test` sets them")
	}
	dir, err := os.MkdirTemp("", "dbjobs-test-")
	if err != nil {
		return nil, err
	}
	poolerFolder = dir
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	through, server, err := Pooler{Root: root, Server: direct, Size: pooledSessions, TLS: true}.prepare(dir, port)
	if err == nil {
		_, err = server.start()
	}
	return through, err
})

// poolerFolder has the files of the pooler of all tests, until Main removes it.
var poolerFolder string

// onPgBouncer returns a database of PostgreSQL with a URL that leads through the pooler. DB.SQL goes
// past the pooler.
func onPgBouncer(t testing.TB, kind spareKind) *spareDB {
	t.Helper()
	through, err := poolerOfAll()
	if err != nil {
		t.Fatal(err)
	}
	kind.pooled = true
	s := onPostgres(t, kind)
	if s.direct == "" {
		s.direct, s.url = s.url, through(s.url)
	}
	return s
}

// Direct returns the URL of the database that leads past a pooler.
func (d *DB) Direct() string {
	if d.direct != "" {
		return d.direct
	}
	return d.URL
}

// idleBehind leaves the sessions that a pooler keeps out of a count of sessions.
func (k spareKind) idleBehind(sessions string) string {
	if k.pooled {
		return sessions + " AND state <> 'idle'"
	}
	return strings.TrimSpace(sessions)
}
