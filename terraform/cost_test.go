package terraform_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCosts: each amount in COST.md is what its table of prices gives. `go test ./terraform -update` writes the amounts.
func TestCosts(t *testing.T) {
	text, err := os.ReadFile("COST.md")
	if err != nil {
		t.Fatal(err)
	}
	p := readPrices(t, string(text))
	want, prose := string(text), string(text)
	for _, b := range []struct{ name, table string }{{"summary", p.summary()}, {"lambda", p.lambdaTable()}, {"run", p.runTable()}} {
		begin, end := "<!-- "+b.name+": made by go test ./terraform -update -->\n", "<!-- end of "+b.name+" -->"
		before, rest, found := strings.Cut(want, begin)
		old, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("COST.md lacks the lines %q and %q", begin, end)
		}
		want = before + begin + b.table + end + after
		prose = strings.Replace(prose, old, "", 1)
	}
	for name := range p.prices {
		if !p.used[name] && name != "lambda_x86" && name != "nat" { // which the formulas name beside others
			t.Errorf("no amount is made from the price %s", name)
		}
	}
	// What is not made here would go on saying what an old price gave.
	prose = priceRow.ReplaceAllString(prose, "")
	if found := regexp.MustCompile(`\b\d+\.\d\d\b`).FindAllString(prose, -1); found != nil {
		t.Errorf("amounts outside of the tables, which nothing recomputes: %q", found)
	}
	for _, name := range regexp.MustCompile(`\b[a-z]+[0-9]*_[a-z0-9_]+\b`).FindAllString(strings.Join(formula.FindAllString(prose, -1), "\n"), -1) {
		if _, known := p.prices[name]; !known && name != "memory_mb" {
			t.Errorf("a formula names %s, of which there is no price", name)
		}
	}
	if want == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile("COST.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("COST.md does not have the amounts that its prices give; run go test ./terraform -update")
}

var (
	priceRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| ([0-9.]+) \\| (.+) \\| (.+) \\| (\\d{4}(?:-\\d\\d){0,2}) \\|$")
	formula  = regexp.MustCompile(`(?m)^    .+$`)
)

// prices are dollars, by the names of COST.md's table.
type prices struct {
	prices map[string]float64
	used   map[string]bool
}

// readPrices reads the table. Each row has a source, or says that it has none, and a date.
func readPrices(t *testing.T, text string) prices {
	t.Helper()
	p := prices{map[string]float64{}, map[string]bool{}}
	rows := strings.Count(text[strings.Index(text, "## Prices"):], "\n| `")
	for _, m := range priceRow.FindAllStringSubmatch(text, -1) {
		price, err := strconv.ParseFloat(m[2], 64)
		if _, bad := time.Parse(time.DateOnly[:len(m[5])], m[5]); err != nil || bad != nil || p.prices[m[1]] != 0 {
			t.Errorf("the price %s: %v, %v, or it is there twice", m[1], err, bad)
		}
		p.prices[m[1]] = price
	}
	if len(p.prices) == 0 || len(p.prices)+strings.Count(text[strings.Index(text, "## When"):], "\n| `") != rows {
		t.Fatalf("%d of %d rows are prices with a source and a date", len(p.prices), rows)
	}
	return p
}

func (p prices) of(name string) float64 {
	p.used[name] = true
	price, ok := p.prices[name]
	if !ok {
		panic("COST.md has no price " + name)
	}
	return price
}

const (
	hours   = 730.0 // of a month
	wakes   = 40.0  // passes a day, where each sets the alarm for the next
	pass    = 0.5   // seconds
	awake   = 300.0 // seconds that a database stays awake after a pass
	minute  = 60 * hours
	quarter = 4 * hours
)

var due = wakes * 365 / 12

// share is the part of a month for which n passes keep a database awake.
func share(n float64) float64 { return min(1, n*(awake+pass)/(3600*hours)) }

// lambda is the function: requests, compute, logs and the secret.
func (p prices) lambda(n, seconds float64) float64 {
	return n*p.of("lambda_request") + p.compute(n, seconds) + n*1.2/1e6*p.of("log") + p.of("secret") + n/5*p.of("secret_call")
}

func (p prices) compute(n, seconds float64) float64 { return n * seconds / 4 * p.of("lambda_arm") }

func (p prices) service(n float64) float64 {
	return n*(pass*(p.of("run_vcpu")+p.of("run_gib")/2)+p.of("run_request")) + p.google(n)
}

func (p prices) job(n, least float64) float64 {
	return n*max(pass, least)*(p.of("job_vcpu")+p.of("job_gib")/2) + p.google(n)
}

// google is what a service or a job has beside it: the trigger, and a secret.
func (p prices) google(n float64) float64 {
	return p.of("gcp_scheduler") + p.of("gcp_secret") + n*p.of("gcp_secret_read")
}

func (p prices) fargate(n float64) float64 {
	return n / 60 * (0.25*p.of("fargate_vcpu") + 0.5*p.of("fargate_gb"))
}

func (p prices) machine(name string) float64 {
	return hours*(p.of(name)+p.of("ipv4")) + 8*p.of("disk")
}

func (p prices) summary() string {
	var b strings.Builder
	b.WriteString("| | each minute | every 15 minutes | wake when due |\n| --- | --- | --- | --- |\n")
	row := func(what string, cost func(n float64) float64) {
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.2f |\n", what, cost(minute), cost(quarter), cost(due))
	}
	always := func(cost float64) func(float64) float64 { return func(float64) float64 { return cost } }
	row("**Passes**: Lambda function", func(n float64) float64 { return p.lambda(n, pass) })
	row("its metrics and alarms", always(18*p.of("metric")+9*p.of("alarm")))
	row("or a Cloud Run service, billed by the request", p.service)
	row("or a Cloud Run job, billed by the minute *", func(n float64) float64 { return p.job(n, 60) })
	row("or a Fargate task", p.fargate)
	row("**Database**: Aurora Serverless v2, from 0 ACU", func(n float64) float64 { return share(n) * hours * 0.5 * p.of("aurora") })
	row("or Neon", func(n float64) float64 { return share(n) * hours * 0.25 * p.of("neon") })
	row("or Cloud SQL, 1 vCPU with 3.75 GB", always(hours*(p.of("sql_vcpu")+3.75*p.of("sql_gb"))))
	row("**Instead**: a machine with cron, t3.micro, 8 GB * of disk, an address", always(p.machine("t3_micro")))
	row("or the smallest, t4g.nano *", always(p.machine("t4g_nano")))
	return b.String()
}

func (p prices) lambdaTable() string {
	var b strings.Builder
	b.WriteString("| | T | GB-seconds | compute | less the free tier | all without metrics, alarms and endpoint |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range []struct {
		what string
		t    float64
	}{{"nothing due", 0.1}, {"some jobs", 0.5}, {"long jobs", 5}, {"`DBJOBS_FOR=55s`", 55}} {
		free := max(0, p.compute(minute, r.t)-400_000*p.of("lambda_arm"))
		fmt.Fprintf(&b, "| %s | %g s | %.0f | %.2f | %.2f | %.2f |\n", r.what, r.t, minute*r.t/4, p.compute(minute, r.t), free, p.lambda(minute, r.t))
	}
	fmt.Fprintf(&b, "\nBeside it: metrics %.2f, alarms %.2f, the endpoint in two zones %.2f.\n", 18*p.of("metric"), 9*p.of("alarm"), 2*hours*p.of("endpoint"))
	return b.String()
}

func (p prices) runTable() string {
	var b strings.Builder
	b.WriteString("| | a month |\n| --- | --- |\n")
	for _, r := range []struct {
		what string
		cost float64
	}{
		{"service, each minute", p.service(minute)},
		{"job, each minute", p.job(minute, 60)},
		{"job, every five minutes", p.job(minute/5, 60)},
		{"job, each minute, if only T were billed", p.job(minute, 0)},
	} {
		fmt.Fprintf(&b, "| %s | %.2f |\n", r.what, r.cost)
	}
	return b.String()
}
