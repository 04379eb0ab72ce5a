package kubernetes

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick/executor"
)

// create makes a Job from the CronJob, and waits for its end. The name of the Job follows from the run, so a run
// that is delivered again finds the Job that it has made. If that Job has failed, this is another attempt: a new
// Job replaces it. A Job goes on while the server does not answer, and so does its run, which gives up only where the
// server says that there is no such Job, or says nothing of it for some minutes, as without the right to get it.
func create(j *store.Job, namespace, name string, note func(string, ...any)) {
	kubectl := "kubectl"
	if namespace != "" {
		kubectl += " -n " + store.Argument(namespace)
	} else {
		note("It has no namespace here, so it is that of kubectl's own settings.")
	}
	short := strings.TrimRight(name[:min(len(name), 50)], "-.") // the name of a Job has at most 63 characters
	text := fmt.Sprintf(`job=%s-"${DBJOBS_RUN_ID##*-}"
`, store.Argument(short))
	if j.Overlap == store.OverlapReplace { // the run that is replaced takes its Job with it
		text += fmt.Sprintf(`trap '%s delete job "$job" --wait=false; exit 143' TERM
`, kubectl)
	}
	text += fmt.Sprintf(`make() { %[2]s create job --from=cronjob/%[1]s "$job"; }
state() { %[2]s get job "$job" --ignore-not-found -o 'jsonpath={.metadata.name}{" "}{.status.conditions[?(@.status=="True")].type}'; }
look() {
  left=%[3]d
  until now=$(state); do
    left=$((left - 1))
    [ $left -gt 0 ] || exit 1
    sleep 5
  done
  [ "$now" ] || { echo "there is no job $job" >&2; exit 1; }
}
if ! make; then
  look
  case $now in *Failed*) %[2]s delete job "$job" --wait || exit; make ;; esac
fi
while :; do
  look
  case $now in
  *Complete*) exit 0 ;;
  *Failed*) %[2]s logs --tail=50 "job/$job"; exit 1 ;;
  esac
  sleep 5
done`, store.Argument(name), kubectl, looks)
	j.Steps = []store.Step{intake.Program("shell", executor.ProgramSpec{Run: []string{text}})}
}

// looks is how often a run asks for its Job, each 5 seconds, before it takes the failure to answer as final.
const looks = 60

// seen is how many seconds a Job has to stay after its end, so that the run sees how it ended: it looks each 5 seconds.
const seen = 60

// gone says where Kubernetes deletes a Job too early. A run that does not find its Job fails. Of the Jobs that have
// succeeded, the limit keeps those that began last.
func gone(j *store.Job, succeeded, ttl *int64, note func(string, ...any)) {
	limit := int64(3)
	if succeeded != nil {
		limit = *succeeded
	}
	switch {
	case limit == 0:
		note("successfulJobsHistoryLimit: 0 deletes a Job as soon as it has succeeded. The run would not see that, and fail: set it to %d before the job is enabled.", max(3, j.MaxRunning))
	case j.Overlap == store.OverlapAllow && limit < int64(j.MaxRunning):
		note("successfulJobsHistoryLimit is %d: a Job is deleted once %[1]d that began later have succeeded, too. Its run may not have seen its end then, and fails: "+
			"where runs overlap, set it to %[2]d or more before the job is enabled.", limit, j.MaxRunning)
	}
	if ttl != nil && *ttl < seen {
		note("ttlSecondsAfterFinished: %d deletes a Job before the run is sure to see its end, and then the run fails: set it to %d or more before the job is enabled.", *ttl, seen)
	}
}

// started makes the step of a command. exec would read ${NAME} as a fact of dbjobs, and Kubernetes leaves it to the
// command. So a command that has one is started by /bin/sh.
func started(v executor.ProgramSpec, note func(string, ...any)) store.Step {
	marked := func(text string) bool { return strings.Contains(text, "${") }
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(v.Env)) {
		if value := v.Env[name]; marked(value) {
			lines = append(lines, name+"="+intake.Verbatim(value), "export "+name)
			delete(v.Env, name)
		}
	}
	if len(lines) == 0 && !slices.ContainsFunc(v.Run, marked) {
		return intake.Program("exec", v)
	}
	words := []string{"exec"}
	for _, text := range v.Run {
		words = append(words, intake.Verbatim(text))
	}
	note("/bin/sh starts it, and ${ is written as $''{, so that it is not taken for a fact of dbjobs; the command gets it as before.")
	v.Run = []string{strings.Join(append(lines, strings.Join(words, " ")), "\n")}
	return intake.Program("shell", v)
}

// command makes the job run the command of the only container.
func command(j *store.Job, spec *jobSpec, note func(string, ...any)) error {
	pod := &spec.Template.Spec
	if len(pod.Containers) != 1 || len(pod.Init) > 0 {
		return fmt.Errorf("its pod has %d containers and %d that run before; import it without --command, or write the job by hand",
			len(pod.Containers), len(pod.Init))
	}
	c := pod.Containers[0]
	if len(c.Command) == 0 {
		return fmt.Errorf("its command is that of the image %s, which stands nowhere here; import it without --command, or write the job by hand", c.Image)
	}
	v := executor.ProgramSpec{Run: append(append([]string{}, c.Command...), c.Args...), Env: map[string]string{}}
	texts := slices.Clone(v.Run)
	for _, e := range c.Env {
		texts = append(texts, e.Value)
		switch {
		case e.From != nil:
			note("The variable %s comes from a secret, a map or a field of the pod; give it to env, a secret as ${secret:NAME}.", e.Name)
		case executor.CheckVariable(e.Name) != nil:
			note("The variable %s is left out: by it a program runs other code, or it is one of dbjobs' own.", e.Name)
		default:
			v.Env[e.Name] = e.Value
		}
	}
	if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "$(") }) {
		note("Kubernetes replaces $(NAME) in commands and variables; here that stays as it is.")
	}
	if len(c.EnvFrom) > 0 {
		note("Variables of envFrom are left out; give them to env.")
	}
	if len(c.Mounts)+len(pod.Volumes) > 0 {
		note("Its volumes are left out.")
	}
	if filepath.IsAbs(c.Dir) {
		v.Dir = filepath.Clean(c.Dir)
	} else if c.Dir != "" {
		note("workingDir is %.80q, which is no absolute path, and is left out.", c.Dir)
	}
	note("It ran in the image %s.", c.Image)
	for what, n := range map[string]*int64{"parallelism": spec.Parallelism, "completions": spec.Completions} {
		if n != nil && *n > 1 {
			return fmt.Errorf("its %s is %d, and a job here runs once at a time; import it without --command", what, *n)
		}
	}
	tries := int64(6)
	if spec.BackoffLimit != nil {
		tries = *spec.BackoffLimit
	}
	if tries > 0 {
		attempts, wait, most := store.Attempts(tries+1), store.Duration(10*time.Second), store.Duration(6*time.Minute)
		j.Retry = store.Retry{Attempts: &attempts, Backoff: &wait, MaxBackoff: &most}
		note("backoffLimit: %d tries again are attempts: %d.", tries, tries+1)
	}
	if spec.Deadline != nil && *spec.Deadline > 0 {
		j.Timeout = store.Duration(time.Duration(*spec.Deadline) * time.Second)
		note("activeDeadlineSeconds: %d is timeout.", *spec.Deadline)
	}
	j.Steps = []store.Step{started(v, note)}
	return nil
}
