package aws

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestSign has vectors of the test suite for Signature Version 4 that AWS publishes.
func TestSign(t *testing.T) {
	now := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	c := Credentials{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""}
	session := c
	session.SessionToken = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
	for _, v := range []struct {
		name, method, target string
		headers              http.Header
		body                 string
		c                    Credentials
		signed, want         string
	}{
		{"get-vanilla", "GET", "/", nil, "", c, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla without a path", "GET", "", nil, "", c, "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "/", nil, "", c, "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", nil, "", c, "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"get-vanilla-utf8-query", "GET", "/?%E1%88%B4=bar", nil, "", c, "host;x-amz-date", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		{"get-vanilla-with-session-token", "GET", "/", nil, "", session, "host;x-amz-date;x-amz-security-token", "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
		{"get-header-value-trim", "GET", "/", http.Header{"My-Header1": {" value1"}, "My-Header2": {` "a   b   c"`}}, "", c, "host;my-header1;my-header2;x-amz-date",
			"acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{"post-x-www-form-urlencoded", "POST", "/", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Content-Length": {"13"},
			"X-Amz-Content-Sha256": {"9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"}}, "Param1=value1", c,
			"content-length;content-type;host;x-amz-content-sha256;x-amz-date", "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b"},
	} {
		u, err := url.Parse("https://example.amazonaws.com" + v.target)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{"User-Agent": {"dbjobs"}, "Authorization": {"of an earlier try"}}
		maps.Copy(h, v.headers)
		Sign(h, v.method, u, []byte(v.body), v.c, "us-east-1", "service", now)
		want := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + v.signed + ", Signature=" + v.want
		if got := h.Get("Authorization"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", v.name, got, want)
		}
	}
	if got := eachPart("/functions/arn:aws:x%20y/invocations", escape); got != "/functions/arn%3Aaws%3Ax%2520y/invocations" {
		t.Error(got)
	}
	u, _ := url.Parse("https://h/?a-=1&a=2&a=10")
	if got := canonicalQuery(u); got != "a=10&a=2&a-=1" {
		t.Error(got)
	}
	for path, want := range map[string]string{"": "/", "/day=2026-11-20/a b+c.json": "/day%3D2026-11-20/a%20b%2Bc.json", "/%7Ea%2Fb/%C3%A4": "/~a%2Fb/%C3%A4"} {
		u, _ = url.Parse("https://h" + path)
		if Sign(http.Header{}, "GET", u, nil, c, "us-east-1", "s3", now); u.RequestURI() != want {
			t.Errorf("%s is sent as %s", path, u.RequestURI())
		}
	}
	h := http.Header{}
	if Sign(h, "GET", u, nil, c, "us-east-1", "s3", now); !strings.Contains(h.Get("Authorization"), "x-amz-content-sha256") {
		t.Error(h)
	}
}

// TestSignS3: the examples GET Object and PUT Object that AWS publishes for Signature Version 4 in S3; the key of the second
// has a character that is escaped, once, and is sent so, however the URL spells it.
func TestSignS3(t *testing.T) {
	c := Credentials{KeyID: "AKIAIOSFODNN7EXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}
	for _, e := range []struct {
		method, path, escaped, body string
		headers                     http.Header
		want                        string
	}{
		{"GET", "/test.txt", "/test.txt", "", http.Header{"Range": {"bytes=0-9"}}, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"PUT", "/test%24file.text", "/test%24file.text", "Welcome to Amazon S3.", http.Header{"Date": {"Fri, 24 May 2013 00:00:00 GMT"}, "X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"}},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"PUT", "/test$file.text", "/test%24file.text", "Welcome to Amazon S3.", http.Header{"Date": {"Fri, 24 May 2013 00:00:00 GMT"}, "X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"}},
			"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
	} {
		u, err := url.Parse("https://examplebucket.s3.amazonaws.com" + e.path)
		if err != nil {
			t.Fatal(err)
		}
		Sign(e.headers, e.method, u, []byte(e.body), c, "us-east-1", "s3", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
		if a := e.headers.Get("Authorization"); !strings.HasSuffix(a, "Signature="+e.want) {
			t.Errorf("%s %s: %s, want %s", e.method, e.path, a, e.want)
		}
		if sent := u.RequestURI(); sent != e.escaped {
			t.Errorf("%s %s: sent as %s", e.method, e.path, sent)
		}
	}
}

// TestSignPartsOfS3: what has a name of its own in signatures, and is a part of S3, is signed as S3: a path is escaped once.
func TestSignPartsOfS3(t *testing.T) {
	signed := func(service string) (path, signature string) {
		u, err := url.Parse("https://jobs.example.com/day=2026-11-20/a b.json")
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		Sign(h, "GET", u, nil, Credentials{KeyID: "AKIDEXAMPLE", Secret: "x"}, "us-west-2", service, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC))
		return u.RequestURI(), h.Get("Authorization")
	}
	for _, service := range []string{"s3", "s3express", "s3-object-lambda", "s3-outposts"} {
		if path, by := signed(service); path != "/day%3D2026-11-20/a%20b.json" || !strings.Contains(by, "/"+service+"/aws4_request") || !strings.Contains(by, "x-amz-content-sha256") {
			t.Errorf("%s: %s is sent, signed with %s", service, path, by)
		}
	}
	if path, by := signed("s3tables"); path != "/day=2026-11-20/a%20b.json" || strings.Contains(by, "x-amz-content-sha256") {
		t.Errorf("s3tables is a service like others: %s is sent, signed with %s", path, by)
	}
}
