package crontab

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

// from is the first day for which clock changes are examined.
var from = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// imported reads a crontab and writes the manifest. apply must accept the manifest.
func imported(t testing.TB, text string, o Options) string {
	t.Helper()
	r := Read(text, o)
	r.Finish(from, "")
	lines := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		lines++
	}
	reader := newReader(o, map[string]string{})
	reader.read(text)
	if n := len(r.Items) + reader.settings + reader.prose; n != lines {
		t.Fatalf("%d lines are accounted for, and there are %d", n, lines)
	}
	for _, item := range r.Items {
		if (item.Definition == nil) == (item.Reason == "") {
			t.Fatalf("%s is neither imported nor left out with a reason: %+v", item.Place, item)
		}
		if item.Definition != nil && !item.Definition.Disabled {
			t.Fatalf("%s is not disabled", item.Place)
		}
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Read([]manifest.Input{{Path: "it", In: bytes.NewReader(b.Bytes())}}, manifest.Options{Now: from, Env: os.LookupEnv})
	if err != nil {
		t.Fatalf("apply refuses it: %v\n%s", err, b.String())
	}
	if len(m.Jobs) != r.Imported()+len(r.Hooks) {
		t.Fatalf("the manifest has %d jobs, and %d were imported", len(m.Jobs), r.Imported())
	}
	return b.String()
}

// Real crontabs become these manifests.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/*.crontab")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := imported(t, string(text), Options{Name: filepath.Base(file), Zone: "Europe/Berlin", Users: UsersGuess, From: from})
			golden := strings.TrimSuffix(file, ".crontab") + ".yaml"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; go test ./cmd/internal/intake/crontab -update writes it. Now it is:\n%s", golden, got)
			}
		})
	}
}

// Whatever a file contains, each of its lines is reported or becomes a job, and apply accepts the result.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.crontab")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(text)) { // each line by itself: a whole file takes as long as a thousand lines
			f.Add(line, strings.Contains(file, "system"))
		}
	}
	for _, line := range []string{"* * * * * x", "A=b\n* * * * * $A%%x\\%y\n", "\x00\n\xff\n", "@reboot root x\n", "SHELL=x\n@daily y\n", "=\n'a'=\"b\n",
		"MAILTO=a@b,c@d\n@daily x ${run_id} ${\n", "HOME=/x\nDBJOBS_X=1\nPATH=${a}\n1 1 1 1 1 x\n", "# a: b\n1~5/2 ~ * * 7 '\t'\n", "* * * * * x\u2028y\u0085\n", "1 2 \v 4 5 x\n", "* * * * * " + strings.Repeat("u", 300) + " x\n", "1 2\u00a0 3 4 5 x\n"} {
		f.Add(line, true)
	}
	f.Fuzz(func(t *testing.T, text string, users bool) {
		if strings.Count(text, "\n") > 5 || len(text) > 1000 {
			return
		}
		// In UTC no night differs. The search for such nights takes most of the time, and TestNights tests it.
		o := Options{Name: "it", Zone: "UTC", Users: UsersNo, From: from}
		if users {
			o.Users = UsersYes
		}
		imported(t, text, o)
	})
}

// One line with a user in the crontab of a user takes no word from the commands of the other lines.
func TestUsersAreGuessed(t *testing.T) {
	for text, want := range map[string]string{
		"0 8 * * 7 root /opt/a\n0 9 * * * cd /srv && /opt/b\n0 10 * * * /opt/c\n":              "",
		"0 8 * * 7 root /opt/a\n0 9 * * * cd /srv && /opt/b\n@daily /opt/c\n":                  "",
		"0 8 * * 7 root /opt/a\n0 9 * * * cd /srv && /opt/b\n0 10 * * * A=1 c\n":               "",
		"0 8 * * 7 root /opt/a\n0 9 * * * ann /srv/b\n":                                        "ann",
		"0 8 * * 7 root /opt/a\n0 9 * * * ann /srv/b\n0 10 * * * /opt/c\n@daily root /opt/d\n": "ann",
		"# m h dom mon dow user command\n0 8 * * * /opt/a x\n0 9 * * * ann /srv/b\n":           "ann",
		"0 8 * * 7 root /opt/a\n0 9 * * * cd /srv && php x\n":                                  "",
		"0 8 * * 7 /opt/a\n0 9 * * * cd /srv && /opt/b\n":                                      "",
	} {
		r := Read(text, Options{Name: "it", Zone: "UTC", Users: UsersGuess, From: from})
		if got := r.Items[1].Definition.Queue; got != want {
			t.Errorf("%q: the queue is %q, want %q", text, got, want)
		}
	}
}

// In a folder, each file has its own settings. A file that cron ignores is named, unless it has nothing but comments, as the
// one that Debian puts there.
func TestFolder(t *testing.T) {
	r := ReadFolder([]File{
		{"/etc/cron.d/one", "FOO=1\n@daily root /bin/one\n"},
		{"/etc/cron.d/two", "@daily root /bin/one\n"},
		{"/etc/cron.d/three.dpkg-old", "MAILTO=ada@example.org\n@daily root /bin/three\n"},
		{"/etc/cron.d/.placeholder", "# DO NOT EDIT OR REMOVE\n# This file keeps dpkg from removing this directory\n"},
	}, Options{Name: "/etc/cron.d", Zone: "UTC", From: from})
	r.Finish(from, "")
	if len(r.Items) != 3 || len(r.Hooks) > 0 || r.Rest != "1 setting, 2 comments and blank lines" || r.Imported() != 2 || !strings.Contains(r.Left()[0].Reason, "leaves out") {
		t.Fatalf("%+v, %d hooks, %s", r.Items, len(r.Hooks), r.Rest)
	}
	if one, two := string(r.Items[0].Definition.Steps[0].Spec), string(r.Items[1].Definition.Steps[0].Spec); !strings.Contains(one, "FOO") || strings.Contains(two, "FOO") {
		t.Errorf("the settings of one file are those of another: %s, %s", one, two)
	}
	if r.Items[0].Job != "one" || r.Items[1].Job != "one-2" || r.Items[0].Definition.Queue != "root" {
		t.Errorf("%+v", r.Items)
	}
}

// The crontab of a user has the name of the user, in a folder in which cron keeps such files. In another folder, a file whose
// name has an extension is no user's.
func TestCrontabsOfUsers(t *testing.T) {
	for _, folder := range []string{"/var/spool/cron/crontabs", "copies/crontabs"} {
		r := ReadFolder([]File{
			{folder + "/ada", "@daily /bin/one\n@daily /bin/two\n"},
			{folder + "/john.doe", "@daily /bin/one\n"},
			{folder + "/.ada.swp", "@daily /bin/one\n"},
		}, Options{Name: folder, Zone: "UTC", From: from})
		r.Finish(from, "")
		if len(r.Items) != 4 || r.Imported() != 3 || !strings.Contains(r.Left()[0].Reason, "dot") {
			t.Fatalf("%s: %+v", folder, r.Items)
		}
		for i, want := range []string{"ada", "ada", "john.doe"} {
			if item := r.Items[i]; item.Definition.Queue != want || !strings.Contains(strings.Join(item.Notes, " "), "It ran as "+want) {
				t.Errorf("%s: the queue is %q, want %q; %q", folder, item.Definition.Queue, want, item.Notes)
			}
		}
		if !strings.Contains(strings.Join(r.Head, "\n"), "whose name the file has") {
			t.Errorf("%s: nothing is said of users: %q", folder, r.Head)
		}
	}
	for path, want := range map[string]string{
		"crons/backup.cron": "", "crons/reports.txt": "", "crons/ada": "ada", "/var/spool/cron/tabs/john.doe": "john.doe", "/etc/cron.d/backup": "",
	} {
		r := ReadFolder([]File{{path, "@daily /bin/one\n"}}, Options{Zone: "UTC", Users: UsersNo, From: from})
		if got := r.Items[0].Definition.Queue; got != want {
			t.Errorf("%s: the queue is %q, want %q", path, got, want)
		}
	}
	for name, want := range map[string]string{
		"/var/spool/cron/crontabs/ada": "ada", "/var/spool/cron/ada": "ada", "/var/spool/cron/tabs/ada": "ada", "/etc/crontabs/root": "root",
		"/srv/cron/nightly": "", "crontab.txt": "", "standard input": "",
	} {
		r := Read("0 8 * * 7 root /opt/a\n", Options{Name: name, Zone: "UTC", Users: UsersNo, From: from})
		if got := r.Items[0].Definition.Queue; got != want {
			t.Errorf("%s: the queue is %q, want %q", name, got, want)
		}
	}
	r := Read("0 8 * * 7 root /opt/a\n", Options{Name: "/var/spool/cron/ada", Zone: "UTC", Users: UsersGuess, From: from})
	if got := r.Items[0].Definition.Queue; got != "ada" {
		t.Errorf("a line of a user has the queue %q", got)
	}
}
