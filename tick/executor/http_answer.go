package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
	"github.com/dbjobs/dbjobs/tick/executor/gcp"
	"github.com/dbjobs/dbjobs/tick/executor/outcome"
)

// judge decides whether an answer means success, and keeps the head of its body.
func (c *call) judge(resp *http.Response, refused error) (Result, error) {
	defer resp.Body.Close()
	head, facts, undone := c.head(resp)
	expected, stopped := c.spec.expects(resp.StatusCode) || c.started(resp.StatusCode, head), error(nil)
	if expected && undone == "" {
		// The server may be at work until the end of its answer, and many stop that work if the connection is closed before.
		_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, httpRest))
		if undone = brokenOff(resp, err); undone == "" {
			// The answer may have an end all the same: that of a server which ends it because we hang up.
			stopped = context.Cause(resp.Request.Context())
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", resp.Proto, resp.Status)
	for _, name := range []string{"Content-Type", "Content-Length", "Retry-After", "X-Request-Id", "X-Amzn-Requestid"} {
		if v := resp.Header.Get(name); v != "" {
			fmt.Fprintf(&out, "%s: %.200s\n", name, c.host.hide(c.task.Job.Owner, v))
		}
	}
	if head != "" {
		fmt.Fprintf(&out, "\n%s", head)
	}
	res := Result{Output: out.String(), Facts: facts}
	problem := "want 2xx"
	switch {
	case expected && undone == "":
		return res, stopped
	case expected:
		problem = "but " + undone
	case len(c.spec.Expect) > 0:
		problem = "want " + strings.Join(c.spec.Expect, " or ")
	}
	err := fmt.Errorf("the answer is %s, %s", strings.TrimSpace(resp.Status), problem)
	if refused != nil {
		err = fmt.Errorf("%w: %w", err, refused)
	} else if brief := strings.Join(strings.Fields(strings.ToValidUTF8(head, "")), " "); brief != "" {
		err = fmt.Errorf("%w: %.200s", err, brief)
	}
	err = &Error{engine.Failure{Code: strconv.Itoa(resp.StatusCode)}, err}
	if wait := c.retryAfter(resp); wait > 0 {
		err = &LaterError{wait, err}
	}
	return res, err
}

// head returns the head of an answer's body. If the server quotes a secret, the secret is hidden before the text is cut: the cut
// could leave a part of it. So a little more is read. facts is the whole answer, for later steps, if it is JSON and not too long.
// undone says what was not done, although the status is that of a success: an answer of a cloud may say it, and one that breaks off
// comes from a server that has died at its work.
func (c *call) head(resp *http.Response) (head, facts, undone string) {
	most := 2 * httpHead
	if c.task.Job.TellsSteps() {
		most = httpFacts + 1
	}
	whole := most
	if a := c.spec.Auth; a != nil && (a.AWS != nil || a.GCP != nil) {
		whole = outcome.Most
	}
	read, err := io.ReadAll(io.LimitReader(resp.Body, int64(whole)))
	broke := brokenOff(resp, err)
	undone = fmt.Sprintf("%.200s", c.host.hide(c.task.Job.Owner, cmp.Or(c.undone(resp, read, broke != ""), broke)))
	facts = fmt.Sprintf(`{"code": %d}`, resp.StatusCode)
	if err == nil && len(read) < most && utf8.Valid(read) && json.Valid(read) {
		facts = fmt.Sprintf(`{"code": %d, "body": %s}`, resp.StatusCode, read)
	}
	text := c.host.hide(c.task.Job.Owner, secret.Cut(string(read[:min(len(read), 2*httpHead)]), 2*httpHead-1))
	return text[:min(len(text), httpHead)], facts, undone
}

// started reports whether a service of a cloud refuses what an earlier delivery of this run has started.
func (c *call) started(status int, answer string) bool {
	a := c.spec.Auth
	return status == http.StatusBadRequest && a != nil && a.AWS != nil && aws.Started(c.task.Run.ID, c.header, c.body, []byte(answer))
}

// undone returns what a service of a cloud says was not done. What another server answers means what that server says.
func (c *call) undone(resp *http.Response, body []byte, broke bool) string {
	switch a := c.spec.Auth; {
	case a == nil || resp.StatusCode/100 != 2: // a status that says it, and that the spec expects
		return ""
	case a.AWS != nil:
		return aws.Undone(a.AWS.Service, c.spec.method(), c.header, resp.Header, body, broke)
	case a.GCP != nil && a.GCP.Token == "access":
		return gcp.Undone(c.spec.method(), resp.Request.URL.Path, body, broke)
	}
	return ""
}

// brokenOff says that an answer has not come to its end, by the error of reading it; empty: it has, or nobody can tell. A server of
// HTTP/1.0 ends its answer with the connection, and not all of them do that well.
func brokenOff(resp *http.Response, err error) string {
	ends := resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	if err == nil || !ends || resp.Request.Context().Err() != nil {
		return ""
	}
	return fmt.Sprintf("it broke off: %v", err)
}

// retryAfter returns how long the server asks to wait before another try, whatever its status: some limit the rate of requests with
// a 403, or ask with a 202 for the time until their work is done. A date is compared with the server's own clock, if the answer
// shows that clock.
func (c *call) retryAfter(resp *http.Response) time.Duration {
	after := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if n, err := strconv.ParseUint(after, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) { // then n is the greatest
		return time.Duration(n) * time.Second
	}
	until, err := http.ParseTime(after)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = c.now
	}
	return until.Sub(now)
}
