package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor/again"
)

// The extension begins to answer while the function starts. Until then, it is asked again after each pause.
const (
	secretPatience = 3 * time.Second
	secretPause    = 50 * time.Millisecond
)

// notReadyError is the error of an extension that does not take requests yet.
type notReadyError struct{ error }

func (e notReadyError) Unwrap() error { return e.error }

// MomentaryError is a failure of the platform that passes without help: it throttles, it fails, or it does not answer in time.
type MomentaryError struct{ error }

func (e MomentaryError) Unwrap() error { return e.error }

// Secret reads a secret of Secrets Manager through the AWS Parameters and Secrets Lambda Extension. The
// extension caches a secret for some minutes, so after a rotation it may return the old value for that
// long. id is the secret's ARN or name. No error holds the secret. One that passes is a MomentaryError.
func Secret(ctx context.Context, env Lookup, id string) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, secretPatience)
	defer cancel()
	passing := false
	var answered error                                                          // that of the extension to an earlier request
	err = again.Until(ctx, func(ctx context.Context) (passes bool, err error) { // Secrets Manager may throttle, or fail for a moment
		for {
			text, passes, err = askExtension(ctx, env, id)
			if answered != nil && ctx.Err() != nil && err != nil { // the end of the time has cut this request, and says less
				return true, answered
			}
			if _, waits := errors.AsType[notReadyError](err); !waits {
				passing = passes
				return passes, err
			}
			if passing = passing || passes; passes { // it is there, as it has taken a request
				answered = err
			}
			select {
			case <-ctx.Done():
				return false, err
			case <-time.After(secretPause):
			}
		}
	})
	if err != nil && passing {
		err = MomentaryError{err}
	}
	return text, err
}

// direct is a client that uses no proxy, because the extension is on the loopback interface, and
// follows no redirect, because the request holds the session's token. It keeps no connection: after a freeze of the process,
// a kept one may lead nowhere.
var direct = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableKeepAlives: true},
}

// refusal matches the names of AWS's errors, such as AccessDeniedException.
var refusal = lazyregexp.New(`\b(?:AccessDenied|ResourceNotFound|DecryptionFailure|InvalidParameter|InvalidRequest|InternalServiceError|Throttling|ExpiredToken|UnrecognizedClient|InvalidIdentityToken|ExpiredTokenException|IDPRejectedClaim|IDPCommunicationError)(?:Exception)?\b`)

// reason returns AWS's name of the error in an answer, to go behind a message, or nothing.
func reason(body []byte) string {
	if name := refusal.Find(body); name != nil {
		return ": " + string(name)
	}
	return ""
}

func askExtension(ctx context.Context, env Lookup, id string) (secret string, passes bool, err error) {
	port := env.value("PARAMETERS_SECRETS_EXTENSION_HTTP_PORT")
	if port == "" {
		port = "2773"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", port), Path: "/secretsmanager/get", RawQuery: url.Values{"secretId": {id}}.Encode()}
	taken := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { taken = true }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", false, fmt.Errorf("the port of the secrets extension: %w", err)
	}
	req.Header.Set("X-Aws-Parameters-Secrets-Token", env.value("AWS_SESSION_TOKEN"))
	resp, err := direct.Do(req)
	if err != nil { // where nobody takes a request for so long, the extension is missing
		return "", taken, notReadyError{fmt.Errorf("the AWS Parameters and Secrets extension does not answer on port %s; add its layer to the function: %w", port, err)}
	}
	defer resp.Body.Close()
	const most = 1 << 20 // a secret has 64 KiB at most
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return "", true, fmt.Errorf("reading the secret %s: %w", id, err)
	}
	if resp.StatusCode != http.StatusOK {
		// The answer may hold anything, even the session's token. Only AWS's name of the error is shown.
		why := reason(body)
		if bytes.Contains(body, []byte("not ready")) {
			return "", true, notReadyError{fmt.Errorf("the secrets extension is not ready to read %s: status %d", id, resp.StatusCode)}
		}
		if again.Passes(resp.StatusCode) || momentary.MatchString(why) {
			return "", true, fmt.Errorf("the secrets extension cannot read %s now: status %d%s", id, resp.StatusCode, why)
		}
		return "", false, fmt.Errorf("the secrets extension refuses %s with status %d%s (does the function's role allow secretsmanager:GetSecretValue on it, and kms:Decrypt if it has a key of its own?)",
			id, resp.StatusCode, why)
	}
	var answer struct{ SecretString *string }
	if err := json.Unmarshal(body, &answer); err != nil { // its text may quote the secret
		return "", false, fmt.Errorf("the secrets extension's answer for %s is not JSON", id)
	}
	if answer.SecretString == nil || *answer.SecretString == "" {
		return "", false, errors.New("the secret " + id + " holds no text")
	}
	return *answer.SecretString, false, nil
}
