package gcp

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/dbjobs/dbjobs/store/lazyregexp"
	"github.com/dbjobs/dbjobs/tick/executor/outcome"
)

// undone has the methods whose answer 200 may say that all, or a part, of what was asked for was not done, by the ends of their
// paths, and the member that says so.
var undone = []struct {
	path   *lazyregexp.Regexp
	member string
	done   func(value []byte) bool
}{
	{lazyregexp.New(`/bigquery/v2/.*/insertAll$`), "insertErrors", empty},
	{lazyregexp.New(`/bigquery/v2/projects/[^/]+/jobs$`), "status", ok},
	{lazyregexp.New(`:batchWrite$`), "status", ok}, // of Firestore, one for each write; of Spanner, one in each part of a list
	{lazyregexp.New(`:executeBatchDml$`), "status", ok},
}

// Undone returns what an answer 200 of an API says was not done; empty: it says nothing of that. Most methods that change something
// begin an operation: one that has failed at once has an error. broke reports whether the body broke off before its
// end.
func Undone(method, path string, body []byte, broke bool) string {
	if method == http.MethodGet { // what it gets may have such members, and be of long ago
		return ""
	}
	for _, u := range undone {
		if u.path.MatchString(path) {
			return outcome.Undone(body, u.member, broke, u.done)
		}
	}
	return outcome.Undone(body, "error", false, empty) // if it broke off, the operation has begun
}

func empty(value []byte) bool { return slices.Contains([]string{"null", "[]", "{}"}, string(value)) }

// ok reports whether none of the states in a value is that of a failure: one or more of google.rpc.Status, or the one of a job of
// BigQuery.
func ok(value []byte) bool {
	type state struct {
		Code  int              `json:"code"`
		Error *json.RawMessage `json:"errorResult"`
	}
	var list []state
	if json.Unmarshal(value, &list) != nil {
		list = make([]state, 1)
		if json.Unmarshal(value, &list[0]) != nil {
			return false
		}
	}
	return !slices.ContainsFunc(list, func(s state) bool { return s.Code != 0 || s.Error != nil })
}
