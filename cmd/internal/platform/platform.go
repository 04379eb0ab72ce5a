package wake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// How often a request is sent where the platform does not take it at once, and the first wait, which doubles.
const (
	tries      = 3
	firstPause = 200 * time.Millisecond
)

// client follows no redirect: the request has a token.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// endpoint reads the URL of an API. What proves who asks is sent by TLS, or to this host only.
func endpoint(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("found %.80q, want the URL of the API without a path, such as https://scheduler.eu-central-1.amazonaws.com", raw)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("want https: the request says who asks")
	}
	return u, nil
}

// send posts JSON until the platform has taken it. It has also where the alarm is there already (409). login adds to each
// try what says who asks.
func send(ctx context.Context, u *url.URL, body []byte, login func(*http.Request) error) error {
	for try := 1; ; try++ {
		err := post(ctx, u, body, login)
		var refused *refusedError
		if err == nil || try == tries || errors.As(err, &refused) && !refused.passes() {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(firstPause << (try - 1)):
		}
	}
}

// refusedError is what a platform answers that does not take an alarm.
type refusedError struct {
	host, why string
	status    int
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s answers with status %d%s", e.host, e.status, e.why)
}

// passes reports whether a later try may be taken.
func (e *refusedError) passes() bool {
	return e.status >= 500 || e.status == http.StatusTooManyRequests
}

// reason matches the names of errors, as both clouds write them. The text beside may quote what was sent.
var reason = lazyregexp.New(`\b[A-Z][A-Za-z]+Exception\b|\b[A-Z]+(?:_[A-Z]+)+\b`)

func post(ctx context.Context, u *url.URL, body []byte, login func(*http.Request) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask %s: %w", u.Host, err)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := login(req); err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusConflict:
		return nil
	case err != nil:
		return fmt.Errorf("read the answer of %s: %w", u.Host, err)
	}
	refused := &refusedError{host: u.Host, status: resp.StatusCode}
	name := resp.Header.Get("X-Amzn-Errortype")
	if name == "" {
		name = string(reason.Find(text))
	}
	if name != "" {
		refused.why = ": " + fmt.Sprintf("%.60s", name)
	}
	return refused
}
