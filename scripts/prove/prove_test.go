package prove

import "testing"

func TestCases(t *testing.T) {
	for _, c := range []struct {
		set   string
		whole bool
		cases int
	}{{"", false, 5}, {"1", true, 300}, {"10", true, 3000}} {
		t.Setenv("DBJOBS_PROVE", c.set)
		if whole, cases := Whole(), Cases(5, 300); whole != c.whole || cases != c.cases {
			t.Errorf("%q: whole %t, %d cases", c.set, whole, cases)
		}
	}
	for _, wrong := range []string{"0", "-1", "yes", "1.5"} {
		t.Setenv("DBJOBS_PROVE", wrong)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q passes", wrong)
				}
			}()
			Whole()
		}()
	}
}
