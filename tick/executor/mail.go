package executor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	stdmail "net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/engine"
)

// MailSpec is the Spec of the executor mail: one mail, sent by the server of the host settings. In the
// subject and in the text, ${run_id} and other facts are replaced.
type MailSpec struct {
	To      []string `json:"to"`
	CC      []string `json:"cc,omitempty"`
	Subject string   `json:"subject"`
	Text    string   `json:"text,omitempty"`
}

var mailKind = Kind{
	Name: "mail",
	Keys: []Key{{Name: "mail", Type: Mapping, Keys: []Key{
		{Name: "to", Type: List, Flag: "mail-to", Help: "address to send a mail to; may be given several times"},
		{Name: "cc", Type: List, Flag: "mail-cc", Help: "address that gets a copy of the mail; may be given several times"},
		{Name: "subject", Type: Text, Flag: "mail-subject", Help: "subject of the mail"},
		{Name: "text", Type: Text, Flag: "mail-text", Help: "text of the mail"},
	}}},
	Spec: func(given map[string]any) (json.RawMessage, error) {
		b, err := json.Marshal(given["mail"])
		if err != nil {
			return nil, err
		}
		s, err := readMail(b)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	},
	Values: func(raw json.RawMessage) (map[string]any, error) {
		var s MailSpec
		err := strictly(raw, &s)
		values := map[string]any{"to": s.To, "cc": s.CC, "subject": s.Subject, "text": s.Text}
		return map[string]any{"mail": values}, err
	},
	Line: func(raw json.RawMessage) string {
		var s MailSpec
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return fmt.Sprintf("to %s: %s", strings.Join(s.To, ", "), s.Subject)
	},
	Check: func(spec json.RawMessage) error {
		_, err := readMail(spec)
		return err
	},
	Open: func(_ *store.Store, h *Host) (Executor, error) { return newMail(h), nil },
}

// readMail reads the spec of a step of the executor mail, and refuses what no run could do.
func readMail(spec json.RawMessage) (s MailSpec, err error) {
	if err := strictly(spec, &s); err != nil {
		return s, fmt.Errorf(`the spec is not of the form {"to": ["…"], "subject": "…"}: %w`, err)
	}
	problem := func(err error, at ...any) error { return &KeyError{At: append([]any{"mail"}, at...), Err: err} }
	if len(s.To) == 0 {
		return s, problem(errors.New("is missing, and mail needs it"), "to")
	}
	for name, list := range map[string][]string{"to": s.To, "cc": s.CC} {
		for i, address := range list {
			if _, err := readAddress(address); err != nil {
				return s, problem(err, name, i)
			}
		}
	}
	if strings.TrimSpace(s.Subject) == "" {
		return s, problem(errors.New("is missing, and mail needs it"), "subject")
	}
	for name, text := range map[string]string{"subject": s.Subject, "text": s.Text} {
		if secretReference.MatchString(text) {
			return s, problem(errors.New("a secret does not belong into a mail, which others read"), name)
		}
		if err := CheckReferences(text); err != nil {
			return s, problem(err, name)
		}
	}
	return s, nil
}

// readAddress reads an address, with or without a name. It cannot contain a fact: a fact would then decide
// who gets the mail.
func readAddress(text string) (*stdmail.Address, error) {
	a, err := stdmail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, "${") {
		return nil, fmt.Errorf("found %.100q, want an address such as ann@example.org", text)
	}
	return a, nil
}

// Mail is the executor mail.
type Mail struct {
	host  *Host
	roots *x509.CertPool // set by tests; nil: the roots of the system
}

// newMail returns an executor that sends mails if the host allows it.
func newMail(h *Host) *Mail { return &Mail{host: h} }

// mailTimeout bounds the dialogue with the server, also if the step has a longer timeout.
const mailTimeout = time.Minute

// Execute sends the mail to all recipients, or to none.
//
// Crash window: the server has accepted the mail, and this is not on record yet. The next try sends the
// mail again with the same Message-ID, so that a mailbox may recognize it.
func (m *Mail) Execute(ctx context.Context, r Request) (Result, error) {
	spec, err := readMail(r.Spec)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", errSpec, err)
	}
	server, err := m.host.Mail(r.Task.Job.Owner)
	if err != nil {
		return Result{}, err
	}
	message, err := spec.message(server, r)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mailTimeout, fmt.Errorf("no answer within %s", mailTimeout))
	defer cancel()
	reached := false
	client, err := m.client(ctx, server, beyondASCII(message), &reached)
	if err != nil {
		return Result{}, fmt.Errorf("the mail server %s: %w", server.Server, err)
	}
	var addresses refusedAddresses
	client.ErrorHandlerRegistry = smtp.NewErrorHandlerRegistry()
	client.ErrorHandlerRegistry.SetDefaultHandler(&addresses)
	// An error after the server has accepted the mail, such as at the end of the dialogue, is no reason to send it again.
	if err := client.DialAndSendWithContext(ctx, message); err != nil && !message.IsDelivered() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the library's error is about the connection, which the end of the context has closed
		}
		if err = refusedMail(server, err, addresses.worst); !reached {
			err = &UnsentError{err}
		}
		return Result{}, err
	}
	id := message.GetMessageID()
	return Result{Output: fmt.Sprintf("%s took the mail %s for %s", server.Server, id, strings.Join(append(spec.To, spec.CC...), ", "))}, nil
}

// refusedAddresses hears what the server answers to commands. It keeps the largest code of those that refuse an address.
type refusedAddresses struct{ worst int }

// HandleError is called for each answer that is an error. It changes nothing about it.
func (r *refusedAddresses) HandleError(_, command string, _ *textproto.Conn, err error) error {
	if answer, ok := errors.AsType[*textproto.Error](err); ok && command == "rcpt" {
		r.worst = max(r.worst, answer.Code)
	}
	return err
}

// refusedMail says which server did not accept the mail, with the code of its answer if it gave one. If it refused several
// addresses, worst is the largest code of these answers: no try succeeds while one of them is refused for good. A
// code of 500 or more is permanent (RFC 5321, 4.2.1): an address is unknown, a login is wrong, or the mail
// is too large. The same mail would be refused again.
func refusedMail(server *MailServer, err error, worst int) error {
	code := worst
	if refusal, ok := errors.AsType[*mail.SendError](err); ok {
		code = max(worst, refusal.ErrorCode())
	} else if answer, ok := errors.AsType[*textproto.Error](err); ok { // an error before the mail was sent, such as at the login
		code = answer.Code
	}
	if errors.Is(err, mail.ErrNoSupportedAuthDiscovered) || strings.Contains(err.Error(), "does not support SMTP AUTH") {
		err = errors.New("it offers no login that dbjobs knows; if it needs none, remove user and password from the host settings")
		if server.TLS == "none" {
			err = errors.New("it offers no login that is safe without TLS; set tls: starttls or tls: tls in the host settings, or remove user and password there")
		}
	}
	err = fmt.Errorf("the mail server %s did not take the mail: %w", server.Server, err)
	if code == 0 {
		return err
	}
	err = &Error{engine.Failure{Code: strconv.Itoa(code)}, err}
	if code >= 500 {
		err = fmt.Errorf("%w; %w: the server means this for good", err, ErrFinal)
	}
	return err
}

// message makes the mail. Its Message-ID is the same in all tries of a run's step. A subject is one
// line: a character that would end the line, and begin another header, becomes a space.
func (s *MailSpec) message(server *MailServer, r Request) (*mail.Msg, error) {
	facts := Facts(r.Task)
	expand := func(what string) (string, error) {
		v, err := Expand(what, facts)
		if err != nil {
			return "", err
		}
		told, err := text(v)
		return strings.ToValidUTF8(strings.ReplaceAll(told, "\x00", ""), "\uFFFD"), err
	}
	subject, err := expand(s.Subject)
	if err != nil {
		return nil, fmt.Errorf("the subject: %w", err)
	}
	body, err := expand(s.Text)
	if err != nil {
		return nil, fmt.Errorf("the text: %w", err)
	}
	sender, err := readAddress(server.From)
	if err != nil {
		return nil, fmt.Errorf("mail.from in the host settings: %w", err)
	}
	message := mail.NewMsg()
	message.FromMailAddress(sender)
	if err := errors.Join(message.To(s.To...), message.Cc(s.CC...)); err != nil {
		return nil, err
	}
	message.Subject(oneLine(subject))
	_, domain, _ := strings.Cut(sender.Address, "@")
	message.SetMessageIDWithValue(requestKey(r.Task) + "@" + domain)
	message.SetDateWithValue(r.Now)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // so that no robot answers it
	message.SetBodyString(mail.TypeTextPlain, body)
	return message, nil
}

// mostSubject bounds a subject, in characters.
const mostSubject = 250

// oneLine returns a text on one line, cut if it is too long.
func oneLine(s string) string {
	line := []rune(strings.Join(strings.FieldsFunc(s, unicode.IsControl), " "))
	if len(line) > mostSubject {
		line = append(line[:mostSubject-1], '…')
	}
	return string(line)
}

// beyondASCII reports whether an address of the mail has other characters than ASCII. Everything else in it is encoded.
func beyondASCII(m *mail.Msg) bool {
	addresses, _ := m.GetRecipients() // without an address, or a sender, the mail is not sent
	sender, _ := m.GetSender(false)
	return strings.ContainsFunc(sender+strings.Join(addresses, ""), func(r rune) bool { return r > unicode.MaxASCII })
}

// client makes a client that speaks TLS to the server, unless the host settings say otherwise. The
// dialogue ends when the context ends. international says that the mail needs SMTPUTF8 (RFC 6531): one that asks for it without
// need bounces at the first server on its way that does not know it. The client sets reached when it has a connection.
func (m *Mail) client(ctx context.Context, server *MailServer, international bool, reached *bool) (*mail.Client, error) {
	options := []mail.Option{
		mail.WithTimeout(mailTimeout), mail.WithoutNoop(),
		mail.WithTLSConfig(&tls.Config{ServerName: server.Server, RootCAs: m.roots, MinVersion: tls.VersionTLS12}),
	}
	switch server.TLS {
	case "tls":
		options = append(options, mail.WithSSL())
	case "none":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if !international {
		options = append(options, mail.WithoutSMTPUTF8())
	}
	if server.Port > 0 {
		options = append(options, mail.WithPort(server.Port))
	}
	if server.User != "" {
		password := ""
		if server.Password != nil {
			var err error
			if password, err = server.Password(ctx); err != nil {
				return nil, err
			}
		}
		login := mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover)
		if server.TLS == "tls" { // the library does not see that the connection is encrypted, because we make it
			login = mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthCramMD5, mail.SMTPAuthPlain, mail.SMTPAuthLogin)
		}
		options = append(options, login, mail.WithUsername(server.User), mail.WithPassword(password))
	}
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		port := address[strings.LastIndexByte(address, ':')+1:] // the library writes an address of IPv6 without brackets, if the settings have none
		c, err := (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(strings.Trim(server.Server, "[]"), port))
		if err != nil {
			return nil, err
		}
		*reached = true
		context.AfterFunc(ctx, func() { _ = c.Close() }) // this ends a read or write that hangs
		if server.TLS == "tls" {
			return tls.Client(c, &tls.Config{ServerName: server.Server, RootCAs: m.roots, MinVersion: tls.VersionTLS12}), nil
		}
		return c, nil
	}
	return mail.NewClient(server.Server, append(options, mail.WithDialContextFunc(dial))...)
}
