// Package platform sends requests to the APIs of cloud platforms, with the login of the process. It repeats a
// request that the platform does not accept at once. An error never contains text of an answer, except the name of
// the problem.
package platform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/again"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
	"github.com/dbjobs/dbjobs/tick/executor/gcp"
)

// client follows no redirect, because the request contains a token. It keeps no connection: a process sends few requests, and
// one that a platform has frozen meanwhile may find a connection that leads nowhere.
var client = &http.Client{Transport: oneCall(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func oneCall() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	return t
}

// Endpoint reads the URL of an API. A request proves the identity of its sender, so it goes only over TLS, or to
// this host.
func Endpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("found %.80q, want the URL of the API without a path, such as https://scheduler.eu-central-1.amazonaws.com", raw)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("want https: the request contains a credential")
	}
	return u, nil
}

// Login adds to a request the proof of its sender's identity. body is the body of the request.
type Login func(req *http.Request, body []byte) error

// AWS signs requests to a service of AWS in a region. known learns the secrets.
func AWS(source *aws.Source, region, service string, known *secret.Known, now func() time.Time) Login {
	return func(req *http.Request, body []byte) error {
		c, err := source.Credentials(req.Context(), now())
		if err != nil {
			return err
		}
		known.Issue(c.Secret)
		known.Issue(c.SessionToken)
		aws.Sign(req.Header, req.Method, req.URL, body, c, region, service, now())
		return nil
	}
}

// GCP adds the token of the account as which the process runs. known learns the token.
func GCP(env gcp.Lookup, known *secret.Known) Login {
	return func(req *http.Request, _ []byte) error {
		token, err := gcp.AccessToken(req.Context(), env)
		if err != nil {
			return err
		}
		known.Issue(token)
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}

// Call is a request. At most Most bytes of the answer are read; the rest is left out.
type Call struct {
	Method string
	URL    *url.URL
	Body   []byte // JSON, if any
	Login  Login
	Most   int64
}

// Send sends the request until the platform answers it with 200. Any other answer is a *RefusedError.
func (c Call) Send(ctx context.Context) (text []byte, err error) {
	err = again.Until(ctx, func(ctx context.Context) (passes bool, err error) {
		text, passes, err = c.once(ctx)
		return passes, err
	})
	return text, err
}

// RefusedError is the answer of a platform that does not do what the request asks for.
type RefusedError struct {
	Host   string
	Status int
	Why    string // the name of the problem, such as AccessDenied; empty: the answer has none
	Header http.Header
}

func (e *RefusedError) Error() string {
	why := ""
	if e.Why != "" {
		why = ": " + e.Why
	}
	return fmt.Sprintf("%s answers with status %d%s", e.Host, e.Status, why)
}

// reason matches the names of errors, in the forms that the clouds use. The text beside the name may quote the
// request.
var reason = lazyregexp.New(`<Code>([A-Za-z.]+)</Code>|\b([A-Z][A-Za-z]+Exception)\b|\b([A-Z]+(?:_[A-Z]+)+)\b`)

func (c Call) once(ctx context.Context) (text []byte, passes bool, err error) {
	req, err := http.NewRequestWithContext(ctx, c.Method, c.URL.String(), bytes.NewReader(c.Body))
	if err != nil {
		return nil, false, fmt.Errorf("ask %s: %w", c.URL.Host, err)
	}
	if len(c.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if err := c.Login(req, c.Body); err != nil { // it was tried again already, unless the time of this try was too short for that
		return nil, ctx.Err() != nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, true, err
	}
	defer resp.Body.Close()
	const refusal = 64 << 10
	most := c.Most
	if resp.StatusCode != http.StatusOK {
		most = refusal
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, most))
	if resp.StatusCode == http.StatusOK {
		if err != nil {
			return nil, true, fmt.Errorf("read the answer of %s: %w", c.URL.Host, err)
		}
		return text, false, nil
	}
	refused := &RefusedError{Host: c.URL.Host, Status: resp.StatusCode, Why: resp.Header.Get("X-Amzn-Errortype"), Header: resp.Header}
	if m := reason.FindStringSubmatch(string(text)); refused.Why == "" && m != nil {
		refused.Why = strings.Join(m[1:], "") // one of the groups has a text, the others are empty
	}
	refused.Why = fmt.Sprintf("%.60s", refused.Why)
	return nil, again.Passes(refused.Status), refused
}
