// Package secret removes credentials from texts that people read or that are kept: messages, log
// lines, answers, records.
//
// It has two ways. Hide finds text that looks like a credential, known or not: the password of a URL,
// and the value that follows a name such as password. Known also finds the credentials that were added
// to it, wherever they stand and however they are written.
package secret

import (
	"net/url"
	"slices"
	"strings"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// Hidden stands in the place of a credential.
const Hidden = "[hidden]"

// names are the names of options, keys and variables whose value is a secret. They are whole names: a
// longer name that contains one, such as allowCleartextPasswords, is public.
const names = `password|passwd|pwd|sslpassword|pgpassword|mysql_pwd|token|access_token|auth_token|session_token|` +
	`secret|client_secret|oauth_client_secret|api_key|apikey|x-amz-security-token|x-amz-signature`

var (
	whole  = lazyregexp.New(`(?i)^(?:` + names + `)$`)
	scheme = lazyregexp.New(`[A-Za-z][A-Za-z0-9+.-]*://`)
	// option finds where the options of a URL begin: a question mark in a password is not followed by name=.
	option = lazyregexp.New(`\?[A-Za-z][\w.-]*=`)
	// assigned finds a name and the text between it and its value: name=, or "name": of JSON before a quoted value.
	assigned = lazyregexp.New(`(?i)(?:^|[^\w.-])(?:` + names + `)(?:\s*=\s*|\\*["']\s*[:=]\s*(\\*["']))`)
	quote    = lazyregexp.New(`^\\*["']`)
	another  = lazyregexp.New(`&[A-Za-z][\w.-]*=`)
	follows  = lazyregexp.New(`^&[A-Za-z][\w.-]*=`)
	// source is user:password@tcp(host), as Go's driver of MySQL writes it.
	source = lazyregexp.New("([^\\s:/@'\"`]+:)([^\\s'\"`]+)(@(?:tcp|unix)\\()")
)

// IsName reports whether a value of this name is a secret.
func IsName(name string) bool { return whole.MatchString(name) }

// HoldsURL reports whether a value is, or holds, a URL with a password. The text is one value: blanks
// and quotes do not end it.
func HoldsURL(value string) bool {
	if at := scheme.FindStringIndex(value); at != nil {
		if _, _, ok := passwordIn(value[at[1]:]); ok {
			return true
		}
	}
	hidden := hideURLs(value)
	return hidden != value || source.MatchString(value) || scheme.MatchString(value) && hideAssigned(value) != value
}

// Hide hides all that looks like a credential. Text that is already hidden stays as it is.
func Hide(text string) string {
	return hideAssigned(hideSources(hideURLs(text)))
}

// mayHold reports whether a text holds one of the parts. Each match of an expression holds one of the
// expression's parts. Few texts do, and to look for parts takes a hundredth of the time of the expression.
func mayHold(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// stems are parts of the names. Each name contains one of them.
var stems = []string{"pass", "pwd", "token", "secret", "api", "x-amz"}

// folded returns a text in the letters to which an expression with (?i) folds it.
func folded(text string) string { return strings.ToLower(strings.ReplaceAll(text, "\u017f", "s")) }

func hideSources(text string) string {
	if !mayHold(text, "@tcp(", "@unix(") {
		return text
	}
	return source.ReplaceAllString(text, "${1}"+Hidden+"${3}")
}

func hideURLs(text string) string {
	if !mayHold(text, "://") {
		return text
	}
	var b strings.Builder
	for r, i := (reach{text: text, end: -1, options: -1}), 0; ; {
		at := scheme.FindStringIndex(text[i:])
		if at == nil {
			return b.String() + text[i:]
		}
		b.WriteString(text[i : i+at[1]])
		i += at[1]
		if from, to, ok := r.password(i); ok && text[from:to] != "password" { // advice on how to write a URL has this word
			b.WriteString(text[i:from] + Hidden)
			i = to
		}
	}
}

// reach is how far a URL reaches in a text. Several :// may stand in one reach, and it is searched once for all of them.
type reach struct {
	text    string
	end     int // no URL reaches further
	options int // where the options begin, or end
	at      int // the last @ before the options
}

// password returns the place of the password of the URL whose :// ends at i. Each i is after the one before.
func (r *reach) password(i int) (from, to int, ok bool) {
	if i > r.end {
		r.end = len(r.text)
		if n := strings.IndexAny(r.text[i:], ends); n >= 0 {
			r.end = i + n
		}
	}
	if i > r.options {
		r.options = i + optionsIn(r.text[i:r.end])
		r.at = i + strings.LastIndexByte(r.text[i:r.options], '@') // before i, if there is none
	}
	from, to, ok = passwordBefore(r.text[i:r.options], r.at-i)
	return i + from, i + to, ok
}

// ends are the characters that end a URL, or a value without quotes.
const ends = " \t\r\n\"'`<>"

// passwordIn returns the place of the password in the text after the :// of a URL. A password may hold
// characters that should have been escaped. So it ends at the last @ before the options.
func passwordIn(rest string) (from, to int, ok bool) {
	rest = rest[:optionsIn(rest)]
	return passwordBefore(rest, strings.LastIndexByte(rest, '@'))
}

// optionsIn returns where the options of a URL begin, or its length.
func optionsIn(rest string) int {
	if begin := option.FindStringIndex(rest); begin != nil {
		return begin[0]
	}
	return len(rest)
}

func passwordBefore(rest string, at int) (from, to int, ok bool) {
	from = strings.IndexByte(rest, ':') + 1
	return from, at, from > 0 && from <= at && rest[0] != '['
}

func hideAssigned(text string) string {
	if !mayHold(folded(text), stems...) {
		return text
	}
	var b strings.Builder
	for open := (quotes{}); ; {
		at := assigned.FindStringSubmatchIndex(text)
		if at == nil {
			return b.String() + text
		}
		from := at[1]
		if at[2] >= 0 { // the quote of the value belongs to it
			from = at[2]
		}
		b.WriteString(text[:from])
		open.pass(text[:from])
		name := text[at[0]:at[1]]
		text = text[from:]
		around, length := valueOf(text, open)
		switch {
		case isFolder(name, text[:length]):
			b.WriteString(text[:length])
		case length > 0:
			b.WriteString(around + Hidden + around)
		}
		text = text[length:]
	}
}

// isFolder reports whether this is PWD, the variable in which a shell keeps its folder, at the beginning of a line.
func isFolder(name, value string) bool {
	return strings.TrimLeft(name, "\n") == "PWD=" && strings.HasPrefix(value, "/") && !strings.Contains(value, "=")
}

// ofURL returns the secrets in a URL, as they are written and as they are decoded. The URL may be
// malformed. A secret that is also a public part of the URL, such as the user's name, is left out. It
// could not be kept secret: to hide it would only garble messages about the database.
func ofURL(raw string) (all []string) {
	add := func(written string) {
		meant := written
		if u, err := url.PathUnescape(written); err == nil {
			meant = u
		}
		if public := publicIn(raw); !public[written] && !public[meant] {
			all = append(all, written, meant, strings.ReplaceAll(meant, "+", " "))
		}
	}
	at := scheme.FindStringIndex(raw)
	if at == nil {
		return nil
	}
	rest := raw[at[1]:]
	if from, to, ok := passwordIn(rest); ok {
		add(rest[from:to])
		if last := strings.LastIndexByte(rest, '@'); last > to { // the text that looks like an option may be a part of the password
			add(rest[from:last])
		}
		rest = rest[to:]
	}
	for at := assigned.FindStringIndex(rest); at != nil; at = assigned.FindStringIndex(rest) {
		rest = rest[at[1]:]
		value := rest
		if next := another.FindStringIndex(rest); next != nil {
			value = rest[:next[0]]
		}
		add(value)
		rest = rest[len(value):]
	}
	return all
}

func publicIn(raw string) map[string]bool {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	return map[string]bool{u.User.Username(): true, u.Hostname(): true, strings.Trim(u.Path, "/"): true, u.Scheme: true, u.Port(): true}
}

var (
	// like has the forms of secrets that are easy to find. Each has parts that mayHold searches for.
	like = []struct {
		what  string
		form  *lazyregexp.Regexp
		parts []string // in small letters
	}{
		{"a private key", lazyregexp.New(`-----BEGIN [A-Z ]*PRIVATE KEY-----`), []string{"-----begin"}},
		{"an access key of AWS", lazyregexp.New(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`), []string{"akia", "asia"}},
		{"a token of GitHub", lazyregexp.New(`\bgh[pousr]_[A-Za-z0-9]{36}`), []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}},
		{"a token of GitLab", lazyregexp.New(`\bglpat-[A-Za-z0-9_-]{20}`), []string{"glpat-"}},
		{"a key of Stripe", lazyregexp.New(`\b[sr]k_live_[A-Za-z0-9]{16}`), []string{"k_live_"}},
		{"a key of Google", lazyregexp.New(`\bAIza[A-Za-z0-9_-]{35}`), []string{"aiza"}},
		{"a key of SendGrid", lazyregexp.New(`\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16}`), []string{"sg."}},
		{"a JSON Web Token", lazyregexp.New(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{10}`), []string{"eyj"}},
		{"the address of a webhook, which is its secret", lazyregexp.New(`\b(hooks\.slack\.com/(services|triggers|workflows)/[A-Z0-9]{5}|discord(app)?\.com/api/webhooks/\d{5,}/[\w-]{16}|webhook\.office\.com/webhookb2/[0-9a-f-]{8})`),
			[]string{"hooks.slack.com/", "/api/webhooks/", "/webhookb2/"}},
		{"a token of Slack", lazyregexp.New(`\bxox[abprs]-[A-Za-z0-9-]{10}`), []string{"xox"}},
		{"a webhook's key", lazyregexp.New(`\bwhsec_[A-Za-z0-9+/=]{16}`), []string{"whsec_"}},
		{"a bearer token", lazyregexp.New(`(?i)\bbearer\s+[A-Za-z0-9._~+/-]{12}`), []string{"bearer"}},
		{"a login", lazyregexp.New(`(?i)\bbasic\s+[A-Za-z0-9+/]{12}[A-Za-z0-9+/]*=*(\s|$)`), []string{"basic"}},
		// There are no blanks, as in a URL and in options, or the value is quoted. A placeholder for
		// an argument is no password.
		{"a password", lazyregexp.New(`(?i)(?:^|[^\w.])-{0,2}(?:` + names + `)(?:=[^\s'"$?:@({\\]{6}|["']?\s*[=:]\s*["'][^"'$?{]{6})`), stems},
	}
	braced = lazyregexp.New(`\$\{[^}]*\}`)
)

// Like returns the kind of secret that a text in a definition seems to hold, or an empty text. A
// reference to a secret is none.
func Like(text string) string {
	url := text
	if mayHold(text, "${") {
		url = braced.ReplaceAllString(text, "password") // hideURLs leaves this word alone
		text = braced.ReplaceAllString(text, "${}")
	}
	parts := folded(text)
	for _, l := range like {
		if mayHold(parts, l.parts...) && l.form.MatchString(text) {
			return l.what
		}
	}
	if hideURLs(url) != url {
		return "a URL with a password"
	}
	return ""
}
