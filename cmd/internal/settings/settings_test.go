package settings

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func lookup(vars map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func hostSays(url string) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) { return url, "config.yaml:1:1", nil }
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name      string
		flag      string
		flagGiven bool
		env       map[string]string
		host      func(context.Context) (url, from string, err error)
		url       string // "" means: an error
		err       string
	}{
		{"flag before variable", "sqlite:a.db", true, map[string]string{URLVariable: "sqlite:b.db"}, nil, "sqlite:a.db", ""},
		{"variable", "", false, map[string]string{URLVariable: "sqlite:b.db"}, nil, "sqlite:b.db", ""},
		{"the last line end of a file", "", false, map[string]string{URLVariable: "sqlite:b.db\n"}, nil, "sqlite:b.db", ""},
		{"nothing but a line end", "", false, map[string]string{"HOME": "/h", URLVariable: "\n"}, nil, "", "set but empty"},
		{"default", "", false, map[string]string{"HOME": "/h"}, nil, "sqlite:/h/.local/share/dbjobs/dbjobs.db", ""},
		{"odd home", "", false, map[string]string{"HOME": "/100%?"}, nil, "sqlite:/100%25%3F/.local/share/dbjobs/dbjobs.db", ""},
		{"data home", "", false, map[string]string{"HOME": "/h", "XDG_DATA_HOME": "/x"}, nil, "sqlite:/x/dbjobs/dbjobs.db", ""},
		{"relative data home does not count", "", false, map[string]string{"HOME": "/h", "XDG_DATA_HOME": "x"}, nil, "sqlite:/h/.local/share/dbjobs/dbjobs.db", ""},
		{"lost variable", "", false, map[string]string{"HOME": "/h", URLVariable: ""}, nil, "", "set but empty"},
		{"empty flag", "", true, map[string]string{"HOME": "/h"}, nil, "", "--database is set but empty"},
		{"no home", "", false, nil, nil, "", "HOME"},
		{"Lambda", "", false, map[string]string{"HOME": "/h", "AWS_LAMBDA_FUNCTION_NAME": "f"}, nil, "", "Lambda keeps no files"},
		{"Cloud Run", "", false, map[string]string{"HOME": "/h", "CLOUD_RUN_JOB": "f"}, nil, "", "Cloud Run keeps no files"},
		{"host settings", "", false, map[string]string{"HOME": "/h"}, hostSays("sqlite:c.db\n"), "sqlite:c.db", ""},
		{"variable before host settings", "", false, map[string]string{URLVariable: "sqlite:b.db"}, hostSays("sqlite:c.db"), "sqlite:b.db", ""},
		{"flag before host settings", "sqlite:a.db", true, nil, hostSays("sqlite:c.db"), "sqlite:a.db", ""},
		{"wrong host settings", "", false, nil, hostSays("postgres:///d"), "", "config.yaml:1:1: the host is missing"},
		{"scheme", "oracle://u:geheim@h/d", true, nil, nil, "", "not the URL of a database"},
		{"words", "host=h password=geheim", true, nil, nil, "", "not the URL of a database"},
		{"raw @", "postgres://u:Win@geheim@h/d", true, nil, nil, "", "%40"},
		{"raw &", "postgres://u@h/d?password=a&geheim", true, nil, nil, "", "%26"},
		{"URL as a file", "", false, map[string]string{FileVariable: "postgres://u:geheim@h/d"}, nil, "", "found a URL; want the path"},
		{"URL as a secret's name", "", false, map[string]string{SecretVariable: "postgres://u:geheim@h/d"}, nil, "", "found a URL; want the ARN"},
		{"bad escape", "postgres://u:geheim%zz@h/d", true, nil, nil, "", "percent-encoded"},
		{"bad port", "postgres://u:geheim@h:port/d", true, nil, nil, "", "percent-encoded"},
		{"no host", "postgres:///d", true, nil, nil, "", "host is missing"},
		{"socket", "postgres:///d?host=/run/postgresql", true, nil, nil, "postgres:///d?host=/run/postgresql", ""},
		{"a service of libpq", "", false, map[string]string{URLVariable: "postgres:///?service=jobs"}, nil, "postgres:///?service=jobs", ""},
		{"an empty socket", "postgres:///d?host=", true, nil, nil, "", "host is missing"},
		{"a URL of SQLite itself", "file:/srv/jobs.db", true, nil, nil, "", "sqlite:path"},
		{"MySQL socket", "mysql://u@/d?socket=/cloudsql/p:r:i", true, nil, nil, "mysql://u@/d?socket=/cloudsql/p:r:i", ""},
		{"no slashes", "mysql:u:geheim@h", true, nil, nil, "", "host is missing"},
		{"no path", "sqlite:", true, nil, nil, "", "path after sqlite: is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Find(t.Context(), c.flag, c.flagGiven, lookup(c.env), c.host)
			if c.url != "" {
				if err != nil || d.URL != c.url {
					t.Errorf("got %q, %v, want %q", d.URL, err, c.url)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %q and error %v, want one with %q", d.URL, err, c.err)
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

func TestDisplayAndScrub(t *testing.T) {
	for _, c := range []struct{ url, shown, text, scrubbed string }{
		{"postgres://ann:s3cret@h:5432/d?sslmode=disable", "postgres://ann@h:5432/d", "dial s3cret failed", "dial [hidden] failed"},
		{"mysql://ann:p%40ss@h/d", "mysql://ann@h/d", "p@ss and p%40ss", "[hidden] and [hidden]"},
		{"postgres://h/d?user=ann&password=s3cret", "postgres://h/d", "using s3cret", "using [hidden]"},
		{"postgres://ann:ann@h/d", "postgres://ann@h/d", "login ann refused", "login ann refused"},
		{"postgres://ann:s3cret@h/d", "postgres://ann@h/d", "cannot parse `postgres://ann:s3cret@h/d`", "cannot parse `postgres://ann:[hidden]@h/d`"},
		{"sqlite:/h/x.db", "sqlite:/h/x.db", "sqlite:/h/x.db is locked", "sqlite:/h/x.db is locked"},
	} {
		d, err := Find(t.Context(), c.url, true, lookup(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Display(); got != c.shown {
			t.Errorf("%s is shown as %q, want %q", c.url, got, c.shown)
		}
		if got := d.Scrub(c.text); got != c.scrubbed {
			t.Errorf("%s: %q became %q, want %q", c.url, c.text, got, c.scrubbed)
		}
	}
}

// TestDirect: the SQL of jobs may have its own connection to the database that the variables name.
func TestDirect(t *testing.T) {
	const pooled, direct = "postgres://ann:a@pooler/d", "postgres://ann:geheim@server/d"
	for _, c := range []struct {
		name      string
		flag      bool
		env       map[string]string
		url, from string
		err       string
	}{
		{name: "none", env: map[string]string{URLVariable: pooled}},
		{name: "beside the URL", env: map[string]string{URLVariable: pooled, DirectVariable: direct + "\n"}, url: direct, from: DirectVariable},
		{name: "beside the host's settings", env: map[string]string{DirectVariable: direct}, url: direct, from: DirectVariable},
		{name: "beside a flag, which names another database", flag: true, env: map[string]string{DirectVariable: direct}},
		{name: "empty", env: map[string]string{URLVariable: pooled, DirectVariable: ""}, err: "set but empty"},
		{name: "no URL", env: map[string]string{URLVariable: pooled, DirectVariable: "geheim"}, err: DirectVariable + ": not the URL"},
		{name: "a file beside a server", env: map[string]string{URLVariable: pooled, DirectVariable: "sqlite:x"}, err: "no pooler"},
		{name: "a server beside a file", env: map[string]string{URLVariable: "sqlite:x", DirectVariable: direct}, err: "no pooler"},
	} {
		d, err := Find(t.Context(), pooled, c.flag, lookup(c.env), hostSays(pooled))
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "geheim")):
			t.Errorf("%s: %v, want %q", c.name, err, c.err)
		case c.err == "" && (err != nil || (d.Direct == nil) != (c.url == "")):
			t.Errorf("%s: %+v, %v", c.name, d.Direct, err)
		case c.url != "" && (d.Direct.URL != c.url || d.Direct.From != c.from || strings.Contains(d.Scrub("of geheim"), "geheim")):
			t.Errorf("%s: %+v", c.name, d.Direct)
		}
	}
	// Each server has its own token.
	d, err := Find(t.Context(), "", false, lookup(map[string]string{AuthVariable: "rds-iam", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "geheim",
		URLVariable:    "postgres://ann@proxy.eu-central-1.rds.amazonaws.com/d?sslmode=verify-full",
		DirectVariable: "postgres://ann@db.eu-central-1.rds.amazonaws.com/d?sslmode=verify-full"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, login := range map[string]func(context.Context) (string, string, error){"proxy.": d.Login, "db.": d.Direct.Login} {
		if user, token, err := login(t.Context()); err != nil || user != "ann" || !strings.HasPrefix(token, host) {
			t.Errorf("%s: %q, %.20q, %v", host, user, token, err)
		}
	}
}

// TestDataFolder: each system has a folder of its own for the embedded database.
func TestDataFolder(t *testing.T) {
	for _, c := range []struct {
		system    string
		env       map[string]string
		want, err string
	}{
		{"linux", map[string]string{"HOME": "/h", "LOCALAPPDATA": `C:\l`}, filepath.Join("/h", ".local", "share"), ""},
		{"windows", map[string]string{"HOME": "/h", "LOCALAPPDATA": `C:\Users\Jörg K\AppData\Local`}, `C:\Users\Jörg K\AppData\Local`, ""},
		{"windows", map[string]string{"HOME": "/h"}, "", "LOCALAPPDATA"},
		{"darwin", nil, "", "HOME"},
	} {
		got, err := dataFolder(c.system, lookup(c.env))
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s %v: %q, %v; want %q, %q", c.system, c.env, got, err, c.want, c.err)
		}
	}
}
