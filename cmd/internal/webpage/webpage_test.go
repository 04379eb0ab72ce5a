package webpage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostile are names and errors that try to be more than text.
var hostile = []string{
	`</script><script>window.hurt=1</script>`, `<img src=x onerror="window.hurt=1">`, `"><svg onload=window.hurt=1>`, `' onfocus='window.hurt=1' autofocus='`,
	`<!--<script>`, `]]>&lt;b&gt;`, "line\u2028separator\u2029end", `{{policy}} {{facts}} ${1+1}`, `javascript:window.hurt=1`, "ende\u00df \u6f22\u5b57 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
}

// facts returns the facts of a busy week: n runs of 40 jobs. Some jobs have hostile names.
func manyFacts(n int) *Facts {
	made := time.Date(2026, 11, 20, 7, 30, 0, 0, time.UTC)
	chance := rand.New(rand.NewPCG(1, 2))
	f := &Facts{Made: Millis(made), From: Millis(made.AddDate(0, 0, -7)), Until: Millis(made.AddDate(0, 0, 14)), Version: "v1.0.0", Database: "postgres://db.example/jobs",
		Cut: []string{"Only the newest 10,000 runs are shown."}, Gaps: []Gap{}, Silences: []Silence{}, Triggers: []Trigger{{Name: "tick", Last: Millis(made.Add(-20 * time.Second))}}}
	for i := range 40 {
		j := Job{Name: fmt.Sprintf("app/load-%02d", i), State: "sleeping", Schedule: "every 10m", Next: Millis(made.Add(7 * time.Minute)), Ahead: []int64{}}
		if j.More = i%4 == 0; i%4 != 1 {
			j.Name, j.Schedule = fmt.Sprintf("app/nightly-%02d", i), "30 2 * * * Europe/Berlin"
		}
		for k := range 14 {
			j.Ahead = append(j.Ahead, Millis(made.Add(time.Duration(i)*time.Minute+time.Duration(k)*24*time.Hour)))
		}
		switch i {
		case 3:
			j.State, j.Parked = "parked", "its rule cannot be read: <b>"
		case 5:
			j.Streak, j.Failing, j.Error = 4, true, hostile[0]+strings.Repeat(" no such table: \U0001F600", 1000)+" the end"
		case 6:
			j.State, j.Why = "paused", "since 2026-11-19T00:00:00Z by ann: migration"
		case 8:
			j.State, j.Streak, j.Error = "disabled", 4, hostile[0]
		case 7:
			j.Overdue = Millis(made.Add(-time.Hour))
		}
		f.Jobs = append(f.Jobs, j)
	}
	for _, name := range hostile {
		f.Jobs = append(f.Jobs, Job{Name: name, State: "sleeping", Schedule: name, Ahead: []int64{Millis(made.Add(time.Hour))}})
	}
	for i := range n {
		job := i % len(f.Jobs)
		nominal := made.Add(-time.Duration(i) * 7 * 24 * time.Hour / time.Duration(n))
		started := nominal.Add(time.Duration(chance.IntN(60_000)) * time.Millisecond)
		ended, state, problem := started.Add(time.Duration(1+chance.IntN(900_000))*time.Millisecond), "succeeded", ""
		switch {
		case i < 5:
			state, ended = "running", time.Time{}
		case i < 8:
			state, started, ended = "waiting", time.Time{}, time.Time{}
		case i%97 == 0:
			state, problem = "failed", hostile[i%len(hostile)]
		case i%331 == 0:
			state = "lost"
		}
		f.Runs.Add(job, state, fmt.Sprintf("019ffa5c-0000-7000-8000-%012d", i), "", problem, nominal, nominal, started, ended)
	}
	f.Gaps = append(f.Gaps, Gap{2, Millis(made.Add(-50 * time.Hour)), Millis(made.Add(-44 * time.Hour)), "missed"}, Gap{6, Millis(made.Add(-20 * time.Hour)), Millis(made), "paused"})
	f.Silences = append(f.Silences, Silence{"tick", Millis(made.Add(-50 * time.Hour)), Millis(made.Add(-44 * time.Hour))})
	return f
}

// written returns the file of a page.
func written(t *testing.T, f *Facts) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := Write(w, f); err != nil {
		t.Fatal(err)
	}
	return path
}

// clean fails for each error that a page reported, and for each request that it made.
func (b *browser) clean(file string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		b.t.Errorf("the console has: %s", text)
	}
	for _, url := range b.asked {
		if url != "file://"+file && url != "data:," {
			b.t.Errorf("the page asked for %s", url)
		}
	}
}

func (b *browser) want(what, expression, value string) {
	b.t.Helper()
	if got := b.eval(expression); got != value {
		b.t.Errorf("%s: found %q, want %q", what, got, value)
	}
}

const rows = `document.querySelectorAll("#jobs tbody tr").length`

// A browser shows the page on a large screen: the page makes no network request, hostile texts stay texts, and filters,
// keys and colours work.
func TestPage(t *testing.T) {
	t.Parallel()
	f := manyFacts(10_000)
	file := written(t, f)
	b := open(t, file, 1280, 900, false)
	b.want("headline", `document.getElementById("h-attention").textContent`, "3 things to look at")
	b.want("an error of 20 kB", `(li => [li.querySelector("summary").textContent.length < 700, li.getBoundingClientRect().height < 200, li.textContent.endsWith("the end")].join())(
		[...document.querySelectorAll("#needs li")].find(li => li.textContent.startsWith("failing")))`, "true,true,true")
	b.want("jobs", rows, fmt.Sprint(len(f.Jobs)))
	b.shoot("desktop", "header")
	b.shoot("desktop-jobs", "#h-jobs")
	b.shoot("desktop-calendar", "#h-silences")
	// Some of these jobs have more times than the page, but one a day.
	b.want("jobs above the days", `[...document.querySelectorAll("#often p, #often b")].map(e => e.textContent).filter((t, i, all) => all.indexOf(t) === i).join()`,
		"Too many times for the days below:,about every 1 d")

	// Hostile texts are shown unchanged.
	b.want("hurt", `String(window.hurt)`, "undefined")
	for _, text := range hostile {
		b.want(text, fmt.Sprintf(`[...document.querySelectorAll("#jobs td.name")].some(c => c.textContent === %q)`, text), "true")
	}
	b.want("elements of others", `document.querySelectorAll("img, [onerror], [onload], [onfocus], section script").length`, "0")

	b.eval(`document.getElementById("f-job").focus()`)
	for _, key := range []string{"N", "i", "g", "h", "t"} {
		b.press(key)
	}
	b.wait(rows + " === 30")
	b.eval(`(s => { s.value = "failed"; s.dispatchEvent(new Event("change")) })(document.getElementById("f-state"))`)
	b.want("states", `[...new Set([...document.querySelectorAll("#failures .state")].map(s => s.textContent))].join()`, "failed")
	b.eval(`(s => { s.value = "24"; s.dispatchEvent(new Event("change")) })(document.getElementById("f-time"))`)
	b.wait(`/from Thu,? 19 Nov 08:30:00 to Fri,? 20 Nov 08:30:00/.test(document.getElementById("timeline").getAttribute("aria-label"))`)
	b.shoot("filtered", "header")
	b.eval(`document.getElementById("f-clear").click()`)
	b.want("cleared", rows, fmt.Sprint(len(f.Jobs)))

	b.sorts()
	b.keyboard()
	b.colours()

	// The table behind the picture has the same runs.
	b.eval(`document.querySelector("#runs-table summary").click()`)
	b.wait(`document.querySelectorAll("#runs-table tbody tr").length === 200`)
	b.want("more rows", `document.querySelector("#runs-table .more button").textContent`, "Show more of 10,000 rows")

	// Ten thousand runs are drawn within a frame or two, at any place of the timeline. This is measured, with a limit
	// for a slow machine.
	ms := b.eval(`(async () => {
		const c = document.getElementById("timeline"), begin = performance.now();
		for (let i = 0; i < 20; i++) {
			c.dispatchEvent(new KeyboardEvent("keydown", { key: i % 2 ? "+" : "-" }));
			await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
		}
		return Math.round((performance.now() - begin) / 20);
	})()`)
	size, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("10,000 runs: %d kB; a drawing with two frames takes %s ms", size.Size()/1000, ms)
	b.clean(file)
}

// sorts clicks the heads of the table of jobs. The first click puts the smallest text first, or the largest number; the next one turns
// that round.
func (b *browser) sorts() {
	b.t.Helper()
	for _, c := range []struct{ head, order, first string }{
		{"State", "ascending", "disabled"}, {"State", "descending", "sleeping"}, {"Runs", "descending", "200"}, {"Runs", "ascending", "200"}, {"State", "ascending", "disabled"},
	} {
		b.want("sorted by "+c.head, fmt.Sprintf(`(() => {
			const heads = () => [...document.querySelectorAll("#jobs th")], at = heads().findIndex(h => h.textContent === %q);
			heads()[at].querySelector("button").click();
			return heads()[at].getAttribute("aria-sort") + " " + document.querySelectorAll("#jobs tbody tr:first-child td")[at].textContent;
		})()`, c.head), c.order+" "+c.first)
	}
}

// keyboard goes to the timeline by Tab, and moves in it.
func (b *browser) keyboard() {
	b.t.Helper()
	const label = `document.getElementById("timeline").getAttribute("aria-label")`
	b.eval(`document.getElementById("z-all").focus()`)
	b.press("Tab")
	for range 3 { // the box around it may also be a stop, if it scrolls
		if b.eval(`document.activeElement.id`) == "timeline" {
			break
		}
		b.press("Tab")
	}
	b.want("focus", `document.activeElement.id`, "timeline")
	b.want("ring", `getComputedStyle(document.activeElement).outlineStyle`, "solid")
	whole := b.eval(label)
	b.press("+")
	b.wait(label + ` !== ` + fmt.Sprintf("%q", whole))
	zoomed := b.eval(label)
	b.press("ArrowLeft")
	b.wait(label + ` !== ` + fmt.Sprintf("%q", zoomed))
	b.press("ArrowDown")
	b.want("picked", `document.getElementById("picked").textContent.startsWith("app/nightly-00: ")`, "true")
	b.press("0")
	b.wait(label + ` === ` + fmt.Sprintf("%q", whole))
}

// colours are the colours of the system until the switch sets others.
func (b *browser) colours() {
	b.t.Helper()
	scheme := func(value string) {
		b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": value}}}, nil)
	}
	const theme = `document.documentElement.dataset.theme`
	scheme("dark")
	b.wait(theme + ` === "dark"`)
	b.shoot("dark", "header")
	b.eval(`document.getElementById("theme").click()`)
	b.want("switched to light", theme, "light")
	b.eval(`document.getElementById("theme").click()`)
	scheme("light")
	b.want("switched to dark", theme, "dark")
	b.eval(`document.getElementById("theme").click()`)
	b.want("back to the system's", theme, "light")
}

// On a phone nothing is wider than the screen, and the days of the calendar are one below the other.
func TestPageOnAPhone(t *testing.T) {
	t.Parallel()
	file := written(t, manyFacts(500))
	b := open(t, file, 360, 740, true)
	b.want("width", `document.documentElement.scrollWidth`, "360")
	b.want("days", `new Set([...document.querySelectorAll(".weeks > li:not(.pad)")].map(d => d.getBoundingClientRect().left)).size`, "1")
	b.shoot("phone", "header")
	b.shoot("phone-runs", "#h-timeline")
	b.shoot("phone-calendar", "#h-calendar")
	b.clean(file)
}

// On paper, the page has the light colours, all of its rows, and no buttons.
func TestPrintedPage(t *testing.T) {
	t.Parallel()
	file := written(t, manyFacts(500))
	b := open(t, file, 1000, 1400, false)
	b.eval(`(s => { while (!s.textContent.endsWith("dark")) s.click() })(document.getElementById("theme"))`)
	b.want("theme", `document.documentElement.dataset.theme`, "dark")
	b.eval(`window.printed = ""; addEventListener("beforeprint", () => { printed = document.documentElement.dataset.theme })`)
	b.call("Page.printToPDF", nil, nil)
	b.want("theme on paper", `printed`, "light")
	b.wait(`document.documentElement.dataset.theme === "dark"`)

	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	const style = `(name, of) => [...new Set([...document.querySelectorAll(of)].map(e => getComputedStyle(e)[name]))].join()`
	b.want("paper", `(`+style+`)("backgroundColor", "body")`, "rgb(255, 255, 255)")
	b.want("what is pressed", `(`+style+`)("display", ".filters, .tools, .group, .hint, .skip, .more")`, "none")
	b.want("rows out of sight", `(`+style+`)("maxHeight", ".lanes, .scroll") + " " + (`+style+`)("overflowY", ".lanes, .scroll")`, "none visible")
	b.want("frames", `(`+style+`)("borderTopWidth", "section")`, "0px")
	b.want("rows in two parts", `(`+style+`)("breakInside", "tr, .weeks > li, .needs li")`, "avoid")
	b.clean(file)
}

// A report without content is a page, too.
func TestEmptyPage(t *testing.T) {
	t.Parallel()
	f := manyFacts(0)
	f.Jobs, f.Gaps, f.Silences, f.Triggers, f.Cut = []Job{}, []Gap{}, []Silence{}, []Trigger{}, []string{}
	file := written(t, f)
	b := open(t, file, 1000, 700, false)
	b.want("headline", `document.getElementById("h-attention").textContent`, "1 thing to look at")
	b.want("silences", `document.getElementById("silences").textContent`, "No tick is on record.")
	b.shoot("empty", "header")
	b.clean(file)
}

// To a login that does not see the ticks of others, the silence of a trigger of its own is nothing to look at.
func TestPageOfALoginWhoseTriggerIsSilent(t *testing.T) {
	t.Parallel()
	f := manyFacts(0)
	f.Jobs, f.Gaps, f.Silences, f.Triggers, f.Hidden = f.Jobs[:1], []Gap{}, []Silence{{Trigger: "ann", From: f.From}}, []Trigger{}, true
	f.Attention = []Attention{}
	b := open(t, written(t, f), 1000, 700, false)
	b.want("headline", `document.getElementById("h-attention").textContent`, "All is well")
	b.want("silences", `document.querySelector("#silences tbody .name").textContent`, "ann")
}

// What a login may not see is not said to be absent. A run without a nominal time says what it was made for. One that has waited
// since before the time of the page is there, too.
func TestPageOfALoginThatSeesNoTicks(t *testing.T) {
	t.Parallel()
	f := manyFacts(0)
	f.Jobs, f.Gaps, f.Silences, f.Triggers, f.Cut, f.Hidden = f.Jobs[:1], []Gap{}, []Silence{}, []Trigger{}, []string{}, true
	at := time.UnixMilli(f.Made).Add(-time.Hour)
	f.Runs.Add(0, "failed", "019ffa5c-0000-7000-8000-000000000000", "after a run", "no such table", time.Time{}, at, at, at)
	f.Runs.Add(0, "succeeded", "019ffa5c-0000-7000-8000-000000000001", "on request", "", time.Time{}, at, at, at)
	f.Runs.Add(0, "queued", "019ffa5c-0000-7000-8000-000000000002", "on request", "", time.Time{}, at.Add(-24*time.Hour), time.Time{}, time.Time{})
	f.From, f.Attention = Millis(at.Add(-5*time.Hour)), []Attention{{"stuck", "runs of the queue tick are ready since yesterday"}}
	file := written(t, f)
	b := open(t, file, 1000, 700, false)
	b.want("headline", `document.getElementById("h-attention").textContent`, "1 thing to look at")
	b.want("last tick", `document.querySelector("#figures > div:last-child").textContent`, "last ticknot visible")
	b.want("silences", `document.getElementById("silences").textContent`, "None that this login may see.")
	b.want("first figure", `document.querySelector("#figures > div").textContent`, "runs in 6 h2")
	b.want("waiting", `document.querySelector("#figures > div:nth-child(4)").textContent + " of " + document.getElementById("found").textContent`, "waiting1 of 3 runs of 1 job")
	b.want("nominal time", `document.querySelector("#failures tbody td:nth-child(3)").textContent`, "after a run")
	b.clean(file)
}

// The content of the file cannot end the element that contains it, and only the file's own parts are run.
func TestFileHasNoOtherElements(t *testing.T) {
	text, err := os.ReadFile(written(t, manyFacts(100)))
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]int{"<script": 2, "</script": 2, "<style": 1, "</style": 1, "http://": 1, "https://": 0, "\u2028": 0} {
		if n := strings.Count(string(text), word); n != want {
			t.Errorf("%q: found %d, want %d", word, n, want)
		}
	}
}
