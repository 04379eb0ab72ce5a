//go:build unix

package executor

import (
	"bufio"
	"context"
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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
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
  server_advertise_condition = ${if and {{def:tls_in_cipher}{eq{$received_port}{PORT0}}}}
  server_prompts = :
  server_condition = ${if and {{eq{$auth2}{jobs}}{eq{$auth3}{opensesame}}}}
begin routers
begin transports
`

// smtpServer is an Exim of Debian's that runs until the test ends.
type smtpServer struct {
	dir   string
	ports [3]int // starttls, tls, none
	roots *x509.CertPool
}

func startSMTP(t *testing.T) *smtpServer {
	t.Helper()
	root := os.Getenv("DBJOBS_TEST_EXIM")
	if root == "" {
		t.Fatal("DBJOBS_TEST_EXIM is not set: `make test` finds or fetches Exim and sets it")
	}
	dir, err := os.MkdirTemp("", "dbjobs-exim-") // also for the user that Exim becomes when root starts it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &smtpServer{dir: dir, roots: x509.NewCertPool()}
	conf := strings.ReplaceAll(eximConf, "DIR", dir)
	for i := range s.ports {
		port := storetest.FreePort(t)
		s.ports[i], _ = strconv.Atoi(port)
		conf = strings.ReplaceAll(conf, fmt.Sprintf("PORT%d", i), port)
	}
	who, err := user.Current()
	if err == nil && who.Uid == "0" {
		who, err = user.Lookup("nobody")
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
func (s *smtpServer) certificate(t *testing.T) (certificate, key string) {
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
	s.roots.AppendCertsFromPEM([]byte(certificate))
	return certificate, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// mails are the headers and the text of each mail that the server has taken.
func (s *smtpServer) mails(t *testing.T) (all []string) {
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

// host is one that offers the server.
func (s *smtpServer) host(tls string) *Host {
	m := &MailServer{Server: "127.0.0.1", TLS: tls, From: "dbjobs <jobs@example.org>"}
	m.Port = s.ports[map[string]int{"starttls": 0, "tls": 1, "none": 2}[tls]]
	if tls == "starttls" {
		m.User, m.Password = "jobs", func() (string, error) { return "opensesame", nil }
	}
	return &Host{Mailer: m, Known: &secret.Known{}}
}

func (s *smtpServer) send(t *testing.T, h *Host, spec string) (Result, error) {
	t.Helper()
	m := NewMail(h)
	m.roots = s.roots
	return m.Execute(t.Context(), attempt(spec))
}

// A mail reaches a server of Debian's by each kind of TLS, with the facts, once for all addresses.
func TestMail(t *testing.T) {
	s := startSMTP(t)
	spec := `{"to": ["ann@example.org", "Bob <bob@example.org>"], "cc": ["eve@example.org"], "subject": "${job}: ${args.line} – Ünit", "text": "run ${run_id}\nat ${scheduled_for}"}`
	for i, kind := range []string{"starttls", "tls", "none"} {
		r, err := s.send(t, s.host(kind), spec)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := s.mails(t); len(got) != i+1 || !strings.Contains(r.Output, "<019a-7-2@example.org> for ann@example.org, Bob <bob@example.org>, eve@example.org") {
			t.Fatalf("%s: %d mails, told %q", kind, len(got), r.Output)
		}
	}
	for _, got := range s.mails(t) {
		for _, want := range []string{"ann@example.org", "bob@example.org", "eve@example.org", "Message-ID: <019a-7-2@example.org>", "Auto-Submitted: auto-generated",
			"Date: Fri, 20 Nov 2026 08:00:00", "rollup:", "run 019a-7", "2026-11-20T02:30:00.000000Z"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "X-Evil") || strings.Contains(line, "  X-Evil") {
				t.Errorf("a fact became a header:\n%s", got)
			}
		}
	}
}

// What the server or the host refuses fails the attempt with the reason, and nobody gets the mail.
func TestMailRefused(t *testing.T) {
	s := startSMTP(t)
	to := func(address string) string {
		return fmt.Sprintf(`{"to": ["ann@example.org", %q], "subject": "x", "text": "x"}`, address)
	}
	wrong := s.host("starttls")
	wrong.Mailer.Password = func() (string, error) { return "swordfish", nil }
	plain := s.host("none")
	plain.Mailer.TLS = "starttls"
	anonymous := s.host("starttls")
	anonymous.Mailer.User = ""
	others := s.host("tls")
	others.Mailer.Owners = Owners{"bob"}
	about := func(subject string) string {
		return strings.Replace(to("bob@example.org"), `"subject": "x"`, fmt.Sprintf(`"subject": %q`, subject), 1)
	}
	for name, c := range map[string]struct {
		host             *Host
		spec, want, code string // from 500 on it is not tried again
	}{
		"an address that is unknown":   {s.host("tls"), to("gone@example.org"), "no such user", "550"},
		"an address that is busy":      {s.host("tls"), to("busy@example.org"), "come back later", "451"},
		"a wrong password":             {wrong, to("bob@example.org"), "535", "535"},
		"a mail that nobody wants":     {s.host("tls"), about("advert"), "no such mails here", "550"},
		"a mail that comes too early":  {s.host("tls"), about("early"), "come back with it later", "451"},
		"no login":                     {anonymous, to("bob@example.org"), "log in first", "550"},
		"no TLS where it is mandatory": {plain, to("bob@example.org"), "STARTTLS", ""},
		"no mail server":               {&Host{}, to("bob@example.org"), "mail: {server: …, from: …}", ""},
		"the mail server of others":    {others, to("bob@example.org"), "mail: {owners: [bob, ann]}", ""},
		"a fact that is not there":     {s.host("tls"), `{"to": ["ann@example.org"], "subject": "${args.nothing}"}`, "${args.nothing}", ""},
	} {
		_, err := s.send(t, c.host, c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "swordfish") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if failure, ok := errors.AsType[*Error](err); ok != (c.code != "") || ok && failure.Code != c.code {
			t.Errorf("%s: %+v", name, failure)
		}
		if got, want := errors.Is(err, ErrFinal), c.code >= "500"; got != want {
			t.Errorf("%s: not tried again is %t, want %t: %v", name, got, want, err)
		}
	}
	untrusted := *s
	untrusted.roots = x509.NewCertPool()
	if _, err := untrusted.send(t, s.host("tls"), to("bob@example.org")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	if got := s.mails(t); len(got) != 0 {
		t.Errorf("%d mails were taken:\n%s", len(got), got)
	}
}

// A server that has taken the mail, and then ends the connection, is sent it once.
func TestMailTakenIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = fmt.Fprint(c, "220 mail\r\n") // the client sees what is missing
		lines, data := bufio.NewScanner(c), false
		for lines.Scan() {
			switch line := lines.Text(); {
			case data && line == ".":
				_, _ = fmt.Fprint(c, "250 taken\r\n")
				return
			case data:
			case line == "DATA":
				data = true
				_, _ = fmt.Fprint(c, "354 go on\r\n")
			default:
				_, _ = fmt.Fprint(c, "250 yes\r\n")
			}
		}
	}()
	host := &Host{Mailer: &MailServer{Server: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: "none", From: "jobs@example.org"}, Known: &secret.Known{}}
	if r, err := NewMail(host).Execute(t.Context(), attempt(`{"to": ["ann@example.org"], "subject": "x"}`)); err != nil || !strings.Contains(r.Output, "took the mail") {
		t.Errorf("%q, %v", r.Output, err)
	}
}

// A server that says nothing holds nobody up: the attempt ends with its context.
func TestMailEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel()
			<-t.Context().Done()
		}
	}()
	host := &Host{Mailer: &MailServer{Server: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: "none", From: "jobs@example.org"}, Known: &secret.Known{}}
	if _, err := NewMail(host).Execute(ctx, attempt(`{"to": ["ann@example.org"], "subject": "x"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// What no run could send is refused before, with its place.
func TestMailSpec(t *testing.T) {
	for spec, want := range map[string]string{
		`{"subject": "x"}`: "mail.to: is missing",
		`{"to": ["ann@example.org", "ann"], "subject": "x"}`:                  `mail.to[1]: found "ann"`,
		`{"to": ["ann@example.org\r\nBcc: eve@example.org"], "subject": "x"}`: "mail.to[0]",
		`{"to": ["${args.who}@example.org"], "subject": "x"}`:                 "mail.to[0]",
		`{"to": ["ann@example.org"], "cc": ["@"], "subject": "x"}`:            "mail.cc[0]",
		`{"to": ["ann@example.org"]}`:                                         "mail.subject: is missing",
		`{"to": ["ann@example.org"], "subject": "${jobb}"}`:                   "mail.subject: ${jobb}",
		`{"to": ["ann@example.org"], "subject": "x", "text": "${secret:X}"}`:  "mail.text: a secret",
		`{"to": ["ann@example.org"], "subject": "x", "html": "x"}`:            "html",
	} {
		if _, err := ReadMail([]byte(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
