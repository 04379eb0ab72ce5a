package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/scripts/prove"
)

// beforeExamples makes the things that the examples of all commands find: a database with runs, and files.
const beforeExamples = `
mkdir jobs.d bin
cat > jobs.yaml <<END
manifest: jobs
schedules:
  nightly: {rule: 30 2 * * *, zone: Europe/Berlin}
jobs:
  rollup:
    schedule: nightly
    tags: [nightly]
    steps: [{name: load, sql: SELECT 1}, {name: tell, sql: SELECT 2}]
  other: {rule: every 5m, sql: SELECT 1}
END
echo "jobs: {more: {sql: SELECT 1}}" > jobs.d/more.yaml
echo "jobs: {common: {sql: SELECT 1}}" > common.yaml
printf '30 2 * * * /usr/local/bin/dump\n' > crontab.txt
printf 'jobid,schedule,command,nodename,nodeport,database,username,active,jobname\n1,30 2 * * *,SELECT 1,localhost,5432,shop,ann,t,sum\n' > jobs.csv
cat > cronjobs.yaml <<END
apiVersion: batch/v1
kind: CronJob
metadata: {name: dump}
spec:
  schedule: "30 2 * * *"
  jobTemplate: {spec: {template: {spec: {containers: [{name: dump, image: busybox, command: [echo, hello]}], restartPolicy: Never}}}}
END
printf '#!/bin/sh\ncat crontab.txt\n' > bin/crontab
printf '#!/bin/sh\ncat cronjobs.yaml\n' > bin/kubectl
chmod +x bin/*
printf 'BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20261225\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n' > holidays.ics
dbjobs apply -f jobs.yaml
for n in 1 2 3 4 5 6 7 8 9 10 11; do dbjobs job run-now rollup; done
dbjobs tick
`

// beforeExample makes the additional things that the examples of one command need.
var beforeExample = map[string]string{
	"dbjobs calendar remove":   "dbjobs calendar import de -f holidays.ics",
	"dbjobs calendar show":     "dbjobs calendar import de -f holidays.ics",
	"dbjobs job enable":        "dbjobs job disable rollup",
	"dbjobs job resume":        "dbjobs job pause rollup",
	"dbjobs job run-now":       "(sleep 1; dbjobs tick) > /dev/null 2>&1 &",
	"dbjobs job schedule add":  "dbjobs job schedule drop rollup nightly",
	"dbjobs run cancel":        "dbjobs job run-now rollup; dbjobs run cancel rollup; dbjobs tick; dbjobs run retry rollup#12",
	"dbjobs run retry":         "dbjobs job run-now rollup; dbjobs run cancel rollup; dbjobs tick",
	"dbjobs run show":          "dbjobs job run-now rollup; dbjobs tick",
	"dbjobs import crontab":    "rm jobs.yaml",
	"dbjobs import kubernetes": "rm jobs.yaml",
	"dbjobs import pg_cron":    "rm jobs.yaml",
	"dbjobs schedule create":   "dbjobs job remove rollup; dbjobs schedule remove nightly",
	"dbjobs schedule remove":   "dbjobs job remove rollup",
	"dbjobs schedule resume":   "dbjobs schedule pause nightly",
	// The server of the example ends when it has said that it listens.
	"dbjobs serve": `echo a-token-that-nobody-guesses > token
cat > bin/dbjobs <<END
#!/bin/bash
mkfifo said
PORT=0 $(command -v dbjobs) "\$@" 2> said &
while read -r line; do
  echo "\$line"
  case \$line in *"listening on"*) kill -TERM \$! ;; esac
done < said
wait \$!
END
chmod +x bin/dbjobs`,
	"dbjobs unfreeze": "dbjobs freeze",
}

// TestExamples runs each example of each command's help, with the files and the definitions that it names. An example
// that needs the shell only for splitting its words is called as a function, because the start of a process takes
// longer than most commands. With DBJOBS_PROVE, each example is a line of the shell.
func TestExamples(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Dir(program(t))
	sh := func(dir, text string) (string, int) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", text)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "TZ=UTC", "PATH=" + filepath.Join(dir, "bin") + ":" + path + ":" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}
		out, err := cmd.CombinedOutput()
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			return string(out), e.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		return string(out), exitDone
	}
	if out, code := sh(home, beforeExamples); code != exitDone {
		t.Fatalf("code %d:\n%s", code, out)
	}
	words := wordsOfExamples(t, sh)
	eachCommand(allCommands(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			t.Run(strings.TrimSpace(line), func(t *testing.T) {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(home)); err != nil {
					t.Fatal(err)
				}
				if before := beforeExample[cmd.CommandPath()]; before != "" {
					if out, code := sh(dir, before); code != exitDone {
						t.Fatalf("before it, code %d:\n%s", code, out)
					}
				}
				text := typed(line)
				want := exitDone
				if strings.Contains(text, "@db.example.org/") && !strings.Contains(text, "--print") {
					want = exitDatabase // there is no such server
				}
				run := sh
				if args := words[text]; args != nil && !prove.Whole() {
					run = func(dir, _ string) (string, int) { return calledIn(t.Context(), dir, args) }
				}
				if out, code := run(dir, text); code != want {
					t.Errorf("%s\nends with code %d, want %d, and prints\n%s", text, code, want, out)
				}
			})
		}
	})
}

// typed is an example as a user would type it: with the present time, and with a file of his own.
func typed(line string) string {
	return strings.NewReplacer("* * * * * ", "", "--for 55s", "--for 1s", "/etc/crontab", "crontab.txt").Replace(strings.TrimSpace(line))
}

// wordsOfExamples has the arguments that the shell makes of the examples that only run dbjobs.
func wordsOfExamples(t *testing.T, sh func(dir, text string) (string, int)) map[string][]string {
	t.Helper()
	var plain []string
	eachCommand(allCommands(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			text := typed(line)
			// The example of serve is a program that also ends the server.
			if strings.HasPrefix(text, "dbjobs ") && !strings.ContainsAny(text, "|>") && cmd.Name() != "serve" {
				plain = append(plain, text)
			}
		}
	})
	out, code := sh(t.TempDir(), "dbjobs() { printf '%s\\0' $# \"$@\"; }\n"+strings.Join(plain, "\n"))
	if code != exitDone {
		t.Fatalf("code %d:\n%s", code, out)
	}
	words, rest := map[string][]string{}, strings.Split(out, "\x00")
	for _, text := range plain {
		n, err := strconv.Atoi(rest[0])
		if err != nil || n == 0 || n >= len(rest) {
			t.Fatalf("%s has %q words: %v", text, rest[0], err)
		}
		words[text], rest = rest[1:n+1], rest[n+1:]
	}
	return words
}

// calledIn runs a command as a function, as if it were a process whose home and working folder is dir.
func calledIn(ctx context.Context, dir string, args []string) (out string, code int) {
	args = slices.Clone(args)
	in := func(name string) string { return filepath.Join(dir, name) }
	for i, given := range args {
		if namesFile(in, args[:i], given) {
			args[i] = in(given)
		}
	}
	env := func(name string) (string, bool) {
		value, ok := map[string]string{"HOME": dir, "TZ": "UTC"}[name]
		return value, ok
	}
	var talk told
	code = run(ctx, args, strings.NewReader(""), &talk, &talk, env, nil)
	return talk.String(), code
}
