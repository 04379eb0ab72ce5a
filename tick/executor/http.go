package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// HTTPSpec is the Spec of the executor http: one request. In all of its texts except Method and Expect, ${run_id} and other
// facts are replaced, and ${secret:NAME} is replaced by a secret of the host.
type HTTPSpec struct {
	URL     string            `json:"url"`
	Method  string            `json:"method,omitempty"` // empty: POST
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	JSON    any               `json:"json,omitempty"`   // in place of Body
	Expect  []string          `json:"expect,omitempty"` // statuses of success, such as 200 or 2xx; none: 2xx
	Secret  []string          `json:"secret,omitempty"` // references to secrets that sign the request by Standard Webhooks
	Auth    *HTTPAuth         `json:"auth,omitempty"`
}

// HTTPAuth says how the request logs in: exactly one of its fields is set.
type HTTPAuth struct {
	Bearer string     `json:"bearer,omitempty"`
	Basic  *HTTPBasic `json:"basic,omitempty"`
	AWS    *HTTPAWS   `json:"aws,omitempty"`
	GCP    *HTTPGCP   `json:"gcp,omitempty"`
}

// HTTPAWS signs the request with the process's credentials, for a service of AWS.
type HTTPAWS struct {
	Service string `json:"service"`
	Region  string `json:"region,omitempty"` // empty: the region in the name of the host, or that of the process
}

// HTTPGCP adds a token of the process's service account: "access" is for Google's APIs, "identity" is for other services.
type HTTPGCP struct {
	Token    string `json:"token"`
	Audience string `json:"audience,omitempty"` // of an identity; empty: the server of the URL
}

// HTTPBasic is a user with a password.
type HTTPBasic struct {
	User     string `json:"user"`
	Password string `json:"password,omitempty"`
}

var httpKind = Kind{
	Name: "http",
	Keys: []Key{{Name: "http", Type: Mapping, Short: true, Help: "URL to send a request to, with the facts of the run as JSON", Keys: []Key{
		{Name: "url", Type: Text},
		{Name: "method", Type: Text, Flag: "http-method", Help: "method of the request (POST)"},
		{Name: "headers", Type: Pairs},
		{Name: "body", Type: Text, Filled: true, Flag: "http-body", Help: "body of the request, in place of the facts"},
		{Name: "json", Type: JSON},
		{Name: "expect", Type: List, Flag: "http-expect", Help: "status of success, such as 200 or 2xx; may be given several times (2xx)"},
		{Name: "secret", Type: List, Flag: "http-secret", Help: "${secret:NAME} that signs the request by Standard Webhooks"},
		{Name: "auth", Type: Mapping, Keys: []Key{
			{Name: "bearer", Type: Text},
			{Name: "basic", Type: Mapping, Keys: []Key{{Name: "user", Type: Text}, {Name: "password", Type: Text}}},
			{Name: "aws", Type: Mapping, Short: true, Keys: []Key{{Name: "service", Type: Text}, {Name: "region", Type: Text}}},
			{Name: "gcp", Type: Mapping, Short: true, Keys: []Key{{Name: "token", Type: Text}, {Name: "audience", Type: Text}}},
		}},
	}}},
	Spec:   httpSpec,
	Values: httpValues,
	Line: func(raw json.RawMessage) string {
		var s HTTPSpec
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s.line()
	},
	Check: func(spec json.RawMessage) error {
		_, err := readHTTP(spec)
		return err
	},
	Open: func(_ *store.Store, h *Host) (Executor, error) { return NewHTTP(h), nil },
	Touches: func(spec json.RawMessage) (t Touched) {
		var s HTTPSpec
		if json.Unmarshal(spec, &s) == nil {
			first, rest := leading(s.URL)
			if u, err := readURL(s.URL); err == nil && first == "" && rest != "" {
				t.Address = u.Hostname()
			}
		}
		return t
	},
}

// httpSpec makes the spec from the values of keys by way of JSON, which has the same names.
func httpSpec(given map[string]any) (json.RawMessage, error) {
	b, err := json.Marshal(given["http"])
	if err != nil {
		return nil, err
	}
	s, err := readHTTP(b)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func httpValues(raw json.RawMessage) (map[string]any, error) {
	var s HTTPSpec
	if err := strictly(raw, &s); err != nil {
		return nil, err
	}
	values := map[string]any{"url": s.URL, "method": s.Method, "headers": s.Headers, "expect": s.Expect, "secret": s.Secret}
	if s.Body != "" {
		values["body"] = s.Body
	}
	if s.JSON != nil {
		values["json"] = s.JSON
	}
	if a := s.Auth; a != nil {
		auth := map[string]any{"bearer": a.Bearer}
		if a.Basic != nil {
			auth["basic"] = map[string]any{"user": a.Basic.User, "password": a.Basic.Password}
		}
		if a.AWS != nil {
			auth["aws"] = map[string]any{"service": a.AWS.Service, "region": a.AWS.Region}
		}
		if a.GCP != nil {
			auth["gcp"] = map[string]any{"token": a.GCP.Token, "audience": a.GCP.Audience}
		}
		values["auth"] = auth
	}
	return map[string]any{"http": values}, nil
}

// readHTTP reads the spec of a step of the executor http, and refuses what no run could do.
func readHTTP(spec json.RawMessage) (s HTTPSpec, err error) {
	if err := strictly(spec, &s); err != nil {
		return s, fmt.Errorf(`the spec is not of the form {"url": "https://…"}: %w`, err)
	}
	if err := checkNoBody(spec); err != nil {
		return s, err
	}
	s.Method = strings.ToUpper(s.Method)
	for _, check := range []func(*HTTPSpec) error{(*HTTPSpec).checkURL, (*HTTPSpec).checkMethod, (*HTTPSpec).checkHeaders, (*HTTPSpec).checkBody,
		(*HTTPSpec).checkExpect, (*HTTPSpec).checkSecrets, (*HTTPSpec).checkAuth} {
		if err := check(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// wrong is a problem with the value of a key below http.
func wrong(err error, at ...any) error {
	if err == nil {
		return nil
	}
	return &KeyError{At: append([]any{"http"}, at...), Err: err}
}

// leading splits a text into the reference with which it begins, and the rest.
func leading(s string) (reference, rest string) {
	if end := strings.Index(s, "}"); strings.HasPrefix(s, "${") && end > 0 {
		return s[:end+1], s[end+1:]
	}
	return "", s
}

// reference matches a reference, whose value is not known yet.
var reference = lazyregexp.New(`\$\{[^}]*\}`)

func (s *HTTPSpec) checkURL() error {
	if s.URL == "" {
		return wrong(errors.New("is missing, and http needs it"), "url")
	}
	if err := CheckReferences(s.URL); err != nil {
		return wrong(err, "url")
	}
	if first, _ := leading(s.URL); first != "" {
		return nil // its value is checked when it is known
	}
	_, err := readURL(reference.ReplaceAllString(s.URL, "x"))
	return wrong(err, "url")
}

// readURL reads a URL to which requests can be sent. An error shows no part of it except its scheme.
func readURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is no URL; want one such as https://example.org/hook")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("found a URL with the scheme %.20q, want https or http", u.Scheme)
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("found a URL without a host, want one such as https://example.org/hook")
	case u.User != nil:
		return nil, errors.New("a user and password do not belong into a URL, which is shown; use auth: {basic: {user: …, password: …}}")
	case u.Port() != "":
		if n, err := strconv.Atoi(u.Port()); err != nil || n < 1 || n > 65535 {
			return nil, errors.New("found a URL with a port that is none of 1 to 65535")
		}
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

var httpMethods = []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions}

func (s *HTTPSpec) checkMethod() error {
	if s.Method != "" && !slices.Contains(httpMethods, s.Method) {
		return wrong(fmt.Errorf("found %.20q, want one of %s", s.Method, strings.Join(httpMethods, ", ")), "method")
	}
	return nil
}

// ownHeaders are headers that follow from the rest of the request.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Trailer", "Te", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization"}

// headerName matches a token of RFC 9110.
var headerName = lazyregexp.New("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// validHeader reports whether a header can have the value: a line end in the value would begin another header.
func validHeader(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func (s *HTTPSpec) checkHeaders() error {
	seen := map[string]bool{}
	for name, value := range s.Headers {
		key := http.CanonicalHeaderKey(name)
		switch {
		case !headerName.MatchString(name):
			return wrong(fmt.Errorf("%.80q cannot be the name of a header", name), "headers", name)
		case slices.Contains(ownHeaders, key):
			return wrong(fmt.Errorf("the header %s follows from the request and cannot be set", key), "headers", name)
		case seen[key]:
			return wrong(fmt.Errorf("the header %s is given twice, in different cases", key), "headers", name)
		case key == "Authorization" && s.Auth != nil:
			return wrong(errors.New("the header Authorization is given twice: here, and by auth"), "headers", name)
		case !validHeader(value):
			return wrong(errors.New("has a control character, such as the end of a line, which no header can have"), "headers", name)
		}
		seen[key] = true
		if err := CheckReferences(value); err != nil {
			return wrong(err, "headers", name)
		}
	}
	return nil
}

// checkNoBody refuses a body that is given, and is empty: the request would have the facts of the run in its place, and would tell
// a service of others who the owner is, and with which arguments the run was requested.
func checkNoBody(spec json.RawMessage) error {
	var given struct{ Body, JSON json.RawMessage }
	if err := json.Unmarshal(spec, &given); err != nil {
		return err
	}
	key := "json"
	switch body := string(given.Body); {
	case body == `""` || body == "null":
		key = "body"
	case string(given.JSON) != "null":
		return nil
	}
	return wrong(fmt.Errorf("is empty, which would send the facts of the run; leave %s out for these, or write json: {}", key), key)
}

func (s *HTTPSpec) checkBody() error {
	switch {
	case s.Body != "" && s.JSON != nil:
		return wrong(errors.New("the request has a body twice: body and json"), "json")
	case (s.Body != "" || s.JSON != nil) && (s.Method == http.MethodGet || s.Method == http.MethodHead):
		return wrong(fmt.Errorf("%s has no body; leave body and json out, or use POST", s.Method), "method")
	}
	if err := CheckReferences(s.Body); err != nil {
		return wrong(err, "body")
	}
	return checkJSON(s.JSON, "http", "json")
}

// checkJSON checks all texts of a value.
func checkJSON(v any, at ...any) error {
	switch v := v.(type) {
	case string:
		if err := CheckReferences(v); err != nil {
			return &KeyError{At: slices.Clone(at), Err: err}
		}
	case []any:
		for i, e := range v {
			if err := checkJSON(e, append(at, i)...); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, e := range v {
			if err := checkJSON(e, append(at, name)...); err != nil {
				return err
			}
		}
	}
	return nil
}

var statusPattern = lazyregexp.New(`^[1-5](xx|[0-9][0-9])$`)

func (s *HTTPSpec) checkExpect() error {
	for i, e := range s.Expect {
		if !statusPattern.MatchString(e) {
			return wrong(fmt.Errorf("found %.20q, want a status such as 200 or 2xx", e), "expect", i)
		}
	}
	return nil
}

// expects reports whether a status means success.
func (s *HTTPSpec) expects(status int) bool {
	if len(s.Expect) == 0 {
		return status/100 == 2
	}
	return slices.ContainsFunc(s.Expect, func(e string) bool {
		return e == strconv.Itoa(status) || strings.HasSuffix(e, "xx") && int(e[0]-'0') == status/100
	})
}

// mustBeSecret refuses a secret that is written in the definition itself, where everybody who reads definitions would see it.
func mustBeSecret(text string, at ...any) error {
	if !secretReference.MatchString(text) {
		return wrong(errors.New("a secret does not belong into a definition; name one of the host's: ${secret:NAME}"), at...)
	}
	return wrong(CheckReferences(text), at...)
}

func (s *HTTPSpec) checkSecrets() error {
	for i, secret := range s.Secret {
		if err := mustBeSecret(secret, "secret", i); err != nil {
			return err
		}
	}
	return nil
}
