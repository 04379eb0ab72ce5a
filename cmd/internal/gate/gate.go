// Package gate decides who may call: it checks the credentials of an HTTP request.
//
// It knows three kinds of credentials. Any caller can send a bearer token (RFC 6750). A signature of the Standard
// Webhooks specification proves the sender, and does not contain a secret. Cloud schedulers send an identity token
// of OpenID Connect; nobody has to keep a secret for it.
package gate

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// leastSecret is the smallest length, in bytes, of a token and of a secret for signatures. A shorter one can be
// guessed.
const leastSecret = 16

// Settings are the credentials that callers may have. A caller needs one of them.
type Settings struct {
	Tokens  []string // bearer tokens; several, so that one can be replaced while both are in use
	Secrets []string // secrets of Standard Webhooks: base64, with whsec_ before it or without
	OIDC    OIDC
}

// Gate checks requests. Its methods may be called at the same time.
type Gate struct {
	tokens  [][sha256.Size]byte
	signers []*webhooks.Webhook
	issuer  *issuer
}

// New returns the check for the settings. No error quotes a secret.
func New(s Settings, now func() time.Time) (*Gate, error) {
	g := &Gate{}
	for _, token := range s.Tokens {
		if len(token) < leastSecret {
			return nil, fmt.Errorf("a token is shorter than %d characters; make one with `openssl rand -hex 32`", leastSecret)
		}
		g.tokens = append(g.tokens, sha256.Sum256([]byte(token)))
	}
	for _, secret := range s.Secrets {
		if len(strings.TrimPrefix(secret, "whsec_")) < leastSecret {
			return nil, fmt.Errorf("a webhook secret is shorter than %d characters; make one with `openssl rand -base64 32`", leastSecret)
		}
		w, err := webhooks.NewWebhook(secret)
		if err != nil {
			return nil, errors.New("a webhook secret is not base64; make one with `openssl rand -base64 32`")
		}
		g.signers = append(g.signers, w)
	}
	var err error
	g.issuer, err = newIssuer(s.OIDC, now)
	return g, err
}

// Any reports whether a caller can have a credential at all.
func (g *Gate) Any() bool { return len(g.tokens)+len(g.signers) > 0 || g.issuer != nil }

// RefusedError is the error for a request whose sender may not call.
type RefusedError struct {
	Status int    // of the answer
	Reason string // for the log of the host only: it would help somebody who tries to get in
}

func (r *RefusedError) Error() string { return r.Reason }

func unknown(format string, args ...any) error {
	return &RefusedError{http.StatusUnauthorized, fmt.Sprintf(format, args...)}
}

// Signed reports whether the sender of a request has to be known by a signature, which is of its body, too.
func (g *Gate) Signed(r *http.Request) bool {
	return len(g.signers) > 0 && r.Header.Get(webhooks.HeaderWebhookSignature) != ""
}

// Check returns nil if the sender of a request may call, and a *RefusedError otherwise. body is the body of the
// request, if the request is Signed.
func (g *Gate) Check(r *http.Request, body []byte) error {
	if r.Header.Get(webhooks.HeaderWebhookSignature) != "" {
		return g.checkSignature(r, body)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	switch {
	case scheme == "" && token == "":
		return unknown("it has neither an Authorization header nor a signature")
	case !strings.EqualFold(scheme, "Bearer"):
		return unknown("its Authorization header is not of the Bearer kind")
	case g.isToken(token):
		return nil
	case g.issuer != nil && strings.Count(token, ".") == 2: // the three parts of a signed token
		return g.issuer.check(r.Context(), token)
	}
	return unknown("its token is not one of ours")
}

// isToken compares digests, so that neither the time nor the length reveals anything about a token.
func (g *Gate) isToken(token string) bool {
	digest := sha256.Sum256([]byte(token))
	found := 0
	for _, t := range g.tokens {
		found |= subtle.ConstantTimeCompare(t[:], digest[:])
	}
	return found == 1
}

func (g *Gate) checkSignature(r *http.Request, body []byte) error {
	if len(g.signers) == 0 {
		return unknown("it is signed, but no secret for signatures is set")
	}
	var err error
	fits := slices.ContainsFunc(g.signers, func(w *webhooks.Webhook) bool {
		err = w.Verify(bytes.Clone(body), r.Header)
		return err == nil
	})
	if fits {
		return nil
	}
	return unknown("its signature does not hold: %v", err)
}
