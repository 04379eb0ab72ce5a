package main

import (
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkLambda starts the function as it is released, with 1,000 jobs of which none is due, and measures what Lambda
// sees: the time from the start of the process to the first query that reaches the database, and to the answer. Then it
// measures the same for warm invocations, which keep the connection, and for the invocation of a function that connects
// again because its connection has been dropped.
func BenchmarkLambda(b *testing.B) {
	c := newCloud(b, "postgres")
	c.exec("INSERT INTO dbjobs.schedules (id, name, rule, created_at, changed_at) VALUES (1, 'never', 'at 2099-01-01T00:00:00 UTC', now(), now())")
	c.exec("INSERT INTO dbjobs.jobs (id, owner, name, queue, created_at, changed_at) SELECT i, session_user, i::text, 'tick', now(), now() FROM generate_series(1, 1000) i")
	c.exec("INSERT INTO dbjobs.job_schedules (job_id, schedule_id, created_at) SELECT i, 1, now() FROM generate_series(1, 1000) i")
	c.dbjobs("tick")
	u, err := url.Parse(c.url)
	if err != nil {
		b.Fatal(err)
	}
	p := newProxy(b, u.Host)
	var mu sync.Mutex
	var queried time.Time
	p.sent = func(message []byte) { // the first message of pgx after its login is a Parse or a Query
		mu.Lock()
		defer mu.Unlock()
		if queried.IsZero() && (message[0] == 'P' || message[0] == 'Q') {
			queried = time.Now()
		}
	}
	u.Host = p.address
	invoked := func(f *aFunction, since time.Time) (first, all time.Duration) {
		mu.Lock()
		queried = time.Time{}
		mu.Unlock()
		f.report(f.invoke("{}", ample))
		all = time.Since(since)
		mu.Lock()
		defer mu.Unlock()
		return queried.Sub(since), all
	}
	var query, cold, warm, anew []time.Duration
	startFunction(b).kill() // builds it
	for range b.N {
		for range 10 {
			began := time.Now()
			f := startFunction(b, "DBJOBS_DATABASE_URL="+u.String())
			first, all := invoked(f, began)
			query, cold = append(query, first), append(cold, all)
			for range 5 {
				_, all = invoked(f, time.Now())
				warm = append(warm, all)
			}
			p.drop()
			_, all = invoked(f, time.Now())
			anew = append(anew, all)
			f.kill()
		}
	}
	for name, d := range map[string][]time.Duration{"cold-to-query": query, "cold-to-answer": cold, "warm": warm, "warm-new-connection": anew} {
		b.ReportMetric(float64(median(d).Microseconds())/1000, "ms/"+name)
	}
	b.ReportMetric(0, "ns/op")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
