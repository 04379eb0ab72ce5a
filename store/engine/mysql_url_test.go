package engine

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// A connection that may fall back to plain text is not one whose server is verified, so a token is not sent on it.
func TestPlainTextBesideVerifiedTLS(t *testing.T) {
	for options, refused := range map[string]bool{
		"ssl-ca=x.pem&allowFallbackToPlaintext=true": true, "ssl-mode=VERIFY_IDENTITY&allowFallbackToPlaintext=1": true,
		"tls=true&allowFallbackToPlaintext=true": true, "ssl-mode=VERIFY_CA&ssl-ca=x.pem&allowFallbackToPlaintext=TRUE": true,
		"tls=true&allowFallbackToPlaintext=false": false, "tls=true&allowFallbackToPlaintext=0": false,
		"ssl-mode=PREFERRED&allowFallbackToPlaintext=true": false, "tls=skip-verify&allowFallbackToPlaintext=true": false,
	} {
		u, err := url.Parse("mysql://u@127.0.0.1:1/d?" + options)
		if err != nil {
			t.Fatal(err)
		}
		if refused && mysqlEngine.Encrypted(u) {
			t.Errorf("%s: counts as verified", options)
		}
		db, err := New(u.String(), Options{})
		if err == nil {
			db.Close()
		}
		_, told := errors.AsType[*URLError](err)
		if contradicts := told && strings.Contains(err.Error(), "allowFallbackToPlaintext"); contradicts != refused || !refused && err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
}
