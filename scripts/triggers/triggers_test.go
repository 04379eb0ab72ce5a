// Package triggers holds the files of this folder against those who read them, as far as that can be done without
// them: Kubernetes' own types, GitHub's workflow linter, systemd's own check.
package triggers

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rhysd/actionlint"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKubernetes: each field is one that Kubernetes has, with a value that it takes, and the pod fulfils the strictest
// of its Pod Security Standards, restricted.
func TestKubernetes(t *testing.T) {
	var c batchv1.CronJob
	if err := yaml.UnmarshalStrict([]byte(read(t, "kubernetes.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	if c.APIVersion != batchv1.SchemeGroupVersion.String() || c.Kind != "CronJob" || c.Name != "dbjobs" {
		t.Errorf("is %s %s %s", c.APIVersion, c.Kind, c.Name)
	}
	if p := c.Spec.ConcurrencyPolicy; p != batchv1.ForbidConcurrent && p != batchv1.AllowConcurrent {
		t.Errorf("concurrencyPolicy is %q", p)
	}
	job := c.Spec.JobTemplate.Spec
	pod := job.Template.Spec
	if c.Spec.StartingDeadlineSeconds == nil || *c.Spec.StartingDeadlineSeconds < 10 { // the controller looks every ten seconds
		t.Error("a start that is late is never made, or never given up")
	}
	if job.ActiveDeadlineSeconds == nil || job.BackoffLimit == nil || *job.BackoffLimit != 0 || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Error("a pass may hang for ever, or is tried again beside the next one")
	}
	s := pod.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod is not restricted: %+v", s)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("the pod has a token of the cluster")
	}
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	tick := pod.Containers[0]
	if tick.Args[0] != "tick" || len(tick.Env) != 1 || tick.Env[0].Name != "DBJOBS_DATABASE_URL" || tick.Env[0].ValueFrom.SecretKeyRef == nil {
		t.Errorf("runs %q with %+v", tick.Args, tick.Env)
	}
	x := tick.SecurityContext
	if x == nil || x.AllowPrivilegeEscalation == nil || *x.AllowPrivilegeEscalation || x.ReadOnlyRootFilesystem == nil || !*x.ReadOnlyRootFilesystem ||
		x.Capabilities == nil || len(x.Capabilities.Drop) != 1 || x.Capabilities.Drop[0] != "ALL" {
		t.Errorf("the container is not restricted: %+v", x)
	}
	if tick.Resources.Requests.Cpu().IsZero() || tick.Resources.Requests.Memory().IsZero() || tick.Resources.Limits.Memory().Cmp(*tick.Resources.Requests.Memory()) < 0 {
		t.Errorf("resources are %+v", tick.Resources)
	}
}

// TestWhatHangsEndsWhereStartsWait: where a trigger starts nothing beside a tick that runs, a run that hangs would hold up all
// jobs for good. The budget ends it.
func TestWhatHangsEndsWhereStartsWait(t *testing.T) {
	for name, budget := range map[string]string{
		"dbjobs.service":             `(?m)^ExecStart=.* tick .*--budget \d+m`,
		"kubernetes.yaml":            `args: \[tick, .*--budget, \d+m\]`,
		"github-actions.yaml":        `(?m)^ +run: .*dbjobs tick .*--budget \d+m`,
		"ecs/main.tf":                `"tick", "--budget", "\d+m"`,
		"fly.toml":                   `(?m)^  tick = "tick .*--budget \d+[hm]"`,
		"render.yaml":                `(?m)^ +- key: DBJOBS_BUDGET\n +value: \d+m`,
		"../../cmd/dbjobs/README.md": `(?m)^schtasks .*\n.*dbjobs\.exe tick .*--budget \d+m`,
	} {
		if !regexp.MustCompile(budget).MatchString(read(t, name)) {
			t.Errorf("%s: the tick has no budget", name)
		}
	}
}

// TestARunBeginsAtAnyTimeOfTheHour: the budget of a process counts from its beginning, and a run may begin near the end of --for. What
// the budget has beyond that is all that such a run has, whatever its process has done before.
func TestARunBeginsAtAnyTimeOfTheHour(t *testing.T) {
	lasts := regexp.MustCompile(`(?m)^  tick = "tick .*--for (\w+) --budget (\w+)"`).FindStringSubmatch(read(t, "fly.toml"))
	if lasts == nil {
		t.Fatal("fly.toml: no tick with --for and --budget")
	}
	length, err := time.ParseDuration(lasts[1])
	budget, unread := time.ParseDuration(lasts[2])
	if err != nil || unread != nil || budget-length < 30*time.Minute {
		t.Errorf("fly.toml: a run that begins at the end of %s has %s, want 30m at least; %v, %v", lasts[1], budget-length, err, unread)
	}
}

// TestTheImageRunsWhereItIsStarted: what `make image` makes by default is for the processors that the ECS
// task asks for, and Render starts it by its own command, which is the same whether the entry point is kept or not.
func TestTheImageRunsWhereItIsStarted(t *testing.T) {
	arch := regexp.MustCompile(`(?m)^IMAGE_ARCH +\?= (\w+)$`).FindStringSubmatch(read(t, "../../Makefile"))
	asked := regexp.MustCompile(`(?s)variable "architecture" \{.*?default += "(\w+)"`).FindStringSubmatch(read(t, "ecs/main.tf"))
	if arch == nil || asked == nil || map[string]string{"amd64": "X86_64", "arm64": "ARM64"}[arch[1]] != asked[1] {
		t.Errorf("make image makes %v, and the ECS task asks for %v", arch, asked)
	}
	if !strings.Contains(read(t, "ecs/main.tf"), "cpu_architecture        = var.architecture\n") {
		t.Error("the ECS task does not ask for its architecture")
	}
	var blueprint struct {
		Services []struct {
			Type, Runtime string
			DockerCommand *string `json:"dockerCommand"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "render.yaml")), &blueprint); err != nil {
		t.Fatal(err)
	}
	if s := blueprint.Services; len(s) != 1 || s[0].Type != "cron" || s[0].Runtime != "image" || s[0].DockerCommand != nil {
		t.Errorf("render.yaml: %+v", s)
	}
}

// TestTwoInstallationsOnECS: each thing that has a name in the account takes it from the variable, so that a second installation is
// one with another name.
func TestTwoInstallationsOnECS(t *testing.T) {
	named := regexp.MustCompile(`(?m)^  (?:name|family) += (.*)$`).FindAllStringSubmatch(read(t, "ecs/main.tf"), -1)
	own := 0
	for _, m := range named {
		switch {
		case strings.Contains(m[1], "var.name"):
			own++
		case m[1] != `"execution"` && m[1] != `"scheduler"`: // the policies, within their roles
			t.Errorf("a name is %s in each installation", m[1])
		}
	}
	if own != 5 {
		t.Errorf("%d names are made from the variable, want 5: %q", own, named)
	}
}

// release publishes what people run, so nobody else's code may get into it.
const release = "../../.github/workflows/release.yml"

// TestGitHubActions: actionlint finds nothing wrong.
func TestGitHubActions(t *testing.T) {
	for _, name := range []string{"github-actions.yaml", release} {
		linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		problems, err := linter.Lint(name, []byte(read(t, name)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Error(p)
		}
	}
}

// TestReleaseIsPinned: each action that makes or publishes a release is named by its digest, for a tag can be moved; and no
// step that runs what others wrote, as building does, sees the token.
func TestReleaseIsPinned(t *testing.T) {
	var workflow struct {
		Permissions map[string]string
		Env         map[string]string
		Jobs        map[string]struct {
			Env   map[string]string
			Steps []struct {
				Uses, Run string
				Env       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, release)), &workflow); err != nil {
		t.Fatal(err)
	}
	if workflow.Permissions == nil || len(workflow.Permissions) > 0 {
		t.Errorf("each job has the permissions %v", workflow.Permissions)
	}
	pinned := regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40}$`)
	builds := regexp.MustCompile(`\b(make|go|dpkg)\b`)
	for name, job := range workflow.Jobs {
		if job.Env["GH_TOKEN"] != "" || workflow.Env["GH_TOKEN"] != "" {
			t.Errorf("%s: each step sees the token", name)
		}
		if !regexp.MustCompile(`^go1\.\d+\.\d+$`).MatchString(job.Env["GOTOOLCHAIN"]) {
			t.Errorf("%s: any version of Go may build: %q", name, job.Env["GOTOOLCHAIN"])
		}
		for _, s := range job.Steps {
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("%s: %s is not pinned by its digest", name, s.Uses)
			}
			if s.Env["GH_TOKEN"] != "" && builds.MatchString(s.Run) {
				t.Errorf("%s: builds with the token in its environment: %s", name, s.Run)
			}
		}
	}
}

// TestGitHubKeepsTheSecret: what is fetched is of a fixed version, and no step that fetches or builds sees the secret.
func TestGitHubKeepsTheSecret(t *testing.T) {
	type step struct {
		Uses, Run string
		Env       map[string]string
	}
	var workflow struct {
		Env  map[string]string
		Jobs map[string]struct {
			Env   map[string]string
			Steps []step
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "github-actions.yaml")), &workflow); err != nil {
		t.Fatal(err)
	}
	holds := func(env map[string]string) bool {
		for _, v := range env {
			if strings.Contains(v, "secrets.") {
				return true
			}
		}
		return false
	}
	fetches := regexp.MustCompile(`\bgo (install|run|build|get)\b|curl|wget|docker|npm|apt-get`)
	fixed := regexp.MustCompile(`^(v\d+\.\d+\.\d+|[0-9a-f]{40})$`)
	told := 0
	for name, job := range workflow.Jobs {
		if holds(workflow.Env) || holds(job.Env) {
			t.Errorf("%s: each step sees the secret", name)
		}
		for _, s := range job.Steps {
			if holds(s.Env) {
				if told++; s.Uses != "" || fetches.MatchString(s.Run) {
					t.Errorf("%s: fetches or builds with the secret in its environment: %s%s", name, s.Uses, s.Run)
				}
			}
			if fetches.MatchString(s.Run) && (!strings.Contains(s.Run, "@$VERSION") || !fixed.MatchString(s.Env["VERSION"])) {
				t.Errorf("%s: what is fetched is not of a fixed version: %s %v", name, s.Run, s.Env)
			}
		}
	}
	if told != 1 {
		t.Errorf("%d steps have the secret", told)
	}
}

// TestSystemdAsksTheTickAlone: by default systemd asks all processes of a service to end, so programs would fail when it is stopped.
func TestSystemdAsksTheTickAlone(t *testing.T) {
	if !strings.Contains(read(t, "dbjobs.service"), "\nKillMode=mixed\n") {
		t.Error("a stop of the service reaches the programs of the tick")
	}
}

// TestSystemdRefusesACall: by default it kills the process that makes a call which the filter does not allow, and with that
// process goes what it would have recorded.
func TestSystemdRefusesACall(t *testing.T) {
	if !strings.Contains(read(t, "dbjobs.service"), "\nSystemCallErrorNumber=EPERM\n") {
		t.Error("a call that the filter does not allow kills the tick, or a program of a step")
	}
}

// callsOf returns which system calls a service allows, by the sets that systemd has.
func callsOf(service, sets string) map[string]bool {
	members, allowed := map[string][]string{}, map[string]bool{}
	set := ""
	for line := range strings.Lines(sets) {
		switch name := strings.TrimSpace(line); {
		case name == "" || strings.HasPrefix(name, "#"):
		case strings.HasPrefix(line, "@"):
			set = name
		default:
			members[set] = append(members[set], name)
		}
	}
	var put func(names []string, to bool)
	put = func(names []string, to bool) {
		for _, name := range names {
			allowed[name] = to
			put(members[name], to)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch(service, -1) {
		put(strings.Fields(m[2]), m[1] == "")
	}
	return allowed
}

// TestSystemd: systemd itself takes the units, and finds the service as closed as it is meant to be.
func TestSystemd(t *testing.T) {
	root := os.Getenv("DBJOBS_TEST_SYSTEMD")
	if root == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("CI is set, and DBJOBS_TEST_SYSTEMD is not")
		}
		t.Skip("no DBJOBS_TEST_SYSTEMD names the root folder of a systemd-analyze; make test comes by one")
	}
	// The units in a folder of their own, with a program that is there.
	units := t.TempDir()
	program := filepath.Join(units, "dbjobs")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	service := read(t, "dbjobs.service")
	if !strings.Contains(service, "ExecStart=/usr/local/bin/dbjobs tick") {
		t.Fatal("the service does not start /usr/local/bin/dbjobs tick")
	}
	for name, text := range map[string]string{
		"dbjobs.service": strings.Replace(service, "/usr/local/bin/dbjobs", program, 1), "dbjobs.timer": read(t, "dbjobs.timer"),
	} {
		if err := os.WriteFile(filepath.Join(units, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	analyze := func(args ...string) string {
		t.Helper()
		c := exec.Command(filepath.Join(root, "usr/bin/systemd-analyze"), args...)
		c.Dir = units
		c.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+units+":"+filepath.Join(root, "lib/systemd/system")+":"+filepath.Join(root, "usr/lib/systemd/system"))
		if root != "/" {
			var folders []string
			for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/systemd", "lib/*-linux-gnu"} {
				found, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well-formed
				folders = append(folders, found...)
			}
			c.Env = append(c.Env, "LD_LIBRARY_PATH="+strings.Join(folders, ":"))
		}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// A key that it does not know is no failure to systemd, but it says so.
	if out := analyze("verify", "--man=no", "./dbjobs.timer", "./dbjobs.service"); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	analyze("security", "--offline=yes", "--threshold=15", "./dbjobs.service") // of 100; 1.5 in its table
	if allowed := callsOf(service, analyze("syscall-filter")); !allowed["write"] || allowed["setuid"] || !allowed["fchown"] {
		t.Errorf("the filter allows write: %v, setuid: %v, fchown, as of a file for a group: %v", allowed["write"], allowed["setuid"], allowed["fchown"])
	}
	m := regexp.MustCompile(`(?m)^OnCalendar=(.*)$`).FindStringSubmatch(read(t, "dbjobs.timer"))
	if m == nil || !strings.Contains(analyze("calendar", m[1]), "Normalized form: *-*-* *:*:00") {
		t.Errorf("the timer is not one of each minute: %q", m)
	}
}
