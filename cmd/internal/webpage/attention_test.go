package webpage

import (
	"fmt"
	"strings"
	"testing"
)

// The page lists what status and check name: whatever state covers the trouble of a job, it does not say that all is well.
func TestAttention(t *testing.T) {
	t.Parallel()
	f := manyFacts(0)
	f.Jobs = []Job{
		{Name: "load", State: "running", Parked: "no group", Ahead: []int64{}},
		{Name: "idle", State: "paused", Why: "in a freeze", Parked: "no rule", Ahead: []int64{}},
		{Name: "ledger", State: "paused", Why: "by dbjobs itself", Itself: true, Ahead: []int64{}},
		{Name: "orders", State: "paused", Why: "by dbjobs itself", Itself: true, Failing: true, Streak: 1, Error: "no such table", Ahead: []int64{}},
		{Name: "off", State: "disabled", Ahead: []int64{}},
	}
	f.Gaps, f.Silences, f.Cut = []Gap{}, []Silence{}, []string{}
	f.Triggers = []Trigger{{Name: "cron", Last: f.Made - 120_000, Error: "no such table"}, {Name: "ahead", Last: f.Made + 24*3600_000}, {Name: "soon", Last: f.Made - 180_000}}
	f.Attention = []Attention{{"no tick", "no pass is on record since noon"}, {"stuck", "a run has been stuck since noon: <b>"}}
	file := written(t, f)
	b := open(t, file, 1280, 900, false)
	list := []string{"tick failedthe last tick by the trigger cron: no such table",
		"silentno tick by the trigger ahead since the clock of the database was set back",
		"no tickno pass is on record since noon", "stucka run has been stuck since noon: <b>",
		"parkedload: no group", "parkedidle: no rule", "paused itselfledger: by dbjobs itself", "paused itselforders: by dbjobs itself"}
	b.want("headline", `document.getElementById("h-attention").textContent`, fmt.Sprintf("%d things to look at", len(list)))
	b.want("list", `[...document.querySelectorAll("#needs > li")].map(e => e.textContent).join("\n")`, strings.Join(append(list, "pausedidle: in a freeze"), "\n"))
	b.want("last tick", `document.querySelector("#figures > div:last-child").textContent`, "last tick2 min before")
	b.clean(file)
}
