package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Google issues the identity tokens of Cloud Scheduler, Cloud Tasks and Pub/Sub.
const Google = "https://accounts.google.com"

// patience is the time that the issuer has to answer a request for its keys.
const patience = 5 * time.Second

// OIDC says which identity tokens of OpenID Connect are accepted. Without an audience, none is accepted.
type OIDC struct {
	Issuer   string   // a URL; Google if it is empty
	Audience string   // the audience that the token must have: in general the URL of the service
	Callers  []string // the callers, one of which the token must name; a text with an @ is a verified email address, any other text is a subject
}

// issuer checks the tokens of one issuer. It asks the issuer for its keys when the first token comes, and again
// when a token is signed with an unknown key.
type issuer struct {
	OIDC
	now    func() time.Time
	client *http.Client

	mu  sync.Mutex
	ask func() (*oidc.Provider, error) // asks once, and has the answer from then on; nil: nobody asks, and there is no answer
}

func newIssuer(o OIDC, now func() time.Time) (*issuer, error) {
	switch {
	case o.Audience == "" && len(o.Callers) == 0 && o.Issuer == "":
		return nil, nil
	case o.Audience == "":
		return nil, errors.New("identity tokens need an audience: the URL of this service, as the caller's settings have it")
	case len(o.Callers) == 0:
		// Everybody who has an account at the issuer can get a token for any audience.
		return nil, errors.New("identity tokens need the callers: the email address of the service account, or the subject (sub) of its tokens")
	case slices.ContainsFunc(o.Callers, func(c string) bool { return strings.TrimSpace(c) != c || c == "" }):
		// An empty caller would match a token without a subject; a caller with a blank at an end would match none.
		return nil, fmt.Errorf("a caller of identity tokens is empty, or begins or ends with a blank: %q", o.Callers)
	case o.Issuer == "":
		o.Issuer = Google
	}
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return nil, fmt.Errorf("the issuer must be a URL that begins with https://, such as %s", Google)
	}
	return &issuer{OIDC: o, now: now, client: &http.Client{Timeout: patience}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// discover returns what the issuer publishes about itself. Requests at the same time ask the issuer once, and get the same
// answer. After an error, the next request asks again.
func (i *issuer) discover(ctx context.Context) (*oidc.Provider, error) {
	i.mu.Lock()
	if i.ask == nil {
		ctx = oidc.ClientContext(context.WithoutCancel(ctx), i.client) // others need the answer, too; the client has its own patience
		i.ask = sync.OnceValues(func() (*oidc.Provider, error) {
			p, err := oidc.NewProvider(ctx, i.Issuer)
			if err != nil {
				i.mu.Lock()
				defer i.mu.Unlock()
				i.ask = nil
			}
			return p, err
		})
	}
	ask := i.ask
	i.mu.Unlock()
	return ask()
}

// noKeys begins the error for keys that could not be fetched. The library gives that error no type.
const noKeys = "failed to verify signature: fetching keys "

// unsigned is what Cloud Run puts in the place of the signature where it has checked a token itself. Nobody can check it again.
const unsigned = ".SIGNATURE_REMOVED_BY_GOOGLE"

// check returns nil for a token that the issuer has signed for our audience and for one of the callers, and that
// has not expired.
func (i *issuer) check(ctx context.Context, token string) error {
	if strings.HasSuffix(token, unsigned) {
		return unknown("the signature of its identity token is missing, so the token cannot be checked here; Cloud Run removes it when it checks callers itself: " +
			"turn that check off (--no-invoker-iam-check of gcloud)")
	}
	p, err := i.discover(ctx)
	if err != nil {
		return i.absent(err)
	}
	checked, err := p.Verifier(&oidc.Config{ClientID: i.Audience, Now: i.now}).Verify(ctx, token)
	if err != nil && strings.HasPrefix(err.Error(), noKeys) {
		return i.absent(err)
	}
	if err != nil {
		return unknown("its identity token does not hold: %s", strings.TrimPrefix(err.Error(), "oidc: "))
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := checked.Claims(&claims); err != nil {
		return unknown("its identity token cannot be read: %v", err)
	}
	for _, c := range i.Callers {
		if email := strings.Contains(c, "@"); email && claims.Verified && c == claims.Email || !email && c == checked.Subject {
			return nil
		}
	}
	return &RefusedError{http.StatusForbidden, fmt.Sprintf("its identity token is for the subject %q, email %q (verified: %t); want one of %q",
		checked.Subject, claims.Email, claims.Verified, i.Callers)}
}

// absent returns the answer for the time in which the issuer does not give its keys: the caller should try again.
func (i *issuer) absent(err error) error {
	return &RefusedError{http.StatusServiceUnavailable, fmt.Sprintf("the keys of %s could not be fetched: %v", i.Issuer, err)}
}
