package secret

import (
	"cmp"
	"errors"
	"net/url"
	"strings"
)

// url.Parse would quote the URL in its error. The usual cause is a password with characters that URLs reserve.
var (
	errReserved = errors.New("not a URL (a password with / ? # @ or % in it must be percent-encoded: @ is %40, / is %2F)")
	errTwice    = errors.New("has two @ before its host; in a user name or a password, write @ as %40")
	errHosts    = errors.New("has several hosts, and one of them is an IPv6 address in brackets; PostgreSQL takes them as options: postgres://user:password@/database?host=one,::1&port=5432,5433")
	errOption   = errors.New("has an option without a value; in a password, write & as %26")
)

// ParseURL reads the URL of a server. It refuses a URL whose password seems not to be percent-encoded. A part
// of that password would be used, and shown, as the host, the path or an option. No error quotes the URL.
func ParseURL(raw string) (*url.URL, error) {
	_, rest, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if strings.Count(rest, "@") > 1 {
		return nil, errTwice
	}
	u, err := url.Parse(raw)
	if hosts := rest[strings.Index(rest, "@")+1:]; err != nil && strings.Contains(hosts, ",") && strings.Contains(hosts, "[") {
		if _, other := url.Parse(strings.Replace(raw, hosts, "host", 1)); other == nil { // nothing but the hosts is wrong
			return nil, errHosts
		}
	}
	if err != nil || strings.Contains(u.EscapedPath(), "@") || u.Fragment != "" || u.RawQuery != "" && !strings.Contains(u.RawQuery, "=") ||
		u.User == nil && u.Host != "" && strings.Contains(u.RawQuery, "@") {
		return nil, errReserved
	}
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		if part != "" && !strings.Contains(part, "=") {
			return nil, errOption
		}
	}
	if _, err := url.ParseQuery(u.RawQuery); err != nil {
		return nil, errReserved
	}
	return u, nil
}

// Login returns user and password of the URL of a server. The options user and password go before those that stand before the
// host, as in the driver of PostgreSQL.
func Login(u *url.URL) (user, password string) {
	password, _ = u.User.Password()
	options := u.Query()
	return cmp.Or(options.Get("user"), u.User.Username()), cmp.Or(options.Get("password"), password)
}
