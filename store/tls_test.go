package store_test

import (
	"bufio"
	"context"
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
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// way is a way to reach a server: a change of the URL of a test's database.
type way struct {
	name  string
	with  func(u *url.URL)
	fails string // what the error says; empty where it works
}

// toldWhy tries again where the reset of a connection came before the server's alert, which tells why.
func toldWhy(connect func() error) (err error) {
	for range 100 {
		if err = connect(); err == nil || !strings.HasSuffix(err.Error(), "bad connection") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// reach tries the ways on a server's database: as that of the store, and as a target, whose runs have to tell as much.
func reach(t *testing.T, raw string, ways []way) {
	t.Helper()
	for _, w := range ways {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		w.with(u)
		err = toldWhy(func() error {
			s, err := store.Open(t.Context(), u.String(), store.Options{})
			if err == nil {
				_, err = s.Version(t.Context())
				s.Close()
			}
			return err
		})
		for as, err := range map[string]error{"": err, " as a target": toldWhy(func() error { return takeSession(t, u.String()) })} {
			switch {
			case w.fails == "" && err != nil:
				t.Errorf("%s%s: %v", w.name, as, err)
			case w.fails != "" && (err == nil || !strings.Contains(err.Error(), w.fails)):
				t.Errorf("%s%s: %v, want %q", w.name, as, err, w.fails)
			}
		}
		var bad *store.URLError
		if err != nil && !errors.As(err, &bad) && !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: %v, want the database to be out of reach", w.name, err)
		}
	}
}

func options(pairs ...string) func(u *url.URL) {
	return func(u *url.URL) {
		q := u.Query()
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		u.RawQuery = q.Encode()
	}
}

// takeSession takes a session for the SQL of a job in a target.
func takeSession(t *testing.T, target string) error {
	t.Helper()
	db, err := engine.New(target, engine.Options{Target: true})
	if err != nil {
		return err
	}
	defer db.Close()
	sessions, err := db.JobSessions(engine.Options{})
	if err == nil {
		_, err = sessions.Take(t.Context(), nil)
	}
	return err
}

// TestCertificates: the authorities in a file must vouch that a server is the one that is meant. They
// vouch for the test servers as 127.0.0.1, and not as localhost.
func TestCertificates(t *testing.T) {
	authority := os.Getenv("DBJOBS_TEST_CA")
	if authority == "" {
		storetest.Skip(t, "DBJOBS_TEST_CA is not set: `make test` starts servers with certificates, and sets it")
	}
	other := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(other, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	strangers := filepath.Join(t.TempDir(), "strangers.pem")
	ofStrangers := writeCertificate(t, strangers)
	elsewhere := func(change func(u *url.URL)) func(u *url.URL) {
		return func(u *url.URL) {
			change(u)
			u.Host = "localhost:" + u.Port()
		}
	}
	const unknown, wrongHost = "unknown authority", "localhost"
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			if e == "pgbouncer" {
				t.Skip("it has a certificate of its own, which every test of the engine checks")
			}
			switch storetest.Dialect(e) {
			case "postgres":
				full := options("sslmode", "verify-full", "sslrootcert", authority)
				reach(t, storetest.URL(t, e), []way{
					{"verify-full", full, ""},
					{"another host", elsewhere(full), wrongHost},
					{"another host, and what to do", elsewhere(full), "the URL has to name the host as the server's certificate does"},
					{"the system's roots", options("sslmode", "verify-full"), "unknown authority; give the file with the certificate of that authority as sslrootcert=FILE"},
				})
			case "mariadb":
				full := options("ssl-ca", authority)
				reach(t, storetest.URL(t, e), []way{
					{"ssl-ca", full, ""},
					{"ssl-ca and tls=true", options("ssl-ca", authority, "tls", "true"), ""},
					{"another host", elsewhere(full), wrongHost},
					{"another host, the system's roots", elsewhere(options("tls", "true")), wrongHost},
					{"the system's roots", options("tls", "true"), "unknown authority; give the file with the certificate of that authority as ssl-ca=FILE"},
					{"no check", options("tls", "skip-verify"), ""},
					{"contradiction", options("ssl-ca", authority, "tls", "skip-verify"), "contradict"},
					{"no such file", options("ssl-ca", other+".not"), "no such file"},
					{"no certificate", options("ssl-ca", other), "no certificate"},
					{"disabled", options("ssl-mode", "DISABLED"), ""},
					{"preferred", options("ssl-mode", "preferred"), ""},
					{"required", options("ssl-mode", "REQUIRED"), ""},
					{"the host, too", options("ssl-mode", "VERIFY_IDENTITY", "ssl-ca", authority), ""},
					{"the host, too, which is another", elsewhere(options("ssl-mode", "VERIFY_IDENTITY", "ssl-ca", authority)), wrongHost},
					{"the host, too, and the system's roots", options("ssl-mode", "VERIFY_IDENTITY"), unknown},
					{"any host", elsewhere(options("ssl-mode", "VERIFY_CA", "ssl-ca", authority)), ""},
					{"a certificate of ours that the server does not accept", options("ssl-ca", authority, "ssl-cert", strangers, "ssl-key", ofStrangers), "remote error: tls: "},
					{"any host, by another's certificate", options("ssl-mode", "VERIFY_CA", "ssl-ca", strangers), unknown},
				})
			}
		})
	}
}

// writeCertificate writes a certificate that vouches for no server here, and its key beside it.
func writeCertificate(t *testing.T, file string) (key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: certificate}, file + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file + ".key"
}

// TestMySQLOptions: an option that nothing reads is refused before anything is sent. So are options
// that make no sense together.
func TestMySQLOptions(t *testing.T) {
	certificate := filepath.Join(t.TempDir(), "client.pem")
	key := writeCertificate(t, certificate)
	encrypted := filepath.Join(t.TempDir(), "encrypted.key")
	if err := os.WriteFile(encrypted, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}), 0o600); err != nil {
		t.Fatal(err)
	}
	for options, problem := range map[string]string{
		"ssl-crt=x":                              `no "ssl-crt"; is ssl-cert meant?`,
		"sslmode=require":                        `no "sslmode"; is ssl-mode meant?`,
		"ssl_ca=x":                               `no "ssl_ca"; is ssl-ca meant?`,
		"parsetime=true":                         `no "parsetime"; is parseTime meant?`,
		"tiemout=5s":                             `no "tiemout"; is timeout meant?`,
		"frobnicate=geheim":                      `no "frobnicate"; want ssl-mode`,
		"x'=geheim":                              `want ssl-mode`,
		"ssl-mode=on":                            "want DISABLED",
		"ssl-mode=REQUIRED&tls=true":             "remove tls",
		"ssl-mode=REQUIRED&ssl-ca=x":             "ssl-ca and ssl-mode=REQUIRED contradict each other",
		"tls=skip-verify&ssl-ca=x":               "ssl-ca and tls=skip-verify contradict each other",
		"ssl-mode=VERIFY_CA":                     "needs ssl-ca",
		"ssl-cert=x&tls=true":                    "give both",
		"ssl-key=x&tls=true":                     "give both",
		"ssl-cert=x&ssl-key=y":                   "is for TLS",
		"ssl-cert=x&ssl-key=y&ssl-mode=DISABLED": "is for TLS",
		"ssl-cert=/no/x&ssl-key=/no/y&tls=true":  "no such file",
		"ssl-cert=" + key + "&ssl-key=" + key + "&tls=true":               "ssl-cert, ssl-key: ",
		"ssl-cert=" + certificate + "&ssl-key=" + key + "&tls=true":       "",
		"ssl-cert=" + certificate + "&ssl-key=" + encrypted + "&tls=true": "the key is encrypted, and dbjobs cannot decrypt it",
		"sql_mode=ANSI&time_zone=%27%2B00:00%27":                          "",
	} {
		s, err := store.Open(t.Context(), "mysql://ann@127.0.0.1:1/d?"+options, store.Options{})
		if err == nil {
			s.Close()
		}
		if problem == "" { // nothing listens there
			if !errors.Is(err, store.ErrUnreachable) {
				t.Errorf("%s: %v", options, err)
			}
			continue
		}
		var bad *store.URLError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v, want %q", options, err, problem)
		}
	}
}

// TestSecureTransportRequired: a server that admits no client without TLS says so in place of its
// greeting, or after it.
func TestSecureTransportRequired(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		const refusal = "\xff\x57\x0c#08004Connections using insecure transport are prohibited while --require_secure_transport=ON."
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(append([]byte{byte(len(refusal)), 0, 0, 0}, refusal...))
			c.Close()
		}
	}()
	s, err := store.Open(t.Context(), "mysql://user:password@"+l.Addr().String()+"/database", store.Options{})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "insecure transport") {
		t.Errorf("%v", err)
	}
}

// socketOf returns the Unix socket on which a server listens, from the kernel's list.
func socketOf(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		storetest.Skip(t, "the kernel does not tell which sockets there are")
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 8 && (fields[7] == name || filepath.Base(fields[7]) == name) {
			if _, err := os.Stat(fields[7]); err == nil {
				return fields[7]
			}
		}
	}
	storetest.Skip(t, "the server has no socket on this machine")
	return ""
}

// TestUnixSockets: a server is reached by a socket, as platforms mount sockets for their databases.
func TestUnixSockets(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			raw := storetest.URL(t, e)
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			switch storetest.Dialect(e) {
			case "postgres":
				socket := socketOf(t, ".s.PGSQL."+u.Port())
				reach(t, raw, []way{{"socket", func(u *url.URL) {
					options("host", filepath.Dir(socket), "port", u.Port())(u)
					u.Host = ""
				}, ""}})
			case "mariadb":
				db := storetest.OpenSQL(t, raw)
				var path string
				if err := db.QueryRow("SELECT @@socket").Scan(&path); err != nil {
					t.Fatal(err)
				}
				socket := socketOf(t, path)
				alone := func(u *url.URL) {
					options("socket", socket)(u)
					u.Host = ""
				}
				reach(t, raw, []way{
					{"socket", alone, ""},
					{"socket and host", options("socket", socket), "and no host"},
					{"relative", func(u *url.URL) { options("socket", "s.sock")(u); u.Host = "" }, "absolute path"},
					{"no host", func(u *url.URL) { u.Host = "" }, "names no host"},
				})
			}
		})
	}
}

// TestLogin: Login is asked for the user and the password at each new connection, of the store and of jobs.
func TestLogin(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		if e == "sqlite" {
			continue
		}
		t.Run(e, func(t *testing.T) {
			u, err := url.Parse(storetest.URL(t, e))
			if err != nil {
				t.Fatal(err)
			}
			password, _ := u.User.Password()
			user, asked := u.User.Username(), 0
			u.User = nil
			login := func(context.Context) (string, string, error) {
				asked++
				return user, password, nil
			}
			s, err := store.Open(t.Context(), u.String(), store.Options{Login: login})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			db, err := s.JobDB(store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			for range 2 {
				if _, err := db.Exec("SELECT 1"); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := s.Login(t.Context()); err != nil || got != user || asked != 3 {
				t.Errorf("logged in as %q, %v; asked %d times", got, err, asked)
			}
			none := errors.New("no secret today")
			_, err = store.Open(t.Context(), u.String(), store.Options{Login: func(context.Context) (string, string, error) { return "", "", none }})
			if !errors.Is(err, none) {
				t.Error(err)
			}
			password = "geheim"
			if _, err := store.Open(t.Context(), u.String(), store.Options{Login: login}); !errors.Is(err, store.ErrUnreachable) || strings.Contains(err.Error(), password) {
				t.Error(err)
			}
		})
	}
}

// TestServiceOfLibpq: a URL may name a service. The service's file says where the database is, and
// which user to be.
func TestServiceOfLibpq(t *testing.T) {
	storetest.Needs(t, "postgres") // only PostgreSQL has services
	u, err := url.Parse(storetest.URL(t, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	file := filepath.Join(t.TempDir(), "pg_service.conf")
	text := fmt.Sprintf("[jobs]\nhost=%s\nport=%s\ndbname=%s\nuser=%s\npassword=%s\nsslmode=disable\n",
		u.Hostname(), u.Port(), strings.TrimPrefix(u.Path, "/"), u.User.Username(), password)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGSERVICEFILE", file)
	reach(t, "postgres:///", []way{
		{"service", options("service", "jobs"), ""},
		{"no such service", options("service", "others"), "service"},
	})
}
