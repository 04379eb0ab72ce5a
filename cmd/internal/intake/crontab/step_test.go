package crontab

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/tick/executor"
)

// A % ends the command and begins its input, unless an odd number of backslashes stands before it. In the input, a
// backslash before a % escapes it, whatever stands before.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		command, script, input string
		piped                  bool
	}{
		{`date +\%F`, `date +%F`, ``, false},
		{`cat %a%b`, `cat `, "a\nb", true},
		{`cat %`, `cat `, ``, true},
		{`echo \\%a`, `echo \\`, `a`, true},
		{`echo \\\%a`, `echo \\%a`, ``, false},
		{`echo \\\\%a`, `echo \\\\`, `a`, true},
		{`cat %\%\\%`, `cat `, `%\%`, true},
		{`echo a\b\`, `echo a\b\`, ``, false},
	} {
		script, input, piped := unescaped(c.command)
		if script != c.script || input != c.input || piped != c.piped {
			t.Errorf("%s: %q, %q, %v", c.command, script, input, piped)
		}
	}
}

// The input reaches the command, and an empty one is empty. A shell that is not like /bin/sh does not read what prepares
// the input and the variables.
func TestInputOfACommand(t *testing.T) {
	for _, c := range []struct{ shell, command, want string }{
		{"", `cat %a%INPUT%b`, "a\nINPUT\nb\n"},
		{"", `cat %`, ""},
		{"/bin/bash", `cat %a`, "a\n"},
		{"/usr/bin/env", `cat %a`, "exec '/usr/bin/env' -c 'cat '"},
	} {
		text := "* * * * * " + c.command + "\n"
		if c.shell != "" {
			text = "SHELL=" + c.shell + "\n" + text
		}
		var spec executor.ProgramSpec
		if err := json.Unmarshal(Read(text, Options{Zone: "UTC", From: from}).Items[0].Definition.Steps[0].Spec, &spec); err != nil {
			t.Fatal(err)
		}
		if c.shell == "/usr/bin/env" {
			if !strings.HasSuffix(spec.Run[0], c.want) {
				t.Errorf("%s: %q", c.shell, spec.Run)
			}
			continue
		}
		run := spec.Run
		if c.shell == "" {
			run = slices.Concat([]string{"/bin/sh", "-c"}, run)
		}
		if out, err := exec.Command(run[0], run[1:]...).CombinedOutput(); err != nil || string(out) != c.want {
			t.Errorf("%s: %v, %q, want %q", c.command, err, out, c.want)
		}
	}
}

// A shell reads some variables when it starts. They are there then, as with cron.
func TestVariableThatAShellReadsAtItsStart(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(profile, []byte("FROM_PROFILE='read before'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "SHELL=/bin/bash\nBASH_ENV=" + profile + "\n* * * * * echo \"$FROM_PROFILE\"; cat%it's\n"
	var spec executor.ProgramSpec
	if err := json.Unmarshal(Read(text, Options{Zone: "UTC", From: from}).Items[0].Definition.Steps[0].Spec, &spec); err != nil {
		t.Fatal(err)
	}
	run := spec.Run
	if len(run) == 1 {
		run = append([]string{"/bin/sh", "-c"}, run...)
	}
	if out, err := exec.Command(run[0], run[1:]...).CombinedOutput(); err != nil || string(out) != "read before\nit's\n" {
		t.Errorf("%v, %q of %q", err, out, spec.Run)
	}
}

// Cron expands nothing in a setting, and a shell nothing in single quotes. What looks like a fact of dbjobs there reaches the
// command as it is.
func TestTextThatLooksLikeAFact(t *testing.T) {
	for _, shell := range []string{"/bin/sh", "/bin/bash"} {
		for _, c := range []struct{ settings, command, want string }{
			{"A=${job}\nB=it's ${secret:x} ${args.y} ${HOME} ${attempt}\n", `echo "$A $B"`, "${job} it's ${secret:x} ${args.y} ${HOME} ${attempt}\n"},
			{"", `job=1; echo '${job}' "\${attempt}" ${job} ${owner:-none}`, "${job} ${attempt} 1 none\n"},
			{"", `job=1; echo "${job}" ${HOME}`, "1 /\n"},
			{"", `echo "${secret:-none}" ${HOME}`, "none /\n"},
			{"", `echo '${steps.a.rows}'`, "${steps.a.rows}\n"},
			{"", `cat; echo '${args.x}'%Dear ${owner},%it's ${HOME}`, "Dear ${owner},\nit's ${HOME}\n${args.x}\n"},
		} {
			result := Read("SHELL="+shell+"\n"+c.settings+"* * * * * "+c.command+"\n", Options{Zone: "UTC", From: from})
			result.Finish(from, "")
			item := result.Items[0]
			if item.Definition == nil {
				t.Errorf("%s: %s: %s", shell, c.command, item.Reason)
				continue
			}
			var spec executor.ProgramSpec
			if err := json.Unmarshal(item.Definition.Steps[0].Spec, &spec); err != nil {
				t.Fatal(err)
			}
			run := spec.Run
			if item.Definition.Steps[0].Executor == "shell" {
				run = slices.Concat([]string{"/bin/sh", "-c"}, run)
			} else if strings.Contains(strings.Join(run, ""), "${") {
				t.Errorf("%s: %s: dbjobs would replace a part of %q", shell, c.command, run)
			}
			cmd := exec.Command(run[0], run[1:]...)
			cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/"}
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want || len(spec.Env) > 0 {
				t.Errorf("%s: %s: %v, %q, want %q; variables %q, from %q", shell, c.command, err, out, c.want, spec.Env, run)
			}
		}
	}
}

// An address that dbjobs cannot mail takes the mail from no other.
func TestAddressesOfMailto(t *testing.T) {
	for _, c := range []struct{ settings, hook string }{
		{"MAILTO=root,ann@example.org bob\n", "mail-ann-example-org"},
		{"MAILTO=root\n", ""},
		{"MAILTO=\n", ""},
	} {
		item := Read(c.settings+"* * * * * x\n", Options{Zone: "UTC", From: from}).Items[0]
		if got := item.Definition.On.Failed; got != c.hook {
			t.Errorf("%q: the hook is %q, want %q; %q", c.settings, got, c.hook, item.Notes)
		}
	}
}
