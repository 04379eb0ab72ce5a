// Package mailtest runs a real mail server for a test.
package mailtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// eximConf takes mails and keeps them: at the first port with STARTTLS, at the second by TLS from
// the start, at the third without any.
const eximConf = `spool_directory = DIR/spool
log_file_path = DIR/spool/%slog
pid_file_path = DIR/spool/pid
primary_hostname = mail.example.org
local_interfaces = 127.0.0.1
daemon_smtp_ports = PORT0 : PORT1 : PORT2
tls_on_connect_ports = PORT1
tls_advertise_hosts = ${if eq{$received_port}{PORT2}{}{*}}
tls_certificate = DIR/cert.pem
tls_privatekey = DIR/key.pem
queue_only = true
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  deny message = log in first
       condition = ${if eq{$received_port}{PORT0}}
       !authenticated = *
  deny message = no such user
       local_parts = gone
  defer message = come back later
       local_parts = busy
  accept
data:
  deny message = no such mails here
       condition = ${if match{$h_subject:}{advert}}
  defer message = come back with it later
        condition = ${if match{$h_subject:}{early}}
  accept
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_advertise_condition = ${if def:tls_in_cipher}
  server_prompts = :
  server_condition = ${if and {{eq{$auth2}{jobs}}{eq{$auth3}{opensesame}}}}
begin routers
begin transports
`

// Server is an Exim of Debian's that runs until the test ends.
type Server struct {
	Certificate string // the file with the certificate that vouches for it
	Roots       *x509.CertPool
	dir         string
	ports       [3]int // starttls, tls, none
}

// Port is where the server takes mails by that kind of TLS: starttls, tls or none. By starttls, a
// client has to log in as jobs with the password opensesame.
func (s *Server) Port(tls string) int {
	return s.ports[slices.Index([]string{"starttls", "tls", "none"}, tls)]
}

// Start starts a server.
func Start(t testing.TB) *Server {
	t.Helper()
	root := os.Getenv("DBJOBS_TEST_EXIM")
	if root == "" && testing.Short() { // as in make check
		t.Skip("DBJOBS_TEST_EXIM is not set")
	}
	if root == "" {
		t.Fatal("DBJOBS_TEST_EXIM is not set: `make test` finds or fetches Exim and sets it, and -short leaves these tests out")
	}
	dir, err := os.MkdirTemp("", "dbjobs-exim-") // also for the user that Exim becomes when root starts it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{Certificate: filepath.Join(dir, "cert.pem"), Roots: x509.NewCertPool(), dir: dir}
	conf := strings.ReplaceAll(eximConf, "DIR", dir)
	for i := range s.ports {
		port := storetest.FreePort(t)
		s.ports[i], _ = strconv.Atoi(port)
		conf = strings.ReplaceAll(conf, fmt.Sprintf("PORT%d", i), port)
	}
	who, err := user.Current()
	if err == nil && who.Uid == "0" { // then Exim becomes the user that it was built for; one that was fetched gets another
		name := "nobody"
		if root == "/" {
			name = "Debian-exim"
		}
		who, err = user.Lookup(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := s.certificate(t)
	for name, text := range map[string]string{
		"exim.conf": conf, "cert.pem": certificate, "key.pem": key,
		"passwd": fmt.Sprintf("root:x:0:0::/:/bin/sh\nDebian-exim:x:%s:%s::/:/bin/false\n", who.Uid, who.Gid),
		"group":  fmt.Sprintf("root:x:0:\nDebian-exim:x:%s:\n", who.Gid),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	uid, _ := strconv.Atoi(who.Uid)
	gid, _ := strconv.Atoi(who.Gid)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "spool"), 0o755), os.Chmod(dir, 0o755), os.Chown(filepath.Join(dir, "spool"), uid, gid)); err != nil {
		t.Fatal(err)
	}
	server := storetest.Server{Root: root, Program: "usr/sbin/exim4", Args: []string{"-C", filepath.Join(dir, "exim.conf"), "-bdf"},
		Address: fmt.Sprintf("127.0.0.1:%d", s.ports[2])}
	if libraries := server.Libraries(); root != "/" {
		server.Env = []string{"LD_PRELOAD=" + filepath.Join(libraries[0], "libnss_wrapper.so"), // it asks for the user Debian-exim
			"NSS_WRAPPER_PASSWD=" + filepath.Join(dir, "passwd"), "NSS_WRAPPER_GROUP=" + filepath.Join(dir, "group")}
	}
	server.Start(t)
	return s
}

// certificate is one for 127.0.0.1 that vouches for itself.
func (s *Server) certificate(t testing.TB) (certificate, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.Roots.AppendCertsFromPEM([]byte(certificate))
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// Mails are the headers and the text of each mail that the server has taken.
func (s *Server) Mails(t testing.TB) (all []string) {
	t.Helper()
	heads, err := filepath.Glob(filepath.Join(s.dir, "spool/input/*-H"))
	if err != nil {
		t.Fatal(err)
	}
	for _, head := range heads {
		h, err := os.ReadFile(head)
		d, other := os.ReadFile(strings.TrimSuffix(head, "H") + "D")
		if err := errors.Join(err, other); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(h)+string(d))
	}
	return all
}
