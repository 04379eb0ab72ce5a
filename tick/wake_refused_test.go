package tick_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// A pass that could not begin, because of something that time or somebody mends, sets an alarm: otherwise nothing but the safety trigger
// would come after that.
func TestAlarmThatAsksAgain(t *testing.T) {
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		tk, _ := waking(t, d)
		ticktest.Apply(t, d, store.Definitions{Jobs: []store.Job{ticktest.Hourly("job")}})
		expect := func(what string, r tick.Report, err error) {
			t.Helper()
			if wait := r.WakeAt.Sub(tk.Now()); err == nil || wait < time.Minute || wait > 2*time.Minute {
				t.Errorf("%s: %v: the alarm is for %v, now %v", what, err, r.WakeAt, tk.Now())
			}
		}
		d.Exec(t, "UPDATE "+d.Table("installation")+" SET oldest = 99")
		r, err := tk.Run(t.Context())
		expect("with another schema", r, err)
		d.Exec(t, "UPDATE "+d.Table("installation")+" SET oldest = version")
		tk.MaxClockSkew, tk.Now = time.Minute, func() time.Time { return d.Clock.Now().Add(time.Hour) }
		r, err = tk.Run(t.Context())
		expect("with a clock that is too far off", r, err)
		r, err = tk.Unreached(t.Context(), store.ErrReadOnly)
		expect("with a file that is locked", r, err)
		d.Exec(t, "DELETE FROM "+d.Table("installation"))
		if r, err := tk.Run(t.Context()); !errors.Is(err, store.ErrSchema) || !r.WakeAt.IsZero() {
			t.Errorf("after uninstall: %v: the alarm is for %v", err, r.WakeAt)
		}
	})
}
