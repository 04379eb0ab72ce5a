package executor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// onAway calls hang for each path below /away, as if it were on a file server that is away.
func onAway(t *testing.T, hang func()) {
	t.Helper()
	evalSymlinks = func(path string) (string, error) {
		if strings.HasPrefix(path, "/away") {
			hang()
		}
		return filepath.EvalSymlinks(path)
	}
	t.Cleanup(func() { evalSymlinks = filepath.EvalSymlinks })
}

// A program may be on a file server that is away. Nothing ends the look for it, but the attempt waits no longer than its own time
// lasts, and has touched nothing.
func TestAProgramWhoseServerIsAway(t *testing.T) {
	began, back, done := make(chan bool), make(chan bool), make(chan bool)
	onAway(t, func() {
		close(began)
		<-back
		close(done)
	})
	x, err := KindOf("exec").Open(nil, &Host{Programs: []Program{{Path: "/away/tool"}}})
	if err != nil {
		t.Fatal(err)
	}
	over := errors.New("its time is over")
	ctx, end := context.WithCancelCause(t.Context())
	go func() {
		<-began
		end(over)
	}()
	res, err := x.Execute(ctx, attempt(`{"run": ["/away/tool"]}`))
	if _, unsent := errors.AsType[*UnsentError](err); !unsent || !errors.Is(err, over) || !strings.Contains(res.Output, `"/away/tool"`) {
		t.Errorf("%v, output %q; want that it was not begun, since %v", err, res.Output, over)
	}
	close(back)
	<-done
}

// A permission for what is on a file server that is away holds up no program that another permission names.
func TestAPermissionWhoseServerIsAway(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(tool, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	onAway(t, func() { t.Error("it looks for what is away") })
	for _, named := range []string{tool, filepath.Dir(tool)} {
		h := &Host{Programs: []Program{{Path: "/away/jobs"}, {Path: named, Owners: Owners{"ann"}}}}
		if _, err := h.AllowsProgram("ann", tool); err != nil {
			t.Errorf("with a permission for %s: %v", named, err)
		}
	}
}
