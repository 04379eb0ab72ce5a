package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const algorithm = "AWS4-HMAC-SHA256"

// Sign adds to the headers of a request what says by whose credentials it is: Signature Version 4, over all headers, the
// host, the URL and the body. The request is good for five minutes around now, and for no other host. S3 judges the path in one
// spelling, whichever was sent, so the URL of a request to S3 gets that one.
func Sign(h http.Header, method string, u *url.URL, body []byte, c Credentials, region, service string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	h.Del("Authorization")
	h.Set("X-Amz-Date", stamp)
	if c.SessionToken != "" {
		h.Set("X-Amz-Security-Token", c.SessionToken)
	}
	hashed := hex.EncodeToString(hash(string(body)))
	path := u.EscapedPath()
	if isS3(service) { // which also wants the hash as a header
		h.Set("X-Amz-Content-Sha256", hashed)
		path = eachPart(path, func(part string) string {
			plain, _ := url.PathUnescape(part) // it is escaped
			return escape(plain)
		})
		u.RawPath = path
	} else { // escaped once more
		path = eachPart(path, escape)
	}
	if path == "" {
		path = "/"
	}
	values := map[string]string{"host": u.Host}
	for name, list := range h {
		if name = strings.ToLower(name); name != "user-agent" {
			trimmed := make([]string, len(list))
			for i, v := range list {
				trimmed[i] = strings.Join(strings.Fields(v), " ")
			}
			values[name] = strings.Join(trimmed, ",")
		}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + values[name] + "\n")
	}
	signed := strings.Join(names, ";")
	request := strings.Join([]string{method, path, canonicalQuery(u), headers.String(), signed, hashed}, "\n")
	h.Set("Authorization", algorithm+" Credential="+c.KeyID+"/"+stamp[:8]+"/"+region+"/"+service+"/aws4_request, SignedHeaders="+signed+
		", Signature="+signature(c, stamp, region, service, request))
}

// isS3 reports whether a service signs, and answers, as S3 does: S3 itself, and those of its parts that have a name of their own in
// signatures.
func isS3(service string) bool {
	return service == "s3" || service == "s3express" || service == "s3-object-lambda" || service == "s3-outposts"
}

// signature is that of a request in its canonical form.
func signature(c Credentials, stamp, region, service, request string) string {
	day := stamp[:8]
	scope := day + "/" + region + "/" + service + "/aws4_request"
	toSign := algorithm + "\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(hash(request))
	key := []byte("AWS4" + c.Secret)
	for _, part := range []string{day, region, service, "aws4_request", toSign} {
		key = sign(key, part)
	}
	return hex.EncodeToString(key)
}

// eachPart changes each part of a path.
func eachPart(path string, change func(string) string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = change(parts[i])
	}
	return strings.Join(parts, "/")
}

// canonicalQuery is the query in the order of its names and values.
func canonicalQuery(u *url.URL) string {
	var pairs [][]string
	for name, list := range u.Query() {
		for _, v := range list {
			pairs = append(pairs, []string{escape(name), escape(v)})
		}
	}
	slices.SortFunc(pairs, slices.Compare)
	list := make([]string, len(pairs))
	for i, p := range pairs {
		list[i] = p[0] + "=" + p[1]
	}
	return strings.Join(list, "&")
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func hash(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func sign(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text)) // never fails
	return h.Sum(nil)
}
