package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/dbjobs/dbjobs/cmd/internal/host"
	"github.com/dbjobs/dbjobs/cmd/internal/report"
	"github.com/dbjobs/dbjobs/cmd/internal/settings"
	"github.com/dbjobs/dbjobs/cmd/internal/wake"
	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/tick"
)

// wakeVariable is the kind of alarm that passes set, and that commands set if they change what is due.
const wakeVariable = "DBJOBS_WAKE"

// patienceVariable is how long a connection is tried again while the database does not answer. It is not a flag,
// because it belongs to the database, whatever the command is.
const patienceVariable = "DBJOBS_CONNECT_PATIENCE"

// wakingPatience is the default of patienceVariable if alarms are set: then the database may sleep. A managed
// database takes about 15 seconds to wake, or twice as long after a day.
const wakingPatience = 40 * time.Second

// ringPatience is how long a command may wait for its alarm to be set.
const ringPatience = 10 * time.Second

// patience returns how long to wait for a database that wakes.
func (c *cli) patience(cmd *cobra.Command) (time.Duration, error) {
	text, _ := c.env(patienceVariable)
	if text == "" {
		kind, _ := c.env(wakeVariable)
		if f := cmd.Flag("wake"); f != nil {
			kind = f.Value.String()
		}
		if kind == "" {
			return 0, nil
		}
		return wakingPatience, nil
	}
	d, err := store.ParseDuration(text)
	if err != nil {
		return 0, badInput("%s: %v", patienceVariable, err)
	}
	return time.Duration(d), nil
}

// alarm returns the alarm of the kind that the flags name; nil if no alarm is to be set. name is that of the ticks that alarms
// start; empty: their default.
func (c *cli) alarm(f *tickFlags, name string) (tick.Alarm, error) {
	if f.wake == "" {
		return nil, nil
	}
	a, err := wake.New(f.wake, wake.Settings{Env: wake.Lookup(c.env), Environ: c.environ, Secrets: c.secrets, Lead: time.Duration(f.lead), Now: time.Now,
		Tick: func() (variables, args []string, err error) { return c.sameTick(f, name) }})
	if err != nil {
		return nil, badInput("--wake or %s: %v", wakeVariable, err)
	}
	return a, nil
}

// usualName is the name that ticks have which are started beside this command, with the same variables; empty: their default.
func (c *cli) usualName() string {
	name, _ := c.env("DBJOBS_NAME")
	return name
}

// nameWorker names a worker after the ticks that DBJOBS_NAME names, and not as them. With the same name, a worker's passes would replace
// the figures of the ticks, and would hide from alarms that no tick succeeds. Of a name that is too long then, the end goes.
func (c *cli) nameWorker(cmd *cobra.Command, f *tickFlags) {
	name := c.usualName()
	if cmd.Name() != "work" || cmd.Flag("name").Changed || name == "" || store.CheckTrigger(name, "", nil) != nil {
		return
	}
	for f.name = name + "-work"; store.CheckTrigger(f.name, "", nil) != nil; f.name = name + "-work" {
		_, last := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-last]
	}
}

// sameTick returns the variables and arguments of a later tick that is of the databases of this command line, does not refuse them
// if this one does not, and has the name. It is not of the same start-up: that is for the trigger to say. A URL may hold a password,
// as the text of the settings of the host may, and neither stands in a command line that is kept.
func (c *cli) sameTick(f *tickFlags, name string) (variables, args []string, err error) {
	for _, database := range c.databases {
		if !isName(database) {
			return nil, nil, errors.New("an alarm passes no URL on to the tick that it starts; give the database a name in the settings of the host, " +
				"and --database that name, or set DBJOBS_WAKE_TARGET")
		}
		args = append(args, "--database="+database)
	}
	if by := settings.NamedBy(c.env); by != "" && len(args) == 0 {
		return nil, nil, fmt.Errorf("an alarm passes no %s on to the tick that it starts; name the database in the settings of the host, or set DBJOBS_WAKE_TARGET", by)
	}
	if by := settings.DirectBy(c.env); by != "" && len(args) == 0 {
		return nil, nil, fmt.Errorf("an alarm passes no %s on to the tick that it starts; set DBJOBS_WAKE_TARGET", by)
	}
	if name != "" {
		args = append(args, "--name="+name)
	}
	if f.maxClockSkew != usualClockSkew {
		args = append(args, "--max-clock-skew="+f.maxClockSkew.String())
	}
	variables, err = c.sameSettings()
	return variables, args, err
}

// sameSettings returns the variables by which a later tick finds the settings of this host, in whatever folder it begins, logs in to
// the database in the same way, and takes it for the one that is meant. No flag says any of this.
func (c *cli) sameSettings() (variables []string, err error) {
	path, _ := c.env(host.Variable)
	switch {
	case host.IsText(path):
		return nil, fmt.Errorf("an alarm passes no text of %s on to the tick that it starts; write the settings of the host into a file, or set DBJOBS_WAKE_TARGET", host.Variable)
	case path != "":
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		variables = append(variables, host.Variable+"="+path)
	}
	for _, name := range []string{settings.AuthVariable, instanceVariable} {
		if value, _ := c.env(name); value != "" {
			variables = append(variables, name+"="+value)
		}
	}
	return variables, nil
}

// readAlarm reads the alarm of passes, and refuses settings that passes cannot use. If a pass ended before what its alarm has started it for, its own
// alarm for that would be due at once, and so on, in an endless row of passes.
func (c *cli) readAlarm(f *tickFlags, name string) (err error) {
	if f.alarm, err = c.alarm(f, name); f.alarm == nil || err != nil {
		return err
	}
	return c.checkLead(f)
}

// checkLead refuses a lead for which the passes of this budget are too short.
func (c *cli) checkLead(f *tickFlags) error {
	budget := max(time.Duration(f.budget), c.whole)
	if most := tick.LongestLead(budget); f.waits && budget > 0 && time.Duration(f.lead) > most {
		return badInput("--wake-lead (DBJOBS_WAKE_LEAD): found %s, but with a budget of %s (--budget, DBJOBS_BUDGET) a pass waits for %s at most",
			f.lead, store.Duration(budget), store.Duration(most))
	}
	return nil
}

// checkAlarmOfServe refuses alarms that no pass of serve can use. The passes take them from the same variables. A lead that fits no
// tick brings a warning only: the process may be there for workers, which wait for no alarm.
func (c *cli) checkAlarmOfServe(budget time.Duration) error {
	kind, _ := c.env(wakeVariable)
	f := &tickFlags{wake: kind, budget: store.Duration(budget)}
	if err := c.sameFlags(f); err != nil {
		return err
	}
	name, _ := c.env("DBJOBS_NAME")
	if err := c.readAlarm(f, name); err != nil || f.alarm == nil {
		return err
	}
	f.waits = true
	if err := c.checkLead(f); err != nil {
		c.tell(slog.LevelWarn, "POST /tick will be refused, and only POST /work answered: %v", err)
	}
	return nil
}

// sameFlags sets what the flags of a tick say about alarms, and what the tick that an alarm starts needs of them, by the variables.
func (c *cli) sameFlags(f *tickFlags) (err error) {
	f.maxClockSkew = usualClockSkew
	for flag, d := range map[string]*store.Duration{"wake-lead": &f.lead, "max-clock-skew": &f.maxClockSkew} {
		name := flagVariables[flag]
		if text, _ := c.env(name); text != "" && err == nil {
			if *d, err = store.ParseDuration(text); err != nil {
				err = badInput("%s: %v", name, err)
			}
		}
	}
	return err
}

// ring sets an alarm after a command that changes something, for what is due by now. A pass sets an alarm for what
// is due next in the same way. The command has done its work, so an alarm that cannot be set is only a warning.
//
// Crash window: if the process dies between the COMMIT of the change and the alarm, no pass comes for the change
// before the next alarm that is set, or before the safety trigger.
func (c *cli) ring(ctx context.Context, s *store.Store) {
	kind, _ := c.env(wakeVariable)
	if kind == "" || c.rung {
		return
	}
	c.rung = true
	if err := c.tryRing(ctx, s, kind); err != nil {
		c.tell(slog.LevelWarn, "the change is done, but its alarm could not be set; it takes effect with the next alarm or the safety trigger: %v", err)
	}
}

func (c *cli) tryRing(ctx context.Context, s *store.Store, kind string) error {
	f := &tickFlags{wake: kind}
	if err := c.sameFlags(f); err != nil {
		return err
	}
	name := c.usualName()
	alarm, err := c.alarm(f, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ringPatience)
	defer cancel()
	probe, err := s.Probe(ctx, name, tick.OwnQueue)
	if err != nil {
		return err
	}
	t := tick.Tick{Alarm: alarm, Lead: time.Duration(f.lead), Now: time.Now}
	at := t.RingAt(probe)
	if at.IsZero() {
		return nil
	}
	rings, err := alarm.Set(ctx, at)
	if err == nil && !c.asJSON {
		c.say("the trigger is set for %s", report.Instant(rings))
	}
	return err
}

// rings reports whether a command writes definitions, requests or marks, and was not told to only show what it
// would do.
func rings(cmd *cobra.Command) bool {
	dry := cmd.Flag("dry-run")
	return cmd.Flag("reason") != nil && (dry == nil || dry.Value.String() != "true")
}
