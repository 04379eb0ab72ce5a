package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"html"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

func TestHide(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"postgres://ann:geheim@h/d", "postgres://ann:[hidden]@h/d"},
		{"postgres://:geheim@h/d", "postgres://:[hidden]@h/d"},
		{"postgres://ann@h:5432/d?x=y", "postgres://ann@h:5432/d?x=y"},
		{"postgres://[::1]:5432/d@e", "postgres://[::1]:5432/d@e"},
		// Characters that should have been escaped.
		{"postgres://ann:ge@he/im?x@h/d?x=y@z", "postgres://ann:[hidden]@h/d?x=y@z"},
		{`cannot parse "mysql://ann:ge/heim@h/d": no`, `cannot parse "mysql://ann:[hidden]@h/d": no`},
		{"two: https://a:geheim@h and https://b:heimlich@h", "two: https://a:[hidden]@h and https://b:[hidden]@h"},
		{"ann:geheim@tcp(h)/d", "ann:[hidden]@tcp(h)/d"},
		{"postgres://h/d?password=geheim&x=y&sslpassword=heimlich", "postgres://h/d?password=[hidden]&x=y&sslpassword=[hidden]"},
		{"postgres://h/d?password=ge&heim", "postgres://h/d?password=[hidden]"},
		{"host=h password = 'ge heim' user=ann", "host=h password = '[hidden]' user=ann"},
		{`{"username":"ann","password":"geheim","port":1}`, `{"username":"ann","password":"[hidden]","port":1}`},
		{`"{\"password\": \"ge heim\"}"`, `"{\"password\": \"[hidden]\"}"`},
		{"PGPASSWORD=geheim psql", "PGPASSWORD=[hidden] psql"},
		{"h:5432/?Action=connect&X-Amz-Signature=abc", "h:5432/?Action=connect&X-Amz-Signature=[hidden]"},
		{"A=1\npwd=/geheim\nUID=ann;PWD=/geheim PWD=/a;password=geheim", "A=1\npwd=[hidden]\nUID=ann;PWD=[hidden] PWD=[hidden]"},
		{"PWD=/srv;password=geheim", "PWD=[hidden]"},
		// Quotes in a value.
		{`{"user":"x","password":"ab\"geheim99","port":1}`, `{"user":"x","password":"[hidden]","port":1}`},
		{`{"password":"geheim\\","port":1}`, `{"password":"[hidden]","port":1}`},
		{`"{\"password\":\"ab\\\"geheim\",\"port\":1}"`, `"{\"password\":\"[hidden]\",\"port\":1}"`},
		{`near "ALTER USER ann SET PASSWORD = 'it''s geheim' VALID"`, `near "ALTER USER ann SET PASSWORD = '[hidden]' VALID"`},
		{`'ALTER USER ann SET PASSWORD = ''ge''''heim'' VALID'`, `'ALTER USER ann SET PASSWORD = ''[hidden]'' VALID'`},
		{`near 'SET PASSWORD = 'geheim'' at line 1; 'x'`, `near 'SET PASSWORD = '[hidden]'' at line 1; 'x'`},
		{`{"password":"","port":"geheim"}`, `{"password":"[hidden]","port":"geheim"}`},
		{`can't use password=ab'geheim, ab"geheim`, `can't use password=[hidden] ab"geheim`},
		{`{"dsn": "password=ab'geheim", "port": 1}`, `{"dsn": "password=[hidden]", "port": 1}`},
		{`"{\"dsn\": \"password=ab'geheim\"}"`, `"{\"dsn\": \"password=[hidden]\"}"`},
		{"see `password=geheim`: 'token=geheim' <b>token=geheim</b>", "see `password=[hidden]`: 'token=[hidden]' <b>token=[hidden]</b>"},
		// Texts without a secret.
		{"A=1\nPWD=/srv/dumps\nB=2", "A=1\nPWD=/srv/dumps\nB=2"},
		{"want postgres://user:password@host/database", "want postgres://user:password@host/database"},
		{"?allowCleartextPasswords=1", "?allowCleartextPasswords=1"},
		{"Access denied for user 'ann'@'h' (using password: YES)", "Access denied for user 'ann'@'h' (using password: YES)"},
		{`near "token": syntax error`, `near "token": syntax error`},
		{"write to ann@example.org: see https://example.org/a", "write to ann@example.org: see https://example.org/a"},
	} {
		got := Hide(c.text)
		if got != c.want {
			t.Errorf("%s\nbecame %s\nwant   %s", c.text, got, c.want)
		}
		if again := Hide(got); again != got {
			t.Errorf("%s, hidden once more, became %s", got, again)
		}
	}
}

// TestKnown: a secret is found however a text has it.
func TestKnown(t *testing.T) {
	for _, c := range []struct{ url, text, want string }{
		{"mysql://ann:p%40ssword@h/d", "p@ssword and p%40ssword", "[hidden] and [hidden]"},
		{"mysql://ann:p@ss/word@h/d", "lookup p@ss/word: no such host", "lookup [hidden]: no such host"},
		{"mysql://ann:geh@x/y?z=eimnis@h/d", "invalid \"mysql://ann:geh@x/y?z=eimnis@h/d\"", "invalid \"mysql://ann:[hidden]@h/d\""},
		{`postgres://ann:ge"he\im@h/d`, `refused "ge\"he\\im"`, `refused "[hidden]"`},
		{"postgres://ann:Ge%3Cheim@h/d", `refused ge\u003cheim, GE<HEIM`, "refused [hidden], [hidden]"},
		{"postgres://ann:geheimnis@h/d", "cut: geh\n    eim\\nnis.", "cut: [hidden]."},
		{"postgres://h/d?user=ann&password=geheim", "using geheim", "using [hidden]"},
		{"postgres://h/d?password=ge+heim", "using 'ge heim'", "using '[hidden]'"},
		{"postgres://ann:ge%20heim@h/d", "refused GE+HEIM and ge%20heim", "refused [hidden] and [hidden]"},
		{"postgres://h/d?password=geh&eimnis", "using geh&eimnis", "using [hidden]"},
		// A short secret is hidden only where it stands alone.
		{"postgres://me:ann@h/d", "created job annual", "created job annual"},
		{"postgres://me:ann@h/d", `refused "ann"`, `refused "[hidden]"`},
		{"postgres://me:a@h/d", "a word", "a word"},
		// A text that also stands in a public place of the URL is no secret.
		{"postgres://dbjobs:dbjobs@h/d", "login dbjobs refused", "login dbjobs refused"},
		{"postgres://dbjobs:dbjobs@h/d", "postgres://dbjobs:dbjobs@h/d", "postgres://dbjobs:[hidden]@h/d"},
		{"mysql://ann@h/d?allowCleartextPasswords=1&tls=true", "attempt 1 true", "attempt 1 true"},
	} {
		var k Known
		k.AddURL(c.url)
		if got := k.Hide(c.text); got != c.want {
			t.Errorf("%s: %q became %q, want %q", c.url, c.text, got, c.want)
		}
	}
}

func TestIssued(t *testing.T) {
	var k Known
	for range 3 * issuedMost {
		k.Issue("older-token")
	}
	token := "h:5432/?" + strings.Repeat("x", 2000)
	k.Issue(token)
	if got := k.Hide("refused " + token + " and older-token"); got != "refused [hidden] and [hidden]" {
		t.Error(got)
	}
	k.Issue("ge%40heim") // not from a URL: nothing of it is an escape
	if got := k.Hide("refused ge%40heim and GE%2540HEIM"); got != "refused [hidden] and [hidden]" {
		t.Error(got)
	}
	for i := range 3 * issuedMost {
		k.Issue(strings.Repeat("y", 10+i))
	}
	if len(k.issued) != issuedMost {
		t.Error(len(k.issued))
	}
	for i := range 3 * issuedMost { // a token that is in use is issued again and again
		k.Issue("a%41token-in-use")
		k.Issue("a%41token-of-another-" + strconv.Itoa(i))
	}
	if got := k.Hide("refused aatoken-in-use, a%2541token-in-use"); got != "refused [hidden], [hidden]" {
		t.Error(got)
	}
	last := 3*issuedMost - issuedMost + 2 // each is one of those that are kept, in however many forms it is searched
	if got := k.Hide("refused a%41token-of-another-" + strconv.Itoa(last)); got != "refused [hidden]" {
		t.Error(got)
	}
	if got := (*Known)(nil).Hide("password=geheim"); got != "password=[hidden]" {
		t.Error(got)
	}
}

func TestParseURL(t *testing.T) {
	for _, c := range []struct{ raw, err string }{
		{"postgres://ann:geheim@h/d?sslmode=disable&", ""},
		{"postgres:///d?host=/run/postgresql", ""},
		{"postgres://ann:ge@heim@h/d", "%40"},
		{"postgres://ann:ge/heim@h/d", "%2F"},
		{"postgres://ann:ge?heim@h/d", "percent-encoded"},
		{"postgres://ann:ge?h=eim@h/d", "percent-encoded"},
		{"postgres://ann:ge#heim@h/d", "percent-encoded"},
		{"postgres://ann:ge%heim@h/d", "percent-encoded"},
		{"postgres://ann:ge heim@h/d", "percent-encoded"},
		{"postgres://h/d?password=ge&heim", "%26"},
		{"postgres://h/d?password=ge%heim", "percent-encoded"},
		{"postgres://ann:geheim@h:port/d", "percent-encoded"},
		{"postgres://ann:geheim@h:1,g:2/d", ""},
		{"postgres://ann:geheim@h:1,[::1]:2/d", "host=one,::1&port="},
		{"postgres://ann:geheim@[::1]:1,h:2/d?sslmode=require", "host=one,::1&port="},
		{"postgres://ann:ge%heim@[::1]:1,h:2/d", "percent-encoded"},
		{"postgres://ann:geheim@/d?host=one,::1&port=5432,5433", ""},
	} {
		_, err := ParseURL(c.raw)
		if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "heim")) {
			t.Errorf("%s: %v, want %q", c.raw, err, c.err)
		}
	}
}

func FuzzHide(f *testing.F) {
	f.Add("postgres://u:", "geheim", "@h/d")
	f.Add("password='", `\"`, "'&")
	f.Fuzz(func(t *testing.T, before, hidden, after string) {
		var k Known
		k.Issue(hidden)
		got := k.Hide(before + hidden + after)
		if len(fold(hidden, letter)) >= leastWithin && strings.Count(before+after+Hidden, hidden) == 0 && strings.Contains(got, hidden) {
			t.Errorf("%q in %q", hidden, got)
		}
		if once := Hide(got); Hide(once) != once {
			t.Errorf("%q, %q", once, Hide(once))
		}
	})
}

// A text that looks like a secret in a definition is found. A text that only mentions a secret is not.
func TestLike(t *testing.T) {
	for text, want := range map[string]string{
		"-----BEGIN OPENSSH PRIVATE KEY-----\nabc":                     "a private key",
		"AKIAIOSFODNN7EXAMPLE":                                         "an access key of AWS",
		"Bearer eyJhbGciOiJIUzI1NiJ9.e30":                              "a bearer token",
		"Basic YW5uOmdlaGVpbW5pcw==":                                   "a login",
		"--password=geheimnis":                                         "a password",
		"curl 'https://h/?token=geheimnis'":                            "a password",
		"ALTER USER ann SET PASSWORD = 'geheimnis'":                    "a password",
		`{"api_key": "geheimnis"}`:                                     "a password",
		"psql postgres://ann:geheimnis@h/d":                            "a URL with a password",
		"glpat-0123456789abcdefghij":                                   "a token of GitLab",
		"sk_" + "live_0123456789abcdefghij":                            "a key of Stripe",
		"https://h/?key=AIza" + strings.Repeat("x", 35):                "a key of Google",
		"SG.0123456789abcdefgh.0123456789abcdefgh":                     "a key of SendGrid",
		"t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl":          "a JSON Web Token",
		"https://hooks.slack.com/services/T00000/B0/xyz":               "the address of a webhook, which is its secret",
		"https://discord.com/api/webhooks/123456/abcdefghijklmnopqrst": "the address of a webhook, which is its secret",
		"https://hooks.slack.com/services/${secret:SLACK}":             "",
		"https://discord.com/api/webhooks/list":                        "",
		"sk_test_0123456789abcdefghij":                                 "",
		"SELECT 'eyJ' || encode(x, 'base64')":                          "",
		"task_live_0123456789abcdefghij":                               "",
		"Bearer ${secret:TOKEN}":                                       "",
		"--password=${secret:TOKEN}":                                   "",
		"https://h/?token=${secret:TOKEN}":                             "",
		"UPDATE users SET password = $1 WHERE token = ?":               "",
		"UPDATE users SET password=$1, token=:token":                   "",
		"SELECT token FROM t WHERE token = other.token_of_user":        "",
		"DELETE FROM tokens WHERE expired":                             "",
		"basic checks of the bearer":                                   "",
		"curl -H \"Authorization: $KEY\" https://h/":                   "",
	} {
		if got := Like(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// mayHold leaves out no text that an expression finds, with small or with capital letters.
func FuzzMayHold(f *testing.F) {
	for _, text := range []string{"AKIAIOSFODNN7EXAMPLE", "BEARER eyJhbGciOiJIUzI1NiJ9.e30", "Pa\u017fSwd='geheimnis'", "To\u212aen=geheimnis", "ann:g@tcp(h)/d", "a://b:c@d", "X-Amz-Signature=0123456"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parts := folded(text)
		for _, l := range like {
			if l.form.MatchString(text) && !mayHold(parts, l.parts...) {
				t.Errorf("%q is %s, and has none of %q", text, l.what, l.parts)
			}
		}
		if assigned.MatchString(text) && !mayHold(parts, stems...) {
			t.Errorf("%q has a name with a value, and none of %q", text, stems)
		}
		if source.MatchString(text) && hideSources(text) == text {
			t.Errorf("%q has a login that is not hidden", text)
		}
	})
}

// A value that was given out is hidden in all of its forms, at any place in an encoded text.
func TestKnownForms(t *testing.T) {
	const value = "s3cr3t/value+x"
	k := &Known{}
	k.Add(value)
	for _, before := range []string{"", "a", "ab", "abc:", "user:"} {
		for _, after := range []string{"", "z", "zz"} {
			whole := before + value + after
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
				text := enc.EncodeToString([]byte(whole))
				if got := k.Hide("told " + text); !strings.Contains(got, Hidden) || len(got) > len("told ")+len(Hidden)+8+2*len(before) {
					t.Errorf("%q in base64: %s became %s", whole, text, got)
				}
			}
		}
	}
	for _, text := range []string{value, url.QueryEscape(value), url.PathEscape(value), strconv.Quote(value)} {
		if got := k.Hide("told " + text); strings.Contains(got, "cr3t") {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// A server may quote a literal of SQL, as in a syntax error. A text with a quote in it has two of them there.
func TestKnownInALiteral(t *testing.T) {
	k := &Known{}
	k.Add("it's a s3cr3t")
	for text, want := range map[string]string{
		`near ''it''s a s3cr3t' FRM t' at line 1`: `near ''[hidden]' FRM t' at line 1`,
		`near ''it\'s a s3cr3t' FRM t' at line 1`: `near ''[hidden]' FRM t' at line 1`,
	} {
		if got := k.Hide(text); got != want {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// A page of HTML, a document of XML or a shell's trace may quote a secret with its characters escaped.
func TestKnownInMarkup(t *testing.T) {
	for _, value := range []string{`vK9/tokenQ+wJ&z"2mR5`, `vK9/tokenQ<wJ>it's 24 letters and more&z"2mR5`, `&lt;"+'&amp;secret`} {
		k := &Known{}
		k.Add(value)
		var inXML bytes.Buffer
		if err := xml.EscapeText(&inXML, []byte(value)); err != nil {
			t.Fatal(err)
		}
		php := strings.NewReplacer("&", "&amp;", `"`, "&quot;", "'", "&#039;", "<", "&lt;", ">", "&gt;", "/", "&#x2F;")
		for _, form := range []string{value, html.EscapeString(value), template.HTMLEscapeString(value), inXML.String(), php.Replace(value),
			strings.ReplaceAll(value, "+", "&#43;"), strings.ReplaceAll(value, "'", "&apos;"),
			strings.ReplaceAll(value, "'", `'\''`), strings.ReplaceAll(value, "'", `'"'"'`)} {
			if got := k.Hide("<p>" + form + "</p>"); got != "<p>[hidden]</p>" {
				t.Errorf("%s became %s", form, got)
			}
		}
	}
}

// The rest of a secret at a cut is hidden, before the cut and after it, in each of the secret's forms.
// A word that only begins like a secret is not hidden if nothing was cut.
func TestCutSecrets(t *testing.T) {
	const value = "s3cr3t/va&lu\u00e9+xyz"
	k := &Known{}
	k.Add(value)
	for _, form := range []string{value, url.QueryEscape(value), strings.Trim(strconv.QuoteToASCII(value), `"`), base64.StdEncoding.EncodeToString([]byte(value)), html.EscapeString(value)} {
		for i := 6; i < len(form)-6; i++ {
			for _, text := range []string{"told " + form[:i] + "…", "told " + form[:i] + "\n… 17 bytes left out …\n" + form[i:] + " more", "told …" + form[i:]} {
				got := k.Hide(text)
				for from := range len(form) - 5 {
					if part := form[from : from+5]; strings.Contains(got, part) {
						t.Errorf("%q became %q, which has %q", text, got, part)
						break
					}
				}
			}
		}
	}
	k.Add("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl")
	if got := k.Hide("told 'eyJhbGciOiJIUzI1NiJ9.eyJzdWI'"); got != "told '[hidden]'" { // cut by a server
		t.Error(got)
	}
	for _, text := range []string{"told s3cr3t/va", "told s3cr3 …", "a value … of", "s3cr3t…"[:3] + "…"} {
		if got := k.Hide(text); got != text && text != "told s3cr3 …" {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Parts of a secret that may be quoted alone are hidden. Ordinary words are not.
func TestPartsOfSecrets(t *testing.T) {
	k := &Known{}
	k.Add("https://hooks.example.com/services/T0000/B0000/XXXXXXXXabcdefgh?thread=4f1c9a7be0d2&to=ops")
	k.Add("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n")
	k.Add("postgres://ann:geheimnis@h/database")
	for text, want := range map[string]string{
		"cannot POST /services/T0000/B0000/XXXXXXXXabcdefgh": "cannot POST [hidden]",
		"no hook XXXXXXXXabcdefgh":                           "no hook [hidden]",
		"no thread 4f1c9a7be0d2":                             "no thread [hidden]",
		"line 2: hkiG9w0BAQEFAASC":                           "line 2: [hidden]",
		"user ann, geheimnis":                                "user ann, [hidden]",
		"no services at hooks.example.com for ops":           "no services at hooks.example.com for ops",
		"-----BEGIN PRIVATE KEY-----":                        "-----BEGIN PRIVATE KEY-----",
		"0x" + hex.EncodeToString([]byte("4f1c9a7be0d2")):    "0x[hidden]",
	} {
		if got := k.Hide(text); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
	}
}

// A program or a server often uses one member of a secret, and quotes that alone. Members that are public by their names, and
// ordinary words, are not hidden.
func TestMembersOfSecrets(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
	for value, texts := range map[string]map[string]string{
		`{"engine":"postgres","host":"db.example.com","username":"jobs-of-ann","password":"Xq7pLm2Rt9","tags":["production",{"pin":"ab\"12345"}]}`: {
			"login failed: Xq7pLm2Rt9":                              "login failed: [hidden]",
			`no pin ab"12345`:                                       "no pin [hidden]",
			"jobs-of-ann@db.example.com":                            "jobs-of-ann@db.example.com",
			"postgres of production fell":                           "postgres of production fell",
			base64.StdEncoding.EncodeToString([]byte("Xq7pLm2Rt9")): "[hidden]Q==",
		},
		`{"type":"service_account","project_id":"project-of-ann","private_key":` + strconv.Quote(key) + `,"token_uri":"https://oauth2.googleapis.com/token"}`: {
			"PEM\nhkiG9w0BAQEFAASC\n":                                 "PEM\n[hidden]\n",
			"a service_account of project-of-ann":                     "a service_account of project-of-ann",
			"POST https://oauth2.googleapis.com/token: no such host ": "POST https://oauth2.googleapis.com/token: no such host ",
		},
		`{"user":"ann","pin":48151623,"tokens":[900719925474099312,42],"port":54321234}`: {
			"pin 48151623 refused":           "pin [hidden] refused",
			"no token 900719925474099312":    "no token [hidden]",
			"42 tries of ann, port 54321234": "42 tries of ann, port 54321234",
		},
		"# of the API\nNODE_ENV=production\nLOG=verbosely\nexport API_KEY='abcdef0123456789'\nDB_HOST=db.example.com\nDB_PASSWORD=\"geheimnis\"\nDSN=postgres://ann:heimlich@h/d\n": {
			"unknown key abcdef0123456789":              "unknown key [hidden]",
			"not geheimnis, heimlich":                   "not [hidden], [hidden]",
			"verbosely of production at db.example.com": "verbosely of production at db.example.com",
		},
		"apiVersion: v1\nusers:\n- name: ann-of-the-team\n  user:\n    token: \"q8Wx2n\"\n    client-key-data: " + base64.StdEncoding.EncodeToString([]byte(key)) + "\n": {
			"no token q8Wx2n":         "no token [hidden]",
			"PEM\nhkiG9w0BAQEFAASC\n": "PEM\n[hidden]\n",
			"of ann-of-the-team":      "of ann-of-the-team",
		},
		"ann@example.org:geheimnis":                                {"no login geheimnis": "no login [hidden]", "for ann@example.org": "for ann@example.org"},
		base64.StdEncoding.EncodeToString([]byte("ann:geheimnis")): {"no login geheimnis of ann": "no login [hidden] of ann", "not ann:geheimnis": "not [hidden]"},
	} {
		k := &Known{}
		k.Add(value)
		for text, want := range texts {
			if got := k.Hide(text); got != want {
				t.Errorf("%.40q: %s\nbecame %s\nwant   %s", value, text, got, want)
			}
		}
		if got := k.Hide(strings.TrimSpace(value)); got != Hidden {
			t.Errorf("%.40q became %s", value, got)
		}
	}
}
