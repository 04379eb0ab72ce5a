package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/store/nearest"
)

// The options of a mysql:// URL. The options for certificates have the names that MySQL's own clients use.
var (
	ofMySQLClients = []string{"socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"}
	ofMySQLDriver  = []string{"allowAllFiles", "allowCleartextPasswords", "allowFallbackToPlaintext", "allowNativePasswords", "allowOldPasswords", "charset",
		"checkConnLiveness", "clientFoundRows", "collation", "columnsWithAlias", "compress", "connectionAttributes", "interpolateParams", "loc", "maxAllowedPacket",
		"multiStatements", "parseTime", "readTimeout", "rejectReadOnly", "serverPubKey", "timeTruncate", "timeout", "tls", "writeTimeout"}
)

// mysqlVariable matches the name of a session variable, which the driver sets in the session. All other variables
// that a person may set there have an underscore.
var mysqlVariable = lazyregexp.New(`^(autocommit|profiling|timestamp|[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)+)$`)

// checkMySQLOptions refuses an option that nothing reads. The driver would take it for a variable, and
// each connection would fail with a syntax error.
func checkMySQLOptions(options url.Values) error {
	known := slices.Concat(ofMySQLClients, ofMySQLDriver)
	folded := func(name string) string {
		return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
	}
	for name := range options {
		if slices.Contains(known, name) {
			continue
		}
		meant := ""
		for _, k := range known { // such as sslCa, ssl_ca and parsetime
			if folded(k) == folded(name) {
				meant = k
			}
		}
		if meant == "" && mysqlVariable.MatchString(name) {
			continue
		}
		if meant == "" {
			meant = nearest.To(name, known)
		}
		if meant != "" {
			return &URLError{fmt.Sprintf("options after ?: there is no %.40q; is %s meant?", name, meant)}
		}
		return &URLError{fmt.Sprintf("options after ?: there is no %.40q; want ssl-mode, ssl-ca, ssl-cert, ssl-key, socket, an option of the driver such as timeout, "+
			"or a variable of the session such as sql_mode", name)}
	}
	return nil
}

// mysqlTLS has the options of a URL about certificates.
type mysqlTLS struct{ mode, authority, certificate, key string }

// takeMySQLTLS removes the options about certificates from the options that the driver gets. The driver has other
// words for most modes.
func takeMySQLTLS(options url.Values) (mysqlTLS, error) {
	t := mysqlTLS{strings.ToUpper(options.Get("ssl-mode")), options.Get("ssl-ca"), options.Get("ssl-cert"), options.Get("ssl-key")}
	for _, name := range ofMySQLClients {
		options.Del(name)
	}
	word, known := map[string]string{"": "", "DISABLED": "false", "PREFERRED": "preferred", "REQUIRED": "skip-verify", "VERIFY_CA": "", "VERIFY_IDENTITY": "true"}[t.mode]
	driver := options.Get("tls")
	switch {
	case !known:
		return t, &URLError{"ssl-mode: want DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY"}
	case t.mode != "" && driver != "":
		return t, &URLError{"ssl-mode and tls say the same in two ways; remove tls"}
	case t.authority != "" && (driver != "" && driver != "true" || word != "" && word != "true"):
		return t, &URLError{fmt.Sprintf("ssl-ca and %s contradict each other: only VERIFY_CA and VERIFY_IDENTITY check a certificate; remove one of the two",
			map[bool]string{true: "tls=" + driver, false: "ssl-mode=" + t.mode}[driver != ""])}
	case fallsBack(options) && (t.authority != "" || driver == "true" || word == "true"):
		return t, &URLError{"allowFallbackToPlaintext contradicts ssl-ca, VERIFY_IDENTITY and tls=true, which want a verified server; remove one of the two"}
	case t.mode == "VERIFY_CA" && t.authority == "":
		return t, &URLError{"ssl-mode=VERIFY_CA needs ssl-ca, since the system's roots vouch for everybody; or write VERIFY_IDENTITY"}
	case (t.certificate == "") != (t.key == ""):
		return t, &URLError{"ssl-cert and ssl-key belong together: give both"}
	case t.certificate != "" && t.authority == "" && (driver+word == "" || driver+word == "false"):
		return t, &URLError{"ssl-cert is for TLS: add ssl-mode=VERIFY_IDENTITY, or ssl-ca=FILE"}
	case t.authority != "":
		options.Del("tls") // apply sets all of it
	case word != "":
		options.Set("tls", word)
	}
	return t, nil
}

// fallsBack reports whether the driver goes on without TLS if the server, or what stands before it, says that it has none.
func fallsBack(options url.Values) bool {
	return options.Has("allowFallbackToPlaintext") && !slices.Contains([]string{"0", "false", "False", "FALSE"}, options.Get("allowFallbackToPlaintext"))
}

// encryptedMySQL reports whether a URL asks for TLS and for a check of the server's certificate.
func encryptedMySQL(options url.Values) bool {
	t, err := takeMySQLTLS(options)
	return err == nil && (t.authority != "" || options.Get("tls") == "true")
}

// apply sets TLS in the driver's settings. A server's certificate must be signed by an authority of the file ssl-ca
// or of the system, and be valid for the URL's host. Only VERIFY_CA does not check the host.
func (t mysqlTLS) apply(c *mysql.Config, host string) error {
	if t.authority != "" {
		pem, err := os.ReadFile(t.authority)
		if err != nil {
			return &URLError{"ssl-ca: " + err.Error()}
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return &URLError{"ssl-ca: no certificate in PEM form in " + t.authority}
		}
		c.TLSConfig = ""
		c.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		if t.mode == "VERIFY_CA" {
			c.TLS.InsecureSkipVerify = true // only one of the two checks is made
			c.TLS.VerifyConnection = func(state tls.ConnectionState) error { return vouchedFor(state, roots) }
		}
	}
	if c.TLS != nil && !c.TLS.InsecureSkipVerify {
		c.TLS.ServerName = host // the driver parsed the options without the host
	}
	if t.certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.certificate, t.key)
		if err != nil {
			return &URLError{"ssl-cert, ssl-key: " + err.Error() + ofEncryptedKey(t.key, "ENCRYPTED")}
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// vouchedFor checks the authority of a server's certificate, whatever host it is for.
func vouchedFor(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server has no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}

// mysqlAccount writes a login as GRANT wants it. A host may follow: ann@10.%. The name before it may have an @, too.
func mysqlAccount(login string) string {
	literal := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
	}
	last := strings.LastIndexByte(login, '@')
	if last < 0 {
		return literal(login) + "@'%'"
	}
	return literal(login[:last]) + "@" + literal(login[last+1:])
}
