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
	if _, err := Read("a: [", Options{}); err == nil {
		t.Error("half a text is read")
	}
}

// There is no Kubernetes here, so a script replaces kubectl. It takes the orders and gives the answers of the test.
func TestScriptOfARun(t *testing.T) {
	dir := t.TempDir()
	stub := "#!/bin/sh\necho \"$*\" >> " + dir + "/calls\ncase $3 in create) exit $CREATE ;; get) echo \"$STATE\"; exit $GET ;; esac\n"
	if err := os.WriteFile(dir+"/kubectl", []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	j := &store.Job{}
	create(j, "shop", "backup", func(string, ...any) {})
	var spec executor.ProgramSpec
	if err := json.Unmarshal(j.Steps[0].Spec, &spec); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		create, get, state string
		code               int
	}{
		{"0", "0", "SuccessCriteriaMet Complete", 0},
		{"0", "0", "FailureTarget Failed", 1},
		{"1", "0", "Complete", 0}, // made by an earlier delivery of the run
		{"1", "1", "", 1},
		{"0", "1", "", 1}, // deleted meanwhile
	} {
		cmd := exec.Command("/bin/sh", "-c", spec.Run[0])
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "DBJOBS_RUN_ID=01a2048b-2176-7000-b6bf-bebcba89094d",
			"CREATE=" + c.create, "GET=" + c.get, "STATE=" + c.state}
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%+v: exit code %d: %v %s", c, code, err, out)
		}
	}
	calls, err := os.ReadFile(dir + "/calls")
	if first, _, _ := strings.Cut(string(calls), "\n"); err != nil || first != "-n shop create job --from=cronjob/backup backup-bebcba89094d" {
		t.Errorf("%q %v", first, err)
	}
}
