package wake

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store/storetest"
)

// A program gets the instant, and none of the variables of dbjobs, which may be secret.
func TestAlarmOfAProgram(t *testing.T) {
	dir := t.TempDir()
	ring, out := filepath.Join(dir, "ring"), filepath.Join(dir, "out")
	script := "#!/bin/sh\necho \"$@ $DBJOBS_DATABASE_URL\" >> '" + out + "'\ntest ! -e '" + dir + "/fail' || { echo it is full >&2; exit 3; }\n"
	if err := os.WriteFile(ring, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New("exec:"+ring, Settings{Env: lookup(nil), Environ: append(os.Environ(), "DBJOBS_DATABASE_URL=geheim"), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	if rings, err := a.Set(t.Context(), noon.Add(time.Hour)); err != nil || !rings.Equal(noon.Add(time.Hour)) {
		t.Errorf("%v, %v", rings, err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "2026-11-24T13:00:00Z \n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Set(t.Context(), noon); err == nil || !strings.Contains(err.Error(), "run ring: exit status 3: it is full") {
		t.Error(err)
	}
}

// systemd reads what an alarm says as the instant that it is for.
func TestAlarmOfSystemd(t *testing.T) {
	root := os.Getenv("DBJOBS_TEST_SYSTEMD")
	if root == "" {
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			storetest.Skip(t, "no DBJOBS_TEST_SYSTEMD names the root folder of a systemd-analyze; make test comes by one")
		}
		root = "/"
	}
	a, err := New("systemd", Settings{Env: lookup(map[string]string{TargetVariable: "systemctl start --no-block dbjobs.service"}), Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	args := a.(*systemd).args(noon.Add(25*time.Hour + 7*time.Second))
	i := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "--on-calendar=") })
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/systemd-analyze"), "calendar", "--base-time=2026-11-24 12:00:00 UTC", strings.TrimPrefix(args[i], "--on-calendar="))
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C")
	if root != "/" {
		var folders []string
		for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/systemd", "lib/*-linux-gnu"} {
			found, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well-formed
			folders = append(folders, found...)
		}
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+strings.Join(folders, ":"))
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "2026-11-25 13:00:07 UTC") {
		t.Errorf("%v: %s", err, out)
	}
	if !slices.Contains(args, "--unit=dbjobs-wake-20261125T130007Z") {
		t.Errorf("%q", args)
	}
}

// at(1) keeps one job for a minute, which starts what is to be started, with none of the variables of dbjobs.
func TestAlarmOfAt(t *testing.T) {
	if _, err := exec.LookPath("at"); err != nil {
		t.Skip("there is no at(1), which only root can install, and .ci/run says so")
	}
	out := filepath.Join(t.TempDir(), "out")
	soon := time.Now().Add(300 * 24 * time.Hour).Truncate(time.Minute)
	a, err := New("at:y", Settings{Env: lookup(map[string]string{TargetVariable: `echo "$DBJOBS_DATABASE_URL ${TZ-none}" > '` + out + `'`}),
		Environ: append(os.Environ(), "DBJOBS_DATABASE_URL=geheim", "TZ=Asia/Kathmandu"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	jobs := func() (list []string) {
		text, err := exec.CommandContext(context.WithoutCancel(t.Context()), "atq", "-q", "y", "-o", "%s").Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); f[1] == fmt.Sprint(soon.Unix()) {
				list = append(list, f[0])
			}
		}
		return list
	}
	t.Cleanup(func() {
		for _, job := range jobs() {
			_ = exec.CommandContext(context.WithoutCancel(t.Context()), "atrm", job).Run()
		}
	})
	for range 3 {
		rings, err := a.Set(t.Context(), soon.Add(-30*time.Second))
		if err != nil {
			t.Skipf("this user may not use at(1): %v", err)
		}
		if !rings.Equal(soon) {
			t.Fatalf("%v, want %v", rings, soon)
		}
	}
	list := jobs()
	if len(list) != 1 {
		t.Fatalf("the jobs are %v", list)
	}
	script, err := exec.CommandContext(t.Context(), "at", "-c", list[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh")
	cmd.Stdin = strings.NewReader(string(script))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != " Asia/Kathmandu\n" {
		t.Errorf("it printed %q, %v", got, err)
	}
}
