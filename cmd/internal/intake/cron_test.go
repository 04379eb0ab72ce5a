package intake

import (
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/rules"
)

// The day fields of a line and of its rule name the same days, also where dbjobs does not read a field. A star at the
// beginning of one field means that both have to match.
func TestDaysOfTheRule(t *testing.T) {
	lines := []string{"0 0 */32 * */8", "0 0 */60 8 */1,*/10", "0 0 */32 * mon", "0 0 1-7 * */9", "0 0 */40,20-31/20 * FRI-SUN", "0 0 5 * */2,5-7/9",
		"0 0 *,3-9/90 * 1", "0 0 1-31/40 * 5-7/8", "0 0 5,*/40 * 3,*/8", "0 0 */40 */13 *"}
	rnd := rand.New(rand.NewSource(1))
	field := func(low, high int) string {
		var items []string
		for range 1 + rnd.Intn(3) {
			a := low + rnd.Intn(high-low+1)
			b := strconv.Itoa(a + rnd.Intn(high-a+1))
			step := "/" + strconv.Itoa(1+rnd.Intn(2*high))
			items = append(items, []string{"*", "*" + step, "*" + step, b, strconv.Itoa(a) + "-" + b, strconv.Itoa(a) + "-" + b + step}[rnd.Intn(6)])
		}
		return strings.Join(items, ",")
	}
	for range 150 {
		lines = append(lines, "0 0 "+field(1, 31)+" * "+field(0, 7))
	}
	begin := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	end := begin.AddDate(4, 0, 0)
	for _, text := range lines {
		c := read(t, text)
		rule, err := c.Rule([5]string(strings.Fields(text)))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		r, err := rules.Parse(rule, rules.Defaults{})
		if err != nil {
			t.Fatal(text, rule, err)
		}
		var want []time.Time
		for day := begin; day.Before(end); day = day.AddDate(0, 0, 1) {
			if c.matches(day.Unix() / 60) {
				want = append(want, day)
			}
		}
		got, err := r.Between(begin.Add(-time.Minute), end.Add(-time.Minute), 0)
		if err != nil || !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%s is %s: %d days, want %d (%v)", text, rule, len(got), len(want), err)
		}
	}
}
