package kubernetes

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/manifest"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

var update = flag.Bool("update", false, "write the golden files")

var from = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// What is not of the form of an object is named by what stands there and what belongs there, in the words of YAML.
func TestObjectsOfAnotherForm(t *testing.T) {
	for text, want := range map[string]string{
		"kind: CronJob\nmetadata: {name: a}\nspec: {startingDeadlineSeconds: soon}": "cronjob a: It is not of the form of a CronJob: line 3: `soon` stands in the place of a whole number.",
		"kind: CronJob\nmetadata: {name: a}\nspec: {suspend: a into b}":             "cronjob a: It is not of the form of a CronJob: line 3: `a into b` stands in the place of true or false.",
		"kind: CronJob\nmetadata: b":                                                "cronjob: It is not of the form of a CronJob: line 2: `b` stands in the place of a mapping.",
		"kind: CronJob\nmetadata: {name: c}\nspec: {schedule: [1], suspend: perhaps, jobTemplate: {spec: {template: {spec: {containers: {a: b}}}}}}": "cronjob c: It is not of the form of a CronJob: " +
			"line 3: a list stands in the place of a text; line 3: `perhaps` stands in the place of true or false; line 3: a mapping stands in the place of a list.",
		"- x": "document 1: It is no object of Kubernetes: line 1: a list stands in the place of a mapping.",
	} {
		r, err := Read(text, Options{From: from})
		if err != nil || len(r.Items) != 1 || r.Items[0].Place+": "+r.Items[0].Reason != want {
			t.Errorf("%v, %+v, want %s", err, r.Items, want)
		}
	}
}

// Objects become these manifests, which apply accepts: with Jobs in Kubernetes, and with the commands.
func TestObjects(t *testing.T) {
	text, err := os.ReadFile("testdata/list.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for golden, command := range map[string]bool{"testdata/jobs.golden": false, "testdata/commands.golden": true} {
		r, err := Read(string(text), Options{Source: "list.yaml", Command: command, From: from})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Items) != 8 {
			t.Errorf("%d objects are accounted for, and there are 8", len(r.Items))
		}
		r.Finish(from, "")
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Read([]manifest.Input{{Path: "it", In: bytes.NewReader(b.Bytes())}}, manifest.Options{Now: from, Env: os.LookupEnv})
		if err != nil || len(m.Jobs) != r.Imported() {
			t.Fatalf("apply refuses it: %v\n%s", err, b.String())
		}
		if *update {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s differs; -update writes it. Now it is:\n%s", golden, b.String())
		}
	}
	escaped := `{"kind": "CronJob", "metadata": {"name": "a", "annotations": {"note": "\ud83d\ude00"}}, "spec": {"schedule": "0 5 * * *", "jobTemplate": ` +
		`{"spec": {"template": {"spec": {"containers": [{"name": "c", "command": ["echo", "\ud83d\ude00"]}]}}}}}}`
	r, err := Read(escaped, Options{Command: true, From: from})
	if err != nil {
		t.Fatalf("JSON that escapes a character as a pair: %v", err)
	}
	var b bytes.Buffer
	if r.Finish(from, ""); r.Write(&b) != nil || !strings.Contains(b.String(), "😀") {
		t.Errorf("JSON that escapes a character as a pair became %s", b.String())
	}
	if _, err := Read("a: [", Options{}); err == nil {
		t.Error("half a text is read")
	}
}

// There is no Kubernetes here, so a script replaces kubectl. The file job holds the conditions of the Job that is there.
// A Job that is made gets the conditions NEXT, at once or while the script sleeps. The calls to get that DOWN matches find no
// server.
func TestScriptOfARun(t *testing.T) {
	j := &store.Job{}
	create(j, "shop", "backup", func(string, ...any) {})
	var spec executor.ProgramSpec
	if err := json.Unmarshal(j.Steps[0].Spec, &spec); err != nil {
		t.Fatal(err)
	}
	const none, first, again = "none", "create get", "create get delete create get"
	for _, c := range []struct {
		job, next, down string
		code            int
		calls           string
	}{
		{none, "SuccessCriteriaMet Complete", "", 0, first},
		{none, "FailureTarget Failed", "", 1, first + " logs"},
		{none, "", "", 0, first + " get"},
		{"Complete", "Failed", "", 0, first + " get"},                       // made by an earlier delivery of the run
		{"", "Failed", "", 0, first + " get get"},                           // that Job goes on
		{"FailureTarget", "Failed", "", 0, first + " get get"},              // so does that one
		{"FailureTarget Failed", "Complete", "", 0, again},                  // made by an earlier attempt
		{"FailureTarget Failed", "", "", 0, again + " get"},                 // the new one goes on
		{"FailureTarget Failed", "Failed", "", 1, again + " logs"},          // and fails, too
		{none, "refused", "", 1, first},                                     // there is no such CronJob
		{"Failed", "refused", "", 1, "create get delete create get"},        // there is none any more
		{none, "gone", "", 1, first},                                        // deleted meanwhile
		{"kept Failed", "Complete", "", 1, "create get delete"},             // the right to delete is missing
		{none, "", "2", 0, first + " get get"},                              // the server is away for a moment
		{"FailureTarget", "Failed", "1", 0, first + " get get"},             // also before the Job is looked at
		{none, "", "*", 1, "create" + strings.Repeat(" get", looks)},        // the right to get is missing
		{none, "unanswered", "", 0, first + " get get"},                     // made, and the answer is lost
		{"Failed", "unanswered", "", 0, "create get delete create get get"}, // so is that of another attempt
	} {
		dir := t.TempDir()
		kubectl := `#!/bin/sh
cd ` + dir + `; echo "$*" >> calls
case $3 in
create)
  [ ! -e job ] && [ "$NEXT" != refused ] || exit 1
  case $NEXT in gone) ;; unanswered) echo > job; exit 1 ;; *) echo "$NEXT" > job ;; esac ;;
get)
  case $(grep -c ' get ' calls) in $DOWN) exit 1 ;; esac
  case $* in *" --ignore-not-found "*) [ -e job ] || exit 0 ;; esac
  case $* in *"{.metadata.name}"*) printf "$5 " ;; esac
  cat job ;;
delete) grep -q kept job && exit 1; rm job ;;
esac
`
		files := map[string]string{"kubectl": kubectl, "sleep": "#!/bin/sh\ntest ! -e " + dir + "/job || echo Complete > " + dir + "/job\n"}
		if c.job != none {
			files["job"] = c.job
		}
		for name, text := range files {
			if err := os.WriteFile(dir+"/"+name, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command("/bin/sh", "-c", spec.Run[0])
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "DBJOBS_RUN_ID=01a2048b-2176-7000-b6bf-bebcba89094d", "NEXT=" + c.next, "DOWN=" + c.down}
		out, err := cmd.CombinedOutput()
		text, _ := os.ReadFile(dir + "/calls")
		var calls []string
		for call := range strings.Lines(string(text)) {
			calls = append(calls, strings.Fields(call)[2])
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || strings.Join(calls, " ") != c.calls {
			t.Errorf("%+v: exit code %d, calls %q: %v %s", c, code, calls, err, out)
		}
		if !strings.HasPrefix(string(text), "-n shop create job --from=cronjob/backup backup-bebcba89094d\n") {
			t.Errorf("%s", text)
		}
	}
}

// Kubernetes leaves ${NAME} to the command, and so does the job: dbjobs puts no fact of its own there.
func TestReferencesStayWithTheCommand(t *testing.T) {
	r, err := Read(`{kind: CronJob, metadata: {name: a}, spec: {schedule: "0 5 * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: c,
		command: [sh, -c, "job='a b'; echo \"${job}\" ${run_id:-none} ${LEVEL} '${job}' $1 ${KIND}", x], args: ["${owner}"],
		env: [{name: LEVEL, value: "it's ${job}"}, {name: KIND, value: plain}]}]}}}}}}`, Options{Command: true, From: from})
	if err != nil {
		t.Fatal(err)
	}
	if r.Finish(from, ""); r.Imported() != 1 {
		t.Fatalf("%+v", r.Items)
	}
	var spec executor.ProgramSpec
	if err := json.Unmarshal(r.Items[0].Definition.Steps[0].Spec, &spec); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", spec.Run[0])
	cmd.Env = []string{"PATH=/usr/bin:/bin", "KIND=" + spec.Env["KIND"]}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "a b none it's ${job} ${job} ${owner} plain\n" {
		t.Errorf("%v, %q of %q", err, out, spec.Run)
	}
}

// A run that makes a Job has to see its end. --command makes none.
func TestJobsThatAreDeletedEarly(t *testing.T) {
	for keys, want := range map[string]int{
		"Forbid, successfulJobsHistoryLimit: 0": 1, "Forbid, successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 0": 0, "Forbid": 0,
		"Forbid, jobTemplate: {spec: {ttlSecondsAfterFinished: 0}}": 1, "Replace, jobTemplate: {spec: {ttlSecondsAfterFinished: 3600}}": 0,
		"Allow, successfulJobsHistoryLimit: 1": 1, "Allow": 1, "Allow, successfulJobsHistoryLimit: 0": 1, "Allow, successfulJobsHistoryLimit: 10": 0,
	} {
		r, err := Read(`{kind: CronJob, metadata: {name: a}, spec: {schedule: "0 5 * * *", concurrencyPolicy: `+keys+`}}`, Options{From: from})
		if err != nil || len(r.Items) != 1 {
			t.Fatal(err)
		}
		if n := strings.Count(strings.Join(r.Items[0].Notes, "\n"), "before the job is enabled"); n != want {
			t.Errorf("%s: %d warnings, want %d: %q", keys, n, want, r.Items[0].Notes)
		}
	}
}
