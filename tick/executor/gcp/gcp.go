// Package gcp asks the metadata server of Google Cloud for the tokens of the account that a process runs as. It needs no
// library: a request of plain HTTP to the platform.
package gcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/tick/executor/again"
)

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// patient is how long the metadata server may take for all tries for a token.
const patient = 10 * time.Second

// metadata is the client for tokens of Google's metadata server. It is not guarded: its address is that of the platform,
// and none of a job's. It keeps no connection: after a freeze of the process, a kept one may lead nowhere.
var metadata = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// AccessToken is a token for the APIs of Google: good for all that the account may do.
func AccessToken(ctx context.Context, env Lookup) (string, error) {
	text, err := ask(ctx, env, "token")
	if err != nil {
		return "", err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(text, &answer) != nil { // its text may quote the token
		return "", errors.New("the metadata server's answer is not JSON")
	}
	return answer.AccessToken, nil
}

// Identity is a token that says to an audience, such as the URL of a service, who the account is.
func Identity(ctx context.Context, env Lookup, audience string) (string, error) {
	text, err := ask(ctx, env, "identity?format=full&audience="+url.QueryEscape(audience))
	return strings.TrimSpace(string(text)), err
}

func ask(ctx context.Context, env Lookup, what string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	var text []byte
	err := again.Until(ctx, func(ctx context.Context) (passes bool, err error) { // the metadata server is out of reach for a moment while its host is maintained
		text, passes, err = get(ctx, env, "instance/service-accounts/default/"+what)
		return passes, err
	})
	if err != nil {
		return nil, fmt.Errorf("the metadata server of Google Cloud gives no token: %w", err)
	}
	return text, nil
}

func get(ctx context.Context, env Lookup, path string) (text []byte, passes bool, err error) {
	host, _ := env("GCE_METADATA_HOST")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cmp.Or(host, "169.254.169.254")+"/computeMetadata/v1/"+path, nil)
	if err != nil {
		return nil, false, errors.New("GCE_METADATA_HOST is no host")
	}
	req.Header.Set("Metadata-Flavor", "Google")
	resp, err := metadata.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, true, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Metadata-Flavor") != "Google" {
		return nil, again.Passes(resp.StatusCode), fmt.Errorf("status %d", resp.StatusCode)
	}
	const most = 64 << 10
	text, err = io.ReadAll(io.LimitReader(resp.Body, most))
	return text, true, err
}
