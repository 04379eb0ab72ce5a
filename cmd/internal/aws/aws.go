// Package aws gets what a function or a task on AWS needs to log in to its database, without the SDK: a secret, from
// the extension that caches it beside the function, and a token for RDS, signed with the function's own credentials.
//
// Both are asked for at each new connection, and cost a call on the loopback or a few hashes: the SDK's packages for
// the two would be a good part of what a cold start loads.
package aws

// Lookup finds a variable of the environment, as os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

func (env Lookup) value(name string) string {
	v, _ := env(name)
	return v
}
