package gate

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	token  = "0123456789abcdef-a-token"
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

func request(t *testing.T, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/tick", http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// status returns the status of the answer. It is 200 if the request may come in.
func status(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return http.StatusOK
	}
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok {
		t.Fatalf("not refused, but failed: %v", err)
	}
	if strings.Contains(refused.Reason, token) || strings.Contains(refused.Reason, secret) {
		t.Errorf("the reason holds a secret: %s", refused.Reason)
	}
	return refused.Status
}

func TestTokens(t *testing.T) {
	g, err := New(Settings{Tokens: []string{"another-token-of-ours", token}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]int{
		"Bearer " + token:               http.StatusOK,
		"bearer  " + token + " ":        http.StatusOK,
		"Bearer another-token-of-ours":  http.StatusOK,
		"Bearer " + token[1:]:           http.StatusUnauthorized,
		"Bearer " + token + "x":         http.StatusUnauthorized,
		"Bearer ":                       http.StatusUnauthorized,
		"Bearer":                        http.StatusUnauthorized,
		"Basic " + token:                http.StatusUnauthorized,
		token:                           http.StatusUnauthorized,
		"Bearer " + token + "," + token: http.StatusUnauthorized,
		"Bearer a.b.c":                  http.StatusUnauthorized,
		"":                              http.StatusUnauthorized,
	} {
		if got := status(t, g.Check(request(t, "Authorization", value), nil)); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
	if got := status(t, g.Check(request(t), nil)); got != http.StatusUnauthorized {
		t.Errorf("no header: %d", got)
	}
}

func TestSignatures(t *testing.T) {
	other := "whsec_" + strings.Repeat("QUJD", 8)
	g, err := New(Settings{Secrets: []string{secret, other}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(key string, at time.Time, body string) *http.Request {
		w, err := webhooks.NewWebhook(key)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.Sign("msg_1", at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return request(t, webhooks.HeaderWebhookID, "msg_1", webhooks.HeaderWebhookSignature, s)
	}
	at := func(r *http.Request, when time.Time) *http.Request {
		n, err := json.Marshal(when.Unix())
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(webhooks.HeaderWebhookTimestamp, string(n))
		return r
	}
	now := time.Now()
	hour := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		r    *http.Request
		body string
		want int
	}{
		"signed":              {at(signed(secret, now, "{}"), now), "{}", http.StatusOK},
		"no body":             {at(signed(secret, now, ""), now), "", http.StatusOK},
		"by the other":        {at(signed(other, now, "{}"), now), "{}", http.StatusOK},
		"another body":        {at(signed(secret, now, "{}"), now), "{ }", http.StatusUnauthorized},
		"an hour old":         {at(signed(secret, hour, "{}"), hour), "{}", http.StatusUnauthorized},
		"old, said to be new": {at(signed(secret, hour, "{}"), now), "{}", http.StatusUnauthorized},
		"another secret":      {at(signed("whsec_"+strings.Repeat("WFla", 8), now, "{}"), now), "{}", http.StatusUnauthorized},
		"no time":             {request(t, webhooks.HeaderWebhookSignature, "v1,abc"), "{}", http.StatusUnauthorized},
		"unsigned":            {request(t), "{}", http.StatusUnauthorized},
	} {
		if got := status(t, g.Check(c.r, []byte(c.body))); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	tokens, err := New(Settings{Tokens: []string{token}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if got := status(t, tokens.Check(at(signed(secret, now, ""), now), nil)); got != http.StatusUnauthorized {
		t.Errorf("signed, without a secret here: %d", got)
	}
}

// provider is an issuer of identity tokens with real keys.
type provider struct {
	*httptest.Server
	key    atomic.Pointer[rsa.PrivateKey]
	id     atomic.Pointer[string]
	asked  atomic.Int32
	absent atomic.Bool
}

func issue(t *testing.T) *provider {
	p := &provider{}
	p.rotate(t, "one")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.asked.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Load().Public(), KeyID: *p.id.Load(), Algorithm: "RS256", Use: "sig"}}})
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.absent.Load() {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) rotate(t *testing.T, id string) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.key.Store(key)
	p.id.Store(&id)
}

// sign returns a token with the claims of a service account, some of them changed.
func (p *provider) sign(t *testing.T, alg jose.SignatureAlgorithm, key any, changed map[string]any) string {
	claims := map[string]any{
		"iss": p.URL, "aud": "https://jobs.example.com", "sub": "1234567890", "email": "ticker@example.iam.gserviceaccount.com",
		"email_verified": true, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changed)
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", *p.id.Load()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestIdentityTokens(t *testing.T) {
	p := issue(t)
	of := OIDC{Issuer: p.URL, Audience: "https://jobs.example.com", Callers: []string{"ticker@example.iam.gserviceaccount.com", "42"}}
	g, err := New(Settings{OIDC: of, Tokens: []string{token}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	check := func(token string) int { return status(t, g.Check(request(t, "Authorization", "Bearer "+token), nil)) }

	p.absent.Store(true)
	if got := check(p.sign(t, jose.RS256, p.key.Load(), nil)); got != http.StatusServiceUnavailable {
		t.Errorf("the issuer does not answer: %d", got)
	}
	if got := check(token); got != http.StatusOK {
		t.Errorf("a bearer token, while the issuer does not answer: %d", got)
	}
	p.absent.Store(false)

	const nobody = "nobody@example.com"
	for name, c := range map[string]struct {
		changed map[string]any
		want    int
	}{
		"as it should be":      {nil, http.StatusOK},
		"by subject":           {map[string]any{"sub": "42", "email": nobody}, http.StatusOK},
		"several audiences":    {map[string]any{"aud": []string{"https://other.example.com", of.Audience}}, http.StatusOK},
		"another audience":     {map[string]any{"aud": "https://other.example.com"}, http.StatusUnauthorized},
		"no audience":          {map[string]any{"aud": nil}, http.StatusUnauthorized},
		"another issuer":       {map[string]any{"iss": Google}, http.StatusUnauthorized},
		"expired":              {map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, http.StatusUnauthorized},
		"never expires":        {map[string]any{"exp": nil}, http.StatusUnauthorized},
		"not yet":              {map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, http.StatusUnauthorized},
		"another caller":       {map[string]any{"email": nobody}, http.StatusForbidden},
		"an unverified email":  {map[string]any{"email_verified": false}, http.StatusForbidden},
		"an email as subject":  {map[string]any{"email": nil, "sub": "ticker@example.iam.gserviceaccount.com"}, http.StatusForbidden},
		"a subject as email":   {map[string]any{"email": "42"}, http.StatusForbidden},
		"neither of them":      {map[string]any{"email": nil, "sub": nil}, http.StatusForbidden},
		"verified as a string": {map[string]any{"email_verified": "true"}, http.StatusUnauthorized},
	} {
		if got := check(p.sign(t, jose.RS256, p.key.Load(), c.changed)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}

	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(p.key.Load().Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	whole := p.sign(t, jose.RS256, p.key.Load(), nil)
	parts := strings.Split(whole, ".")
	const none = "eyJhbGciOiJub25lIn0" // {"alg":"none"}
	for name, token := range map[string]string{
		"signed by another key":             p.sign(t, jose.RS256, foreign, nil),
		"signed with our public key":        p.sign(t, jose.HS256, public, nil),
		"with an algorithm that is not one": none + "." + parts[1] + ".",
		"without its signature":             parts[0] + "." + parts[1] + ".",
		"nothing but dots":                  "..",
		"cut":                               whole[:len(whole)-10],
	} {
		if got := check(token); got != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, got)
		}
	}

	checked := g.Check(request(t, "Authorization", "Bearer "+parts[0]+"."+parts[1]+".SIGNATURE_REMOVED_BY_GOOGLE"), nil)
	if got := status(t, checked); got != http.StatusUnauthorized || !strings.Contains(checked.Error(), "--no-invoker-iam-check") {
		t.Errorf("checked by Cloud Run: %d, %v", got, checked)
	}

	asked := p.asked.Load()
	for range 20 {
		if got := check(whole); got != http.StatusOK {
			t.Fatalf("again: %d", got)
		}
	}
	if p.asked.Load() != asked {
		t.Errorf("the issuer was asked %d times for keys that are known", p.asked.Load()-asked)
	}
	p.rotate(t, "two")
	if got := check(p.sign(t, jose.RS256, p.key.Load(), nil)); got != http.StatusOK {
		t.Errorf("signed with a new key: %d", got)
	}
	p.rotate(t, "three")
	p.absent.Store(true)
	if got := check(p.sign(t, jose.RS256, p.key.Load(), nil)); got != http.StatusServiceUnavailable {
		t.Errorf("signed with a new key, while the issuer does not answer: %d", got)
	}
}

// While the issuer does not answer, a caller who sends many tokens holds up no other caller: requests at the same time ask once,
// and get the same answer.
func TestManyTokensWhileTheIssuerFails(t *testing.T) {
	const callers, few = 20, 5
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		time.Sleep(200 * time.Millisecond)
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer s.Close()
	g, err := New(Settings{OIDC: OIDC{Issuer: s.URL, Audience: "https://jobs.example.com", Callers: []string{"42"}}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			if got := status(t, g.Check(request(t, "Authorization", "Bearer a.b.c"), nil)); got != http.StatusServiceUnavailable {
				t.Errorf("%d", got)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n > few {
		t.Errorf("the issuer was asked %d times for %d requests", n, callers)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	google := OIDC{Audience: "https://jobs.example.com", Callers: []string{"ticker@example.com"}}
	plain := google
	plain.Issuer = "http://issuer.example.com"
	for name, c := range map[string]struct {
		s    Settings
		want string
	}{
		"a short token":   {Settings{Tokens: []string{"short-secret"}}, "shorter than 16"},
		"a short secret":  {Settings{Secrets: []string{"whsec_c2hvcnQ="}}, "shorter than 16"},
		"not base64":      {Settings{Secrets: []string{"whsec_****************"}}, "not base64"},
		"no audience":     {Settings{OIDC: OIDC{Callers: google.Callers}}, "need an audience"},
		"no caller":       {Settings{OIDC: OIDC{Audience: google.Audience}}, "need the callers"},
		"an empty caller": {Settings{OIDC: OIDC{Audience: google.Audience, Callers: []string{"ticker@example.com", ""}}}, "is empty"},
		"a blank":         {Settings{OIDC: OIDC{Audience: google.Audience, Callers: []string{"42", " ticker@example.com"}}}, "with a blank"},
		"no TLS":          {Settings{OIDC: plain}, "begins with https://"},
		"only the issuer": {Settings{OIDC: OIDC{Issuer: Google}}, "need an audience"},
	} {
		if _, err := New(c.s, time.Now); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "short-secret") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	g, err := New(Settings{OIDC: google}, time.Now)
	if err != nil || !g.Any() || g.issuer.Issuer != Google {
		t.Errorf("%+v: %v", g, err)
	}
	if g, err := New(Settings{}, time.Now); err != nil || g.Any() {
		t.Errorf("nothing is set: %+v: %v", g, err)
	}
}
