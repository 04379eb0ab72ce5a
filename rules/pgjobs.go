package rules

var pgjobsForm = form{name: "pgjobs", claims: func(string) bool { return false }}
