package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/intake"
	"github.com/dbjobs/dbjobs/cmd/internal/intake/crontab"
	"github.com/dbjobs/dbjobs/cmd/internal/intake/kubernetes"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
)

// errLeftOut ends an import or an export that is done, but left something out.
var errLeftOut = errors.New("left out")

func (c *cli) importFrom() *cobra.Command {
	g := &cobra.Command{Use: "import", Short: "Write a manifest of the jobs of another scheduler",
		Long: `Writes a manifest of the jobs of another scheduler. It only reads from the source, and changes no database.

Each line or object of the source either becomes a job, or is listed with the reason why it does not. A comment beside a
job says what works differently in dbjobs: zone, clock changes, overlap, environment and so on. All jobs have
disabled: true, so that nothing runs twice: remove a job from the source, delete that line, and apply.

Exit code 3: the manifest is written, but something was left out.`}
	c.add(g, []subcommand{{"crontab", (*cli).importCrontab}, {"pg_cron", (*cli).importPgCron}, {"kubernetes", (*cli).importKubernetes}, {"mysql-events", (*cli).importEvents}, {"pgagent", (*cli).importPgAgent}})
	return group(g)
}

// imports has the flags of all kinds of sources.
type imports struct {
	output, zone, from, prefix string
	targets                    intake.Targets // of a source with SQL
}

// importing completes a command that imports. zone is the help of --zone.
func (c *cli) importing(cmd *cobra.Command, zone string, read func(cmd *cobra.Command, args []string, f *imports, from time.Time) (*intake.Result, error)) *cobra.Command {
	f := &imports{}
	cmd.Flags().StringVar(&f.zone, "zone", "", zone)
	cmd.Flags().StringVarP(&f.output, "output", "o", "-", "file to write, which must not exist yet; - means standard output")
	cmd.Flags().StringVar(&f.from, "changes-from", "", "comments name the clock changes of the year after this day (today)")
	cmd.Flags().StringVar(&f.prefix, "prefix", "", "text before the name of each job and schedule, where another source has the same names: web1-")
	cmd.RunE = c.do(func(cmd *cobra.Command, args []string) (err error) {
		from := time.Now()
		if f.from != "" {
			if from, err = instantFlag("changes-from", f.from, ahead); err != nil {
				return err
			}
		}
		if err = zoned(f.zone); err != nil {
			return err
		}
		list, _ := cmd.Flags().GetStringArray("target") // a source without SQL has no such flag
		if f.targets, err = targetsOf(list); err != nil {
			return err
		}
		result, err := read(cmd, args, f, from)
		if err != nil {
			return err
		}
		if err := unusedTarget(f.targets, result.Databases); err != nil {
			return err
		}
		result.Finish(time.Now(), f.prefix)
		if err := c.deliver(result, f.output); err != nil {
			return err
		}
		c.warnOfMails(result)
		return c.account(result)
	})
	return c.prints(cmd)
}

// deliver writes the manifest. It never replaces an existing file: somebody may have edited it. Only its owner can read a new one:
// the source may be as private, and may have passwords.
func (c *cli) deliver(result *intake.Result, output string) error {
	if output != "-" {
		f, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return badInput("%s exists already; remove it, or give another name with -o", output)
		}
		if err != nil {
			return &usageError{problem: err.Error()}
		}
		if err := errors.Join(result.Write(f), f.Close()); err != nil {
			return errors.Join(err, os.Remove(output))
		}
	}
	switch {
	case c.asJSON:
		result.Head, result.Items = report.List(result.Head), report.List(result.Items)
		return report.JSON(c.stdout, result)
	case output == "-":
		return result.Write(c.stdout)
	}
	return nil
}

// warnOfMails warns if this host has no mail server for the mails that failures of the jobs would send.
func (c *cli) warnOfMails(result *intake.Result) {
	if len(result.Hooks) == 0 {
		return
	}
	if set, err := c.host(); err == nil && set.Mail == nil {
		c.tell(slog.LevelWarn, "warning: MAILTO: this host has no mail server in its settings, so nobody would get a mail about a failure; where the jobs run, add mail: {server: …, from: …}")
	}
}

// account says how much of the source was imported.
func (c *cli) account(result *intake.Result) error {
	left := result.Left()
	for _, item := range left {
		text := item.Place + ": " + item.Reason
		if line, _, _ := strings.Cut(item.Source, "\n"); line != "" {
			text += fmt.Sprintf(": %.200s", line)
		}
		c.say("not imported: %s", text)
	}
	rest := ""
	if result.Rest != "" {
		rest = "; beside them " + result.Rest
	}
	c.say("imported %d of %s from %s, all disabled%s", result.Imported(), report.Plural(len(result.Items), "job"), result.Source, rest)
	if len(left) > 0 {
		c.told = true // each item is named above
		return errLeftOut
	}
	return nil
}

func (c *cli) importCrontab() *cobra.Command {
	var column bool
	cmd := &cobra.Command{
		Use: "crontab [FILE]", Short: "Write a manifest of a crontab", Args: positional("FILE?"),
		Long: `Writes a manifest of a crontab: of a file, of all files in a folder such as /etc/cron.d or
/var/spool/cron/crontabs, or of standard input.

Cron reads times on the clock of its machine. The import assumes the zone of this machine, unless --zone names another. TZ
precedes /etc/localtime; if they differ, a warning says so, because cron may not have the TZ of this session.
The comments name each night of the coming year on which cron and dbjobs do not run a line at the same times.`,
		Example: `  crontab -l | dbjobs import crontab -o jobs.yaml
  dbjobs import crontab /etc/crontab --zone Europe/Berlin`,
	}
	cmd.Flags().BoolVar(&column, "user-column", false, "lines name a user before the command, or with =false, do not (automatic for /etc/crontab, files in cron.d, and files in which a comment names this column, or more lines name root than begin with a command)")
	return c.importing(cmd, "time zone of the machine that runs the crontab (default: this machine's)", func(cmd *cobra.Command, args []string, f *imports, from time.Time) (r *intake.Result, err error) {
		o := crontab.Options{Zone: f.zone, From: from, Users: crontab.UsersGuess}
		if o.Zone == "" {
			if o.Zone, err = c.machineZone(); err != nil {
				return nil, err
			}
		}
		if cmd.Flags().Changed("user-column") {
			o.Users = map[bool]string{true: crontab.UsersYes, false: crontab.UsersNo}[column]
		}
		return c.readCrontabs(cmd, append(args, "-")[0], o)
	})
}

func (c *cli) importKubernetes() *cobra.Command {
	var command bool
	cmd := &cobra.Command{
		Use: "kubernetes [FILE]", Short: "Write a manifest of CronJobs", Args: positional("FILE?"),
		Long: `Writes a manifest of CronJobs of Kubernetes: of a file, or of standard input, in YAML or JSON. Each run makes a Job from
its CronJob, which stays, suspended. With --command, each run executes the command of the container where the tick runs.`,
		Example: `  kubectl get cronjobs -A -o yaml | dbjobs import kubernetes -o jobs.yaml
  dbjobs import kubernetes cronjobs.yaml --zone Europe/Berlin`,
	}
	cmd.Flags().BoolVar(&command, "command", false, "run the commands of the containers, instead of making Jobs in Kubernetes")
	return c.importing(cmd, "time zone of the controller, for CronJobs without timeZone (UTC)", func(cmd *cobra.Command, args []string, f *imports, from time.Time) (*intake.Result, error) {
		text, name, err := c.readSource(cmd, append(args, "-")[0])
		if err != nil {
			return nil, err
		}
		r, err := kubernetes.Read(text, kubernetes.Options{Source: name, Zone: f.zone, Command: command, From: from})
		if err != nil {
			return nil, badInput("%s: %v", name, err)
		}
		return r, nil
	})
}

// readCrontabs reads a file, standard input, or the files of a folder.
func (c *cli) readCrontabs(cmd *cobra.Command, source string, o crontab.Options) (*intake.Result, error) {
	if info, err := os.Stat(source); source == "-" || err != nil || !info.IsDir() {
		text, name, err := c.readSource(cmd, source)
		if err != nil {
			return nil, err
		}
		o.Name = name
		return crontab.Read(text, o), nil
	}
	list, err := os.ReadDir(source)
	if err != nil {
		return nil, &usageError{problem: err.Error()}
	}
	var files []crontab.File
	for _, entry := range list {
		f := crontab.File{Path: filepath.Join(source, entry.Name())}
		if info, err := os.Stat(f.Path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if f.Text, _, err = c.readSource(cmd, f.Path); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	o.Name = source
	return crontab.ReadFolder(files, o), nil
}

// maxSource limits the length of a source: no crontab is longer.
const maxSource = 16 << 20

// readSource reads a file, or standard input.
func (c *cli) readSource(cmd *cobra.Command, path string) (text, name string, err error) {
	var in io.Reader = interruptible{cmd.Context(), c.stdin}
	if name = "standard input"; path != "-" {
		f, err := openInput(cmd.Context(), path)
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return "", "", &usageError{problem: err.Error()}
		} else if err != nil {
			return "", "", err
		}
		defer f.Close()
		in, name = f, path
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSource+1))
	if e, ok := errors.AsType[*fs.PathError](err); ok { // it names the file
		return "", "", &usageError{problem: e.Error()}
	} else if err != nil {
		return "", "", fmt.Errorf("reading %s: %w", name, err)
	}
	if len(b) > maxSource {
		return "", "", badInput("%s is longer than %d bytes; divide it", name, maxSource)
	}
	return string(b), name, nil
}

// zoneAt is a place that may name the zone of a machine, and what it has.
type zoneAt struct{ place, name string }

// machineZone returns the name of the zone of this machine.
func (c *cli) machineZone() (string, error) {
	var places []zoneAt
	if tz, set := c.env("TZ"); set {
		places = append(places, zoneAt{"TZ", strings.TrimPrefix(tz, ":")})
	}
	if link, err := filepath.EvalSymlinks("/etc/localtime"); err == nil {
		if _, name, found := strings.Cut(link, "/zoneinfo/"); found {
			places = append(places, zoneAt{"/etc/localtime", name})
		}
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		places = append(places, zoneAt{"/etc/timezone", strings.TrimSpace(string(text))})
	}
	zone, remark := zoneAmong(places)
	if zone == "" {
		return "", badInput("the zone of this machine has no name here (TZ, /etc/localtime, /etc/timezone); give it with --zone, such as --zone Europe/Berlin")
	}
	if remark != "" {
		c.tell(slog.LevelWarn, "warning: %s", remark)
	}
	return zone, nil
}

// zoneAmong returns the first name that is a zone. TZ is of this session, and cron may have been started without it: the
// remark names the zone of the machine, if that is another one.
func zoneAmong(places []zoneAt) (zone, remark string) {
	for _, p := range places {
		name := strings.TrimPrefix(strings.TrimPrefix(p.name, "posix/"), "right/")
		if name == "Etc/UTC" || name == "" || name == "Etc/UCT" {
			name = "UTC"
		}
		switch {
		case zoned(name) != nil:
		case zone == "":
			if zone = name; p.place != "TZ" {
				return zone, ""
			}
		case name == zone:
			return zone, ""
		default:
			return zone, fmt.Sprintf("TZ is %s, and %s %s: the times are taken as those of %[1]s; if cron runs with the zone of the machine, give --zone %[3]s", zone, p.place, name)
		}
	}
	return zone, ""
}
