package main

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"html"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// echo is a server that shows everything that it gets, in several forms.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	all := fmt.Sprintf("%s\n%v\n%s\n", r.URL, r.Header, body)
	key, _ := url.QueryUnescape(r.URL.Query().Get("k"))
	key = r.URL.Query().Get("k") + key
	forms := all + base64.StdEncoding.EncodeToString([]byte(all)) + url.QueryEscape(all) + strconv.QuoteToASCII(all) + hex.EncodeToString([]byte(all))
	status, _ := strconv.Atoi(r.URL.Query().Get("mode")) // 0 is another mode
	switch mode := r.URL.Query().Get("mode"); mode {
	case "429":
		w.Header().Set("Retry-After", key)
	case "hang":
		<-r.Context().Done()
		return
	case "redirect":
		w.Header().Set("Location", "https://"+strings.Repeat("x", 180)+r.URL.Query().Get("k")+".example.org/"+url.PathEscape(all))
		status = 307
	case "html": // as a page of HTML, or XML, says what is wrong with a request
		forms, status = "<p>"+html.EscapeString(all)+"</p>"+template.HTMLEscapeString(all), 500
	case "cut": // the cut goes through a secret, also after others were hidden
		forms, status = strings.Repeat(r.URL.Query().Get("k"), 1000), 500
	case "reason":
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 500 no %s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", r.URL.Query().Get("k"))
			_ = c.Close()
		}
		return
	case "headers":
		for _, name := range []string{"X-Request-Id", "Content-Type"} {
			w.Header().Set(name, strings.Repeat("x", 190)+r.URL.Query().Get("k"))
		}
		status = 500
	}
	w.WriteHeader(max(status, 200))
	_, _ = io.WriteString(w, forms) // the client notices that the rest is missing
}

// blabber is a mail server that shows the passwords of the logins that it refuses.
func blabber(t *testing.T, dir string) (port, roots string) {
	web := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(web.Close)
	roots = filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", web.TLS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail\r\n")
			for b := make([]byte, 4000); ; {
				n, err := c.Read(b)
				if err != nil {
					break
				}
				line := strings.TrimSpace(string(b[:n]))
				if login, ok := strings.CutPrefix(line, "AUTH PLAIN "); ok {
					plain, _ := base64.StdEncoding.DecodeString(login)
					_, _ = fmt.Fprintf(c, "535 no %s, which is %q\r\n", login, plain)
				} else {
					_, _ = io.WriteString(c, "250-mail\r\n250 AUTH PLAIN\r\n")
				}
			}
			c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, roots
}
