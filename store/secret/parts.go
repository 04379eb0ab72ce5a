package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
)

// leastPart is the minimum length of a part of a secret that is treated as a secret. A shorter part is
// an ordinary word.
const leastPart = 12

// parts returns the parts of a secret that may be quoted alone. For a URL, such as the address of a webhook,
// they are the path, the password, and the long parts of the path and the query. For a key they are its lines, and for a text
// with members the values of these. Base64 has the parts of the text that is in it.
func parts(value string) (all []string) {
	add := func(part string) {
		if len(part) >= leastPart && !strings.HasPrefix(part, "-----") {
			all = append(all, part)
		}
	}
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			add(strings.TrimSpace(line))
		}
	}
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		add(u.RequestURI())
		add(u.EscapedPath())
		for part := range strings.SplitSeq(u.EscapedPath(), "/") {
			add(part)
		}
		for _, list := range u.Query() {
			for _, v := range list {
				add(v)
			}
		}
		all = append(all, ofURL(value)...)
	}
	if text := inBase64(value); text != "" {
		all = append(append(all, text), parts(text)...)
	}
	return append(all, members(value)...)
}

var (
	// public matches the names of members that are not secret. Names of variables may have a word before them, such as DB_HOST.
	public = lazyregexp.New(`(?i)(?:^|[_.-]|^pg)(?:user|username|login|account|e?mail|host|hostname|server|port|engine|driver|name|db|dbname|database|schema|type|kind|` +
		`apiversion|version|region|zone|namespace|context|cluster|project|client_id|project_id|universe_domain|auth_uri|token_uri|x509_cert_url)$`)
	// secretive matches the names of members whose value is a secret even if it is an ordinary word.
	secretive = lazyregexp.New(`(?i)pass|pwd|secret|token|key|pin|cred|auth|sign|salt`)
	// member matches a line with a member: NAME=value, such as in a file of variables, and name: value, such as in YAML.
	member = lazyregexp.New(`^(?:-\s+|export\s+)?([^\s:=#"'{}\[\]]+)\s*[:=]\s*(\S.*)$`)
)

// members returns the values in a text of JSON, in lines NAME=value or name: value, and in user:password, each with its own
// parts.
func members(value string) (all []string) {
	if text := strings.TrimSpace(value); text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text)) {
		var tree any
		with := json.NewDecoder(strings.NewReader(text))
		with.UseNumber() // all digits of a number are secret
		if with.Decode(&tree) == nil {
			return inTree("", tree)
		}
	}
	lines := strings.Split(strings.TrimSpace(value), "\n")
	for _, line := range lines {
		m := member.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.HasPrefix(m[2], "//") { // of a URL
			continue
		}
		name, text := m[1], m[2]
		if q := text[0]; len(text) > 1 && (q == '"' || q == '\'') && text[len(text)-1] == q {
			text = text[1 : len(text)-1]
		}
		if len(lines) == 1 { // the name is that of a user
			name = "password"
		}
		all = append(all, ofMember(name, text)...)
	}
	return all
}

// inTree returns the texts and numbers of a member of JSON, and those of its members.
func inTree(name string, tree any) (all []string) {
	switch v := tree.(type) {
	case string:
		return ofMember(name, v)
	case json.Number:
		return ofMember(name, v.String())
	case []any:
		for _, each := range v {
			all = append(all, inTree(name, each)...)
		}
	case map[string]any:
		for name, each := range v {
			all = append(all, inTree(name, each)...)
		}
	}
	return all
}

// ofMember returns the value of a member, unless it is public or an ordinary word, and its parts.
func ofMember(name, value string) (all []string) {
	if public.MatchString(name) {
		return ofURL(value)
	}
	isWord := strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
	if len(value) >= leastWithin && (!isWord || len(value) >= leastPart || secretive.MatchString(name)) {
		all = append(all, value)
	}
	return append(all, parts(value)...)
}

// inBase64 returns the text that a value has in base64; empty: it has none.
func inBase64(value string) string {
	value = strings.TrimRight(strings.Join(strings.Fields(value), ""), "=")
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		text, err := enc.DecodeString(value)
		if err == nil && len(text) >= leastWithin && utf8.Valid(text) && strings.IndexFunc(string(text), func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) < 0 {
			return string(text)
		}
	}
	return ""
}
