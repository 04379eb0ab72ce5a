package engine_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/engine"
	"github.com/dbjobs/dbjobs/store/storetest"
)

// routine returns a routine with semicolons in its body that takes a number of arguments.
func routine(e string, arguments int) engine.Repeatable {
	list := strings.TrimSuffix(strings.Repeat("a%d bigint, ", arguments), ", ")
	numbers := make([]any, arguments)
	for i := range numbers {
		numbers[i] = i
	}
	list = fmt.Sprintf(list, numbers...)
	if storetest.Dialect(e) == "postgres" {
		return engine.Repeatable{Kind: "FUNCTION", Name: "dbjobs.probe", Statements: []string{
			"-- It answers.\nCREATE FUNCTION dbjobs.probe(" + list + ") RETURNS bigint LANGUAGE plpgsql AS $$\nBEGIN\n  PERFORM 1;\n  RETURN 1;\nEND;\n$$",
			"COMMENT ON FUNCTION dbjobs.probe IS 'it; answers'"}}
	}
	return engine.Repeatable{Kind: "PROCEDURE", Name: "dbjobs_probe", Statements: []string{
		"-- It answers.\nCREATE PROCEDURE dbjobs_probe(" + list + ")\nCOMMENT 'it; answers'\nBEGIN\n  DO 1;\n  SELECT 1;\nEND"}}
}

func view(e *engine.Engine, columns string) engine.Repeatable {
	name := e.Table("v_probe")
	return engine.Repeatable{Kind: "VIEW", Name: name, Statements: []string{"CREATE VIEW " + name + " AS\nSELECT " + columns + " FROM " + e.Table("installation")}}
}

// replace installs what is given, as Migrate does.
func replace(t *testing.T, db *engine.DB, all ...engine.Repeatable) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *engine.Tx) error { return db.Replace(t.Context(), tx, all) }); err != nil {
		t.Fatal(err)
	}
}

// Views and routines are replaced whatever they were before. A login that had rights on them has these
// rights afterwards.
func TestReplaceKeepsWhatWasGranted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		db, err := engine.New(d.URL, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		routines := d.Engine != "sqlite"
		with := func(v engine.Repeatable, arguments int) (all []engine.Repeatable) {
			if all = append(all, v); routines {
				all = append(all, routine(d.Server, arguments))
			}
			return all
		}
		replace(t, db, with(view(d.Store.Engine(), "id, version"), 1)...)
		if d.Engine == "postgres" {
			d.Exec(t, "GRANT SELECT ON dbjobs.v_probe TO PUBLIC")
			d.Exec(t, "REVOKE EXECUTE ON FUNCTION dbjobs.probe FROM PUBLIC")
		}
		var granted *sql.DB
		if d.Server == "mariadb" { // MySQL has no statement that keeps the rights
			login, as := d.Account(t, "reader")
			d.Exec(t, "GRANT EXECUTE ON PROCEDURE dbjobs_probe TO "+login)
			granted = storetest.OpenSQL(t, as)
		}
		for _, again := range [][]engine.Repeatable{
			with(view(d.Store.Engine(), "id, version, oldest"), 1), // one column more: in place
			with(view(d.Store.Engine(), "oldest"), 1),              // fewer columns: made anew
			with(view(d.Store.Engine(), "oldest"), 2),              // one argument more
		} {
			replace(t, db, again...)
		}
		if got := d.Int(t, "SELECT oldest FROM "+d.Table("v_probe")); got != 1 {
			t.Errorf("oldest is %d", got)
		}
		if granted != nil {
			if _, err := granted.Exec("CALL dbjobs_probe(1, 2)"); err != nil {
				t.Errorf("the right on the routine is gone: %v", err)
			}
		}
		if d.Engine != "postgres" {
			return
		}
		if n := d.Int(t, "SELECT count(*) FROM pg_proc WHERE proname = 'probe'"); n != 1 {
			t.Errorf("%d routines", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a WHERE c.relname = 'v_probe' AND a.grantee = 0 AND a.privilege_type = 'SELECT'"); n != 1 {
			t.Errorf("%d rights on the view are there, want one", n)
		}
		if n := d.Int(t, "SELECT count(*) FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE p.proname = 'probe' AND a.grantee = 0"); n != 0 {
			t.Error("what was revoked is granted")
		}
		// A view of others on one of our views stays if our view can be replaced. If it cannot,
		// nothing is taken away.
		d.Exec(t, "CREATE VIEW public.theirs AS SELECT oldest FROM dbjobs.v_probe")
		replace(t, db, view(d.Store.Engine(), "oldest, id"))
		err = db.InTx(t.Context(), func(tx *engine.Tx) error {
			return db.Replace(t.Context(), tx, []engine.Repeatable{view(d.Store.Engine(), "id")})
		})
		if err == nil || !strings.Contains(err.Error(), "other objects depend on it") {
			t.Errorf("a view on which another stands: %v", err)
		}
		if n := d.Int(t, "SELECT count(*) FROM public.theirs"); n != 1 {
			t.Errorf("theirs has %d rows", n)
		}
	})
}

// The text for the engine's own client does what Replace does, also where a routine has semicolons in its body.
func TestRepeatableTextIsForTheClient(t *testing.T) {
	for _, e := range storetest.Engines(t) {
		t.Run(e, func(t *testing.T) {
			own := storetest.URL(t, e)
			db := storetest.OpenSQL(t, own)
			of, err := engine.Of(own)
			if err != nil {
				t.Fatal(err)
			}
			create := "CREATE TABLE IF NOT EXISTS " + of.Table("installation") + " (id int, oldest int)"
			if storetest.Dialect(e) == "postgres" {
				create = "CREATE SCHEMA IF NOT EXISTS dbjobs; " + create
			}
			if _, err := db.Exec(create); err != nil {
				t.Fatal(err)
			}
			all := []engine.Repeatable{view(of, "id, oldest")}
			if storetest.Dialect(e) != "sqlite" {
				all = append(all, routine(e, 1))
			}
			for range 2 {
				client(t, e, own, of.RepeatableText(all))
			}
			var n int
			if err := db.QueryRow("SELECT count(*) FROM " + of.Table("v_probe")).Scan(&n); err != nil {
				t.Error(err)
			}
			if called := map[string]string{"postgres": "SELECT dbjobs.probe(1)", "mariadb": "CALL dbjobs_probe(1)"}[storetest.Dialect(e)]; called != "" {
				if err := db.QueryRow(called).Scan(&n); err != nil || n != 1 {
					t.Error(n, err)
				}
			}
		})
	}
}

// client runs a text by psql, mariadb or sqlite3.
func client(t *testing.T, e, rawURL, text string) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal("not a URL")
	}
	password, _ := u.User.Password()
	var words []string
	switch storetest.Dialect(e) {
	case "postgres":
		words = []string{"psql", "-X", "-v", "ON_ERROR_STOP=1", rawURL}
	case "mariadb":
		words = []string{"mariadb", "-h", u.Hostname(), "-P", u.Port(), "-u", u.User.Username(), "--skip-ssl", strings.TrimPrefix(u.Path, "/")}
	default:
		words = []string{"sqlite3", "-bail", strings.TrimPrefix(rawURL, "sqlite:")}
	}
	program, root := storetest.Client(t, words[0])
	if plugins, _ := filepath.Glob(filepath.Join(root, "usr/lib/*/libmariadb3/plugin")); root != "/" && len(plugins) > 0 { // the pattern is well-formed
		words = slices.Insert(words, 1, "--plugin-dir="+plugins[0])
	}
	cmd := exec.CommandContext(t.Context(), program, words[1:]...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+password)
	if root != "/" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+strings.Join(storetest.Server{Root: root}.Libraries(), ":"))
	}
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", words[0], err, out)
	}
}

// TestDigestKnowsOwners: a program with other statements by which rows belong to logins has another digest, so that migrate brings
// them in.
func TestDigestKnowsOwners(t *testing.T) {
	t.Parallel()
	for _, e := range engine.All() {
		without, err := e.Statements(nil).Digest(false)
		if err != nil {
			t.Fatal(err)
		}
		with, err := e.Statements(nil).Digest(true)
		if e.KnowsLogins == (err != nil) || with == without {
			t.Errorf("%s: %s without owners, and with them %s, %v", e.Name, without, with, err)
		}
	}
}
