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
	file := written(t, f)
	b := open(t, file, 1280, 900, false)
	list := []string{"parkedload: no group", "parkedidle: no rule", "paused itselfledger: by dbjobs itself", "paused itselforders: by dbjobs itself"}
	b.want("headline", `document.getElementById("h-attention").textContent`, fmt.Sprintf("%d things to look at", len(list)))
	b.want("list", `[...document.querySelectorAll("#needs > li")].map(e => e.textContent).join("\n")`, strings.Join(append(list, "pausedidle: in a freeze"), "\n"))
	b.clean(file)
}
