//go:build unix

package executor

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/mailtest"
)

// hostOf is a host that offers the server.
func hostOf(s *mailtest.Server, tls string) *Host {
	m := &MailServer{Server: "127.0.0.1", Port: s.Port(tls), TLS: tls, From: "dbjobs <jobs@example.org>"}
	if tls != "none" {
		m.User, m.Password = "jobs", func(context.Context) (string, error) { return "opensesame", nil }
	}
	return &Host{Mailer: m, Known: &secret.Known{}}
}

func send(t *testing.T, s *mailtest.Server, h *Host, spec string) (Result, error) {
	t.Helper()
	m := newMail(h)
	m.roots = s.Roots
	return m.Execute(t.Context(), attempt(spec))
}

// A mail reaches a server from Debian by each kind of TLS, with the facts, once for all addresses.
func TestMail(t *testing.T) {
	s := mailtest.Start(t)
	spec := `{"to": ["ann@example.org", "Bob <bob@example.org>"], "cc": ["eve@example.org"], "subject": "${job}: ${args.line} – Ünit", "text": "run ${run_id}\nat ${scheduled_for}"}`
	for i, kind := range []string{"starttls", "tls", "none"} {
		r, err := send(t, s, hostOf(s, kind), spec)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got := s.Mails(t); len(got) != i+1 || !strings.Contains(r.Output, "<019a-7-879915cfdc2c@example.org> for ann@example.org, Bob <bob@example.org>, eve@example.org") {
			t.Fatalf("%s: %d mails, told %q", kind, len(got), r.Output)
		}
	}
	for _, got := range s.Mails(t) {
		for _, want := range []string{"ann@example.org", "bob@example.org", "eve@example.org", "Message-ID: <019a-7-879915cfdc2c@example.org>", "Auto-Submitted: auto-generated",
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

// If the server or the host refuses the mail, the attempt fails with the reason, and nobody gets the mail.
func TestMailRefused(t *testing.T) {
	s := mailtest.Start(t)
	to := func(address string) string {
		return fmt.Sprintf(`{"to": ["ann@example.org", %q], "subject": "x", "text": "x"}`, address)
	}
	wrong := hostOf(s, "starttls")
	wrong.Mailer.Password = func(context.Context) (string, error) { return "swordfish", nil }
	plain := hostOf(s, "none")
	plain.Mailer.TLS = "starttls"
	open := hostOf(s, "none")
	open.Mailer.User, open.Mailer.Password = "jobs", func(context.Context) (string, error) { return "opensesame", nil }
	anonymous := hostOf(s, "starttls")
	anonymous.Mailer.User = ""
	others := hostOf(s, "tls")
	others.Mailer.Owners = Owners{"bob"}
	about := func(subject string) string {
		return strings.Replace(to("bob@example.org"), `"subject": "x"`, fmt.Sprintf(`"subject": %q`, subject), 1)
	}
	for name, c := range map[string]struct {
		host             *Host
		spec, want, code string // with a code of 500 or more, it is not tried again
	}{
		"an address that is unknown":   {hostOf(s, "tls"), to("gone@example.org"), "no such user", "550"},
		"an address that is busy":      {hostOf(s, "tls"), to("busy@example.org"), "come back later", "451"},
		"an unknown one, then a busy":  {hostOf(s, "tls"), `{"to": ["gone@example.org", "busy@example.org"], "subject": "x"}`, "come back later", "550"},
		"a busy one, then an unknown":  {hostOf(s, "tls"), `{"to": ["busy@example.org", "gone@example.org"], "subject": "x"}`, "no such user", "550"},
		"a wrong password":             {wrong, to("bob@example.org"), "535", "535"},
		"a mail that nobody wants":     {hostOf(s, "tls"), about("advert"), "no such mails here", "550"},
		"a mail that comes too early":  {hostOf(s, "tls"), about("early"), "come back with it later", "451"},
		"no login":                     {anonymous, to("bob@example.org"), "log in first", "550"},
		"no TLS where it is mandatory": {plain, to("bob@example.org"), "STARTTLS", ""},
		"a login without TLS":          {open, to("bob@example.org"), "safe without TLS; set tls: starttls or tls: tls", ""},
		"no mail server":               {&Host{}, to("bob@example.org"), "mail: {server: …, from: …}", ""},
		"the mail server of others":    {others, to("bob@example.org"), "mail: {owners: [bob, ann]}", ""},
		"a fact that is not there":     {hostOf(s, "tls"), `{"to": ["ann@example.org"], "subject": "${args.nothing}"}`, "${args.nothing}", ""},
	} {
		_, err := send(t, s, c.host, c.spec)
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
	untrusted.Roots = x509.NewCertPool()
	if _, err := send(t, &untrusted, hostOf(s, "tls"), to("bob@example.org")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody vouches for: %v", err)
	}
	if got := s.Mails(t); len(got) != 0 {
		t.Errorf("%d mails were taken:\n%s", len(got), got)
	}
}

// takesOne is a server that takes one mail on an address, and ends the connection. said has the lines of the client.
func takesOne(t *testing.T, address string, extensions ...string) (server *MailServer, said func() []string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("this machine has no such address: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	all := make(chan []string, 1)
	go func() {
		var lines []string
		defer func() { all <- lines }()
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = fmt.Fprint(c, "220 mail\r\n") // the client notices that the rest is missing
		data := false
		for in := bufio.NewScanner(c); in.Scan(); {
			line := in.Text()
			lines = append(lines, line)
			switch {
			case data && line == ".":
				_, _ = fmt.Fprint(c, "250 taken\r\n")
				return
			case data:
			case line == "DATA":
				data = true
				_, _ = fmt.Fprint(c, "354 go on\r\n")
			case strings.HasPrefix(line, "EHLO"):
				_, _ = fmt.Fprintf(c, "250-mail\r\n250-%s\r\n250 8BITMIME\r\n", strings.Join(append(extensions, "SIZE"), "\r\n250-"))
			default:
				_, _ = fmt.Fprint(c, "250 yes\r\n")
			}
		}
	}()
	to := l.Addr().(*net.TCPAddr)
	return &MailServer{Server: to.IP.String(), Port: to.Port, TLS: "none", From: "jobs@example.org"}, func() []string {
		l.Close() // if nobody came
		return <-all
	}
}

// A server that accepts the mail, and then ends the connection, gets it once.
func TestMailTakenIsTaken(t *testing.T) {
	server, _ := takesOne(t, "127.0.0.1:0")
	if r, err := newMail(&Host{Mailer: server, Known: &secret.Known{}}).Execute(t.Context(), attempt(`{"to": ["ann@example.org"], "subject": "x"}`)); err != nil || !strings.Contains(r.Output, "took the mail") {
		t.Errorf("%q, %v", r.Output, err)
	}
}

// The settings of the host may name the server by its address, also of IPv6, with brackets or without.
func TestMailServerByItsAddressOfIPv6(t *testing.T) {
	for _, form := range []string{"%s", "[%s]"} {
		server, said := takesOne(t, "[::1]:0")
		server.Server = fmt.Sprintf(form, server.Server)
		if _, err := newMail(&Host{Mailer: server, Known: &secret.Known{}}).Execute(t.Context(), attempt(`{"to": ["ann@example.org"], "subject": "x"}`)); err != nil || len(said()) == 0 {
			t.Errorf("%s: %v", server.Server, err)
		}
	}
}

// A mail asks for SMTPUTF8 only if an address needs it. What else is not ASCII is encoded, and each line is short, so any server on
// its way can take it. A line that is a dot does not end it.
func TestMailIsPlainUnlessAnAddressIsNot(t *testing.T) {
	const text = "Ünicode\n.\n..\nmore "
	for address, want := range map[string]string{"ann@example.org": "MAIL FROM:<jobs@example.org> BODY=8BITMIME", "jörg@example.org": "MAIL FROM:<jobs@example.org> BODY=8BITMIME SMTPUTF8"} {
		server, said := takesOne(t, "127.0.0.1:0", "SMTPUTF8")
		spec, err := json.Marshal(MailSpec{To: []string{address, "Jörg <joerg@example.org>"}, Subject: "Übersicht " + strings.Repeat("ü", 200), Text: text + strings.Repeat("long ", 400)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newMail(&Host{Mailer: server, Known: &secret.Known{}}).Execute(t.Context(), attempt(string(spec))); err != nil {
			t.Fatal(err)
		}
		lines := said()
		if !slices.Contains(lines, want) {
			t.Errorf("%s: no %q in\n%s", address, want, strings.Join(lines, "\n"))
		}
		for _, line := range lines[slices.Index(lines, "DATA"):] {
			if len(line) > 100 || address == "ann@example.org" && strings.ContainsFunc(line, func(r rune) bool { return r > unicode.MaxASCII }) {
				t.Errorf("%s: the line %q", address, line)
			}
		}
		if body := strings.Join(lines, "\n"); !strings.Contains(body, "\n..\n...\nmore long") {
			t.Errorf("%s: its dots are lost in\n%s", address, body)
		}
	}
}

// A server that says nothing delays nothing else: the attempt ends with its context.
func TestMailEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	why := errors.New("its time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		if c, err := l.Accept(); err == nil {
			defer c.Close()
			cancel(why)
			<-t.Context().Done()
		}
	}()
	host := &Host{Mailer: &MailServer{Server: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: "none", From: "jobs@example.org"}, Known: &secret.Known{}}
	if _, err := newMail(host).Execute(ctx, attempt(`{"to": ["ann@example.org"], "subject": "x"}`)); !errors.Is(err, why) || strings.Contains(err.Error(), "closed") {
		t.Errorf("%v; want %q, and not that the connection is closed", err, why)
	}
}

// A mail that no run could send is refused earlier, with the place of the mistake.
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
		if _, err := readMail([]byte(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
