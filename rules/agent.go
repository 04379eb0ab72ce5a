package rules

var agentForm = form{name: "agent", claims: func(string) bool { return false }}
