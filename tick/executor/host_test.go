package executor_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/secret"
	"github.com/dbjobs/dbjobs/store/storetest/bubble"
	"github.com/dbjobs/dbjobs/tick/executor"
	"github.com/dbjobs/dbjobs/tick/executor/aws"
)

// programs makes a folder with programs and links among them.
func programs(t *testing.T) (root string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "bin/deep", "other"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"bin/tool", "bin/deep/tool", "other/tool"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"bin/out": "../other/tool", "bin/alias": "tool", "usr": "bin", "other/in": "../bin/tool", "bin/way": "../other"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestPrograms(t *testing.T) {
	root := programs(t)
	in := func(name string) string { return root + "/" + name }
	for _, c := range []struct {
		permission, program string
		want                string // the program that runs; empty: it is refused
	}{
		{"bin/tool", "bin/tool", "bin/tool"},
		{"bin/tool", "usr/tool", "bin/tool"}, // the folder has another name
		{"usr/tool", "bin/tool", "bin/tool"},
		{"bin/alias", "bin/alias", "bin/alias"}, // run by its own name
		{"bin/alias", "bin/tool", ""},           // with another name, it could be another program
		{"bin/tool", "bin/alias", ""},
		{"bin/tool", "bin/deep/tool", ""},
		{"bin/tool", "other/tool", ""},
		{"bin", "bin/tool", "bin/tool"},
		{"bin", "bin/deep/tool", "bin/deep/tool"},
		{"bin", "usr/tool", "bin/tool"},
		{"bin", "bin/alias", "bin/tool"},
		{"bin", "other/in", "bin/tool"},
		{"bin", "bin/out", ""},      // a link that leads out
		{"bin", "bin/way/tool", ""}, // a folder that leads out
		{"bin", "other/tool", ""},
		{"bi", "bin/tool", ""}, // the beginning of a name
		{"bin/deep", "bin/tool", ""},
		{"bin", "bin/../other/tool", ""},
		{"bin", "bin/./tool", ""},
		{"bin", "bin/none", ""},
	} {
		h := &executor.Host{Programs: []executor.Program{{Path: in(c.permission)}}}
		got, err := h.AllowsProgram("ann", in(c.program))
		if c.want != "" && got != in(c.want) || c.want == "" && err == nil {
			t.Errorf("with a permission for %s, %s: runs %q, %v; want %q", c.permission, c.program, got, err, c.want)
		}
	}
	if _, err := new(executor.Host).AllowsProgram("", "sh"); err == nil {
		t.Error("a program without a folder was allowed")
	}
}

// A program that all users of the system can replace is not run, whatever the permission: any user could decide what it
// does.
func TestProgramsThatAllMayWrite(t *testing.T) {
	root := programs(t)
	folder := &executor.Host{Programs: []executor.Program{{Path: root + "/bin"}}}
	link := &executor.Host{Programs: []executor.Program{{Path: root + "/bin/out"}}}
	for _, c := range []struct {
		path, mode string
		h          *executor.Host
		program    string
		allowed    bool
	}{
		{"bin/tool", "777", folder, "/bin/tool", false},
		{"bin/tool", "775", folder, "/bin/tool", true}, // the owner of the host has chosen the group's members
		{"bin", "777", folder, "/bin/deep/tool", false},
		{"bin", "1777", folder, "/bin/deep/tool", true}, // as in /tmp
		{"bin/deep", "777", folder, "/bin/deep/tool", false},
		{"bin/deep", "777", folder, "/bin/tool", true},
		{"", "777", folder, "/bin/tool", false},
		{"other", "777", link, "/bin/out", false}, // the place to which the link leads
		{"other/tool", "757", link, "/bin/out", false},
		{"bin", "757", link, "/bin/out", false},
	} {
		path := filepath.Join(root, c.path)
		if out, err := exec.Command("chmod", c.mode, path).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
		_, err := c.h.AllowsProgram("ann", root+c.program)
		if (err == nil) != c.allowed || err != nil && !strings.Contains(err.Error(), path+" may be written by all users; chmod o-w it") {
			t.Errorf("with mode %s of %s, %s: %v", c.mode, c.path, c.program, err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := (executor.Program{Path: root + "/bin"}).Check(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(root+"/bin", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := (executor.Program{Path: root + "/bin"}).Check(); err == nil {
		t.Error("a folder that all may write is in order")
	}
}

// Without permission for its name, no job learns whether there is such a file, or what is wrong with it.
func TestProgramsThatAreNotThere(t *testing.T) {
	root := programs(t)
	for _, permission := range []string{"", "other", "bin/tool"} {
		h := &executor.Host{}
		if permission != "" {
			h.Programs = []executor.Program{{Path: root + "/" + permission}, {Path: root, Owners: executor.Owners{"bob"}}}
		}
		for _, name := range []string{"/bin/none", "/none/tool", "/bin/tool/in", "/bin/alias/in", "/bin/deep/tool"} {
			_, err := h.AllowsProgram("ann", root+name)
			if _, refused := errors.AsType[*executor.RefusedError](err); refused == strings.HasPrefix(name, "/"+permission+"/") {
				t.Errorf("with a permission for %q, %s: %v", permission, name, err)
			}
		}
	}
	h := &executor.Host{Programs: []executor.Program{{Path: root + "/bin"}}}
	if _, err := h.AllowsProgram("ann", root+"/bin/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with a permission for the folder: %v", err)
	}
}

// Each refusal names the line that gives the permission, and that line gives it.
func TestRefusals(t *testing.T) {
	tool := programs(t) + "/bin/tool"
	value := func(context.Context) (string, error) { return "geheimnis", nil }
	others := executor.Owners{"bob"}
	full := &executor.Host{Settings: "/etc/dbjobs/config.yaml", Programs: []executor.Program{{tool, others}},
		Addresses: []executor.Addresses{{netip.MustParsePrefix("10.0.0.0/8"), others}}, Secrets: map[string]executor.Secret{"HOOK": {value, others}},
		Targets: map[string]executor.Target{"crm": {value, others}}, Mailer: &executor.MailServer{Server: "mx", Password: value, Owners: others}}
	uses := []struct {
		use         func(h *executor.Host, owner string) error
		none, owner string // the line to add if there is no permission, and if there is one for another owner
	}{
		{func(h *executor.Host, owner string) error { _, err := h.AllowsProgram(owner, tool); return err },
			"programs: [" + tool + "]", "programs: [{path: " + tool + ", owners: [bob, ann]}]"},
		{func(h *executor.Host, owner string) error { _, err := h.Secret(t.Context(), owner, "HOOK"); return err },
			"secrets: {HOOK: {value_file: …}}", "secrets: {HOOK: {value_file: …, owners: [bob, ann]}}"},
		{func(h *executor.Host, owner string) error { _, err := h.Target(t.Context(), owner, "crm"); return err },
			"targets: {crm: {url_file: …}}", "targets: {crm: {url_file: …, owners: [bob, ann]}}"},
		{func(h *executor.Host, owner string) error { _, err := h.Mail(owner); return err },
			"mail: {server: …, from: …}", "mail: {owners: [bob, ann]}"},
	}
	for _, u := range uses {
		for h, want := range map[*executor.Host]string{nil: u.none, {}: u.none, full: u.owner} {
			err := u.use(h, "ann")
			if _, ok := errors.AsType[*executor.RefusedError](err); !ok || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("refused with %v; want it to end with %s", err, want)
			}
		}
		if err := u.use(full, "bob"); err != nil {
			t.Error(err)
		}
	}
	near := netip.MustParseAddr("::ffff:10.1.2.3")
	if full.AllowsAddress("ann", near) || (*executor.Host)(nil).AllowsAddress("bob", near) || !full.AllowsAddress("bob", near) {
		t.Error("an address is not allowed to those, and only to those, who have the permission")
	}
}

// A secret that was given to a step is known as a secret.
func TestGivenOut(t *testing.T) {
	known := &secret.Known{}
	h := &executor.Host{Known: known, Secrets: map[string]executor.Secret{"HOOK": {Value: func(context.Context) (string, error) { return "geheimnis", nil }}},
		Mailer: &executor.MailServer{Password: func(context.Context) (string, error) { return "heimlich", nil }}}
	if _, err := h.Secret(t.Context(), "", "HOOK"); err != nil {
		t.Fatal(err)
	}
	m, err := h.Mail("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Password(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := known.Hide("geheimnis, heimlich"); got != secret.Hidden+", "+secret.Hidden {
		t.Errorf("told as %q", got)
	}
}

// What an owner is allowed to use, but not to read, is hidden as a whole in what her jobs say. So they do not tell her that she has
// guessed its beginning. A secret that she can read is hidden at a cut, too.
func TestUsedButNotRead(t *testing.T) {
	known := &secret.Known{}
	known.Separate(true, "")
	given := func(text string) executor.Read { return func(context.Context) (string, error) { return text, nil } }
	h := &executor.Host{Known: known, Secrets: map[string]executor.Secret{"HOOK": {Value: given("lesbares-geheimnis")}},
		Targets: map[string]executor.Target{"far": {URL: given("mysql://ann:geheimes-ziel@far/d")}},
		Mailer:  &executor.MailServer{Password: given("heimliche-post")}}
	m, err := h.Mail("ann")
	if err != nil {
		t.Fatal(err)
	}
	_, post := m.Password(t.Context())
	_, target := h.Target(t.Context(), "ann", "far")
	_, hook := h.Secret(t.Context(), "ann", "HOOK")
	if err := errors.Join(post, target, hook); err != nil {
		t.Fatal(err)
	}
	const hidden = secret.Hidden
	for text, want := range map[string]string{
		"geheimes-ziel, heimliche-post, lesbares-geheimnis": hidden + ", " + hidden + ", " + hidden,
		"gehei… heiml… lesba…":                              "gehei… heiml… " + hidden + "…",
	} {
		if got := known.For("ann").Hide(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// A secret may be in a file on a file server that is away. Nothing ends the read of it, but a step waits for it no longer
// than its own time lasts.
func TestReadThatHangs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		h := &executor.Host{Secrets: map[string]executor.Secret{"HOOK": {Value: hangs}}, Targets: map[string]executor.Target{"far": {URL: hangs}},
			Mailer: &executor.MailServer{Password: hangs}}
		m, err := h.Mail("ann")
		if err != nil {
			t.Fatal(err)
		}
		over := errors.New("the time of the step is over")
		for name, read := range map[string]executor.Read{
			"secret":   func(ctx context.Context) (string, error) { return h.Secret(ctx, "ann", "HOOK") },
			"target":   func(ctx context.Context) (string, error) { return h.Target(ctx, "ann", "far") },
			"password": m.Password,
		} {
			ctx, end := context.WithTimeoutCause(t.Context(), time.Minute, over)
			if v, err := read(ctx); v != "" || !errors.Is(err, over) {
				t.Errorf("%s: %q, %v; want that the time is over", name, v, err)
			}
			end()
		}
	})
}

// A secret that AWS does not give for a moment is no failure of the step. One that is refused, or that is not there, is one.
func TestReadThatPasses(t *testing.T) {
	var status atomic.Int32
	extension := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	defer extension.Close()
	env := func(name string) (string, bool) {
		return extension.URL[strings.LastIndexByte(extension.URL, ':')+1:], name == "PARAMETERS_SECRETS_EXTENSION_HTTP_PORT"
	}
	read := func(ctx context.Context) (string, error) { return aws.Secret(ctx, env, "key") }
	h := &executor.Host{Secrets: map[string]executor.Secret{"KEY": {Value: read}}, Targets: map[string]executor.Target{"far": {URL: read}}}
	for code, passes := range map[int32]bool{http.StatusTooManyRequests: true, http.StatusForbidden: false} {
		status.Store(code)
		_, secret := h.Secret(t.Context(), "", "KEY")
		_, target := h.Target(t.Context(), "", "far")
		for _, err := range []error{secret, target} {
			if err == nil || errors.Is(err, executor.ErrNothingDone) != passes {
				t.Errorf("status %d: %v; want that nothing was done: %t", code, err, passes)
			}
		}
	}
}
